import type { Principal } from '../contract/call.ts';
import type { ChatRequest } from '../contract/chat.ts';
import type { DialectNeed, NativeBody, NativeChange } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import type { HttpRequest, NativeRow } from '../contract/provider.ts';
import { isPublicHttps } from './content.ts';
import { atCallersPlace } from './error-marks.ts';
import type { DisguisedField, MediaAddress, RequestFacts } from './facts.ts';
import { clip } from './models.ts';
import type { PlanFinder } from './plans.ts';

/**
 * How a request went to a target and its response back: `native`, in the caller's own format both ways; `mixed`, the response was
 * written by the dialect because a hook took part in it; `translated`, both ways by dialect and codec.
 */
export type Lane = 'native' | 'mixed' | 'translated';

/** The way a chat came in: what core has to know of the caller's format to pass it on to a vendor that speaks it. */
export interface Ingress {
  /** The dialect's name. */
  readonly dialect: string;
  /** The caller's body. */
  readonly body: unknown;
  /** The canonical request as the dialect read it. */
  readonly before: ChatRequest;
  /** Headers of the caller that a provider may get to see. */
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's `cache-control`. */
  readonly cacheControl?: string | undefined;
  readonly needs: readonly DialectNeed[];
  /** Addresses in the caller's body, where it may be passed on as it is. */
  readonly media: readonly MediaAddress[];
  /** What the canonical request could not say. */
  readonly dropped: readonly string[];
  /** The caller's own body with a change; absent for a dialect whose shape is the canonical one: codecs write that as it is. */
  patch?(change: NativeChange): NativeBody | undefined;
}

/** Fields in which the request may differ from what the dialect read without leaving the native lane. */
const PATCHABLE: ReadonlySet<string> = new Set(
  'model max_completion_tokens max_tokens temperature top_p stop user metadata service_tier reasoning_effort dialect_fields'.split(
    ' ',
  ),
);

/** Lists that may have grown at their ends. */
const GROWING: ReadonlySet<string> = new Set(['messages', 'tools']);

/** Whether a dialect's `patch` can say what became of a request. Compared by identity: everything that hooks get is frozen. */
function isPatchable(before: ChatRequest, after: ChatRequest): boolean {
  if (before === after) return true;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].every(
    (field) =>
      before[field] === after[field] ||
      PATCHABLE.has(field) ||
      (GROWING.has(field) && hasGrown(before[field] ?? [], after[field] ?? [])),
  );
}

/** Whether `after` is `before` with something added in front or behind, each old element the same object. */
function hasGrown(before: unknown, after: unknown): boolean {
  if (!Array.isArray(before) || !Array.isArray(after) || after.length < before.length) return false;
  const start = before.length === 0 ? 0 : after.indexOf(before[0]);
  return start >= 0 && before.every((element, at) => element === after[start + at]);
}

/** A request to a vendor that speaks the caller's dialect; undefined where it has to be translated. */
export function nativeRequest(ingress: Ingress, row: NativeRow, change: NativeChange): HttpRequest | undefined {
  if (!ingress.patch || !isPatchable(change.before, change.after)) return undefined;
  const written = ingress.patch(change);
  if (!written) return undefined;
  const headers = row.headers?.(ingress.headers) ?? {};
  return { path: row.path, headers, ...written };
}

/**
 * Refuses what a target cannot have: what only a vendor of the dialect can do, and what lies in the operator's account there. Returns
 * the names of the optional things, which a translated request does without.
 */
export function assertNeeds({ needs }: Ingress, provider: string, row: NativeRow | undefined): readonly string[] {
  for (const { kind, name, param, optional } of needs) {
    if (optional) continue;
    if ((kind === 'native' || kind === 'server tool') && !row)
      throw refusal(
        param,
        `\`${param}\` (${name}) works only with a provider that has it itself; "${provider}" has not. Leave it out, or choose another model.`,
      );
    if (kind === 'reference' && row?.references !== true)
      throw refusal(
        param,
        `\`${param}\` (${name}) refers to something in the operator's account at the provider, which all callers would share. Send the content itself; an operator who wants it sets \`native: { references: allow }\` for the provider.`,
      );
  }
  return needs.filter(({ optional }) => optional).map(({ name }) => name);
}

function refusal(param: string, message: string): GatewayError {
  return atCallersPlace(new GatewayError('invalid_request', message, { param }));
}

/**
 * Refuses blocks, tools and fields that belong to another dialect than the request came in: only that one's checks know what they need,
 * so they would reach its vendors unchecked.
 */
export function assertOwnBlocks({ dialect }: Ingress, { dialects }: RequestFacts): void {
  for (const [name, param] of dialects) if (name !== dialect) throw foreign(param, dialect);
}

function foreign(param: string, dialect: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` belongs to another format than "${dialect}", in which the request came. Leave it out, or send the request in that format.`,
    { param },
  );
}

/** The date that vendors put behind the name of a tool: `_20250305`, `_2025_03_11`. */
const DATE = /[-_](?:\d{8}|\d{4}[-_]\d{2}[-_]\d{2})$/;

/**
 * Refuses tools that a vendor runs with the operator's account, unless the caller's key or plan allows them. Returns the places of
 * optional ones that are not allowed: the call goes on without them.
 */
export async function assertServerTools(
  { needs }: Ingress,
  principal: Principal,
  planOf: PlanFinder,
): Promise<readonly string[]> {
  const isAllowed =
    (allowed: readonly string[] = []) =>
    ({ name }: DialectNeed): boolean =>
      allowed.includes(name) || allowed.includes(name.replace(DATE, ''));
  const tools = needs.filter(({ kind }) => kind === 'server tool');
  const beyondKey = tools.filter((tool) => !isAllowed(principal.serverTools)(tool));
  // Only then: a plan may have to be looked up.
  if (beyondKey.length === 0) return [];
  const plan = await planOf(principal);
  const beyondPlan = beyondKey.filter((tool) => !isAllowed(plan?.plan.serverTools)(tool));
  const refused = beyondPlan.find(({ optional }) => !optional);
  if (!refused) return beyondPlan.map(({ param }) => param);
  const { name, param } = refused;
  throw atCallersPlace(
    new GatewayError(
      'permission_denied',
      `This key may not use the tool "${clip(name)}", which runs with the operator's account at the provider. Leave it out; an operator allows it by \`serverTools\` of a plan or a key.`,
      { param },
    ),
  );
}

/**
 * Refuses a field whose name is a known one in another case: `Model`, `MAX_TOKENS`, `me\u017f\u017fages`. Some vendors' parsers ignore case
 * (Go's does, U+017F and U+212A included), so such a field would reach the vendor as one that was never checked or priced.
 */
export function assertNoDisguisedFields(disguised: DisguisedField | undefined): void {
  if (!disguised) return;
  const { param, known } = disguised;
  throw new GatewayError(
    'invalid_request',
    `\`${param}\` is \`${known}\` in another case, which some providers take for it. Write \`${known}\`, or leave it out.`,
    { param },
  );
}

/**
 * Refuses addresses of media that a vendor must not be sent to fetch: only `https:` at a public host. The gateway fetches none
 * itself; a vendor on the operator's own network would.
 */
export function assertPublicMedia(media: readonly MediaAddress[]): void {
  const refused = media.find(({ address }) => !isPublicHttps(address));
  if (!refused) return;
  const { param } = refused;
  throw new GatewayError(
    'invalid_request',
    `\`${param}\` must be a data URL, or an https URL of a public host. Other addresses are not passed on.`,
    { param },
  );
}
