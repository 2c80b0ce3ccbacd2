import type { Call, Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import type { DialectNeed, NativeChange } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { DisguisedField, MediaAddress, RequestFacts } from '../../contract/facts.ts';
import { isPublicHttps } from '../../contract/hosts.ts';
import { isObject, type JsonObject, readArray, readObject } from '../../contract/json.ts';
import { clip } from '../../contract/model-names.ts';
import { assertInPlan } from '../../contract/plans.ts';
import type { Endpoint, HttpRequest, NativeBody, NativeRow, ProviderEffects } from '../../contract/provider.ts';
import { assertAllowed } from '../../models/catalog.ts';
import type { CallDeps } from './call-deps.ts';
import { atCallersPlace } from './error-marks.ts';

/**
 * How a request went to a target and its response back: `native`, in the caller's own format both ways; `mixed`, the response was
 * written by the dialect because a hook took part in it; `translated`, both ways by dialect and codec.
 */
export type Lane = 'native' | 'mixed' | 'translated';

/** The way a chat came in: what core has to know of the caller's format to pass it on to a vendor that speaks it. */
export interface Ingress {
  /** The dialect's name. */
  readonly dialect: string;
  /** The name of the providers' rows for what was asked for. */
  readonly row: string;
  /** The caller's body. */
  readonly body: unknown;
  /** The canonical request as the dialect read it. */
  readonly before: ChatRequest;
  /** Headers of the caller that a provider may get to see. */
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's `cache-control`. */
  readonly cacheControl?: string | undefined;
  readonly demandsLimit?: boolean | undefined;
  readonly ownSubscription?: boolean | undefined;
  readonly needs: readonly DialectNeed[];
  /** Addresses in the caller's body, where it may be passed on as it is. */
  readonly media: readonly MediaAddress[];
  /** What the canonical request could not say. */
  readonly dropped: readonly string[];
  /** What of the response the caller's format cannot say; its dialect adds to it as it writes. */
  readonly leftOut: Set<string>;
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
  const own = row.body?.(written.body);
  const dropped = [...(written.dropped ?? []), ...(own?.dropped ?? [])];
  return { path: row.path, headers, ...written, ...own, ...(dropped.length > 0 && { dropped }) };
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
        `\`${param}\` (${name}) is not supported by the provider "${provider}". Remove it or use another model.`,
      );
    if (kind === 'reference' && row?.references !== true)
      throw refusal(
        param,
        `\`${param}\` (${name}) refers to data in the operator's account, which all callers share. Send the content itself; operators can allow it with \`native: { references: allow }\`.`,
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
    `\`${param}\` is not a field of the format "${dialect}". Remove it, or use the other format.`,
    { param },
  );
}

/**
 * The gate. Holds what a request makes a provider do to what the caller may have done: other models to its allow-list, tools that the vendor
 * runs to its key and plan. Returns the places of optional tools that are not allowed: the call goes on without them.
 */
export async function assertEffects(
  { partsOf, planOf }: CallDeps,
  { principal, operation }: Pick<Call, 'principal' | 'operation'>,
  needs: readonly DialectNeed[],
  targets: readonly Target[],
): Promise<readonly string[]> {
  const { catalog } = partsOf(operation);
  for (const { kind, name: model, param } of needs)
    for (const { provider } of kind === 'model' ? targets : []) {
      assertAllowed(catalog, principal, [{ provider, model }], { param });
      assertInPlan(catalog, await planOf(principal), [{ provider, model }], { param });
    }
  const beyondKey = needs.filter((need) => need.kind === 'server tool' && !isToolAllowed(principal.serverTools, need));
  // Only then: a plan may have to be looked up.
  if (beyondKey.length === 0) return [];
  const plan = await planOf(principal);
  const beyondPlan = beyondKey.filter((tool) => !isToolAllowed(plan?.plan.serverTools, tool));
  const refused = beyondPlan.find(({ optional }) => !optional);
  if (!refused) return beyondPlan.map(({ param }) => param);
  const { name, param } = refused;
  throw atCallersPlace(
    new GatewayError(
      'permission_denied',
      `This key may not use the tool "${clip(name)}", which \`${param}\` runs with the operator's account. Remove it; operators can allow it with \`serverTools\` of a plan or key.`,
      { param },
    ),
  );
}

/** What providers put behind the name of a tool: `_20250305`, `_2025_03_11`, `_preview`. */
const VERSION = /(?:_preview)?(?:[-_](?:\d{8}|\d{4}[-_]\d{2}[-_]\d{2}))?$/;

function isToolAllowed(allowed: readonly string[] = [], { name }: DialectNeed): boolean {
  return allowed.includes(name) || allowed.includes(name.replace(VERSION, ''));
}

/**
 * Refuses a field whose name is a known one in another case: `Model`, `MAX_TOKENS`, `me\u017f\u017fages`. Some vendors' parsers ignore case
 * (Go's does, U+017F and U+212A included), so such a field would reach the vendor as one that was never checked or priced.
 */
export function assertNoDisguisedFields(disguised: DisguisedField | undefined): void {
  if (!disguised) return;
  const { param, known } = disguised;
  throw new GatewayError('invalid_request', `\`${param}\` must be spelled \`${known}\`. Correct or remove it.`, {
    param,
  });
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

/** The effects that a provider declares for a model. */
export function effectsFor(declared: Endpoint['effects'], model: string): ProviderEffects | undefined {
  return typeof declared === 'function' ? declared(model) : declared;
}

/** What a request as it is sent makes the provider do, by the effects that its provider declares. Throws for what no one may have. */
export function effectsOf(
  declared: Endpoint['effects'],
  { model, provider }: Target,
  { body }: HttpRequest,
): readonly DialectNeed[] {
  const effects = effectsFor(declared, model);
  const needs: DialectNeed[] = [];
  if (!isObject(body)) return needs;
  for (const field in effects) {
    const sent = field === 'model' ? model : body[field];
    if ((sent ?? false) === false) continue;
    for (const { does, at, values, name } of effects[field] ?? [])
      for (const value of at === undefined ? [sent] : valuesAt(sent, at.split('.'))) {
        if ((value ?? false) === false || values?.test(String(value)) === false) continue;
        if (does === 'stores') throw keptThere(field, provider);
        if (does === 'tool' || does === 'model')
          needs.push({ kind: does === 'tool' ? 'server tool' : does, name: name ?? String(value), param: field });
      }
  }
  return needs;
}

function keptThere(param: string, provider: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` lets the provider "${provider}" store or use data in the operator's account. Remove it${param === 'store' ? '; operators can allow it with `store: true` for the provider' : ''}.`,
    { param },
  );
}

/** The values at a path below a value, as {@link ProviderEffect.at} writes it. */
function valuesAt(value: unknown, [step, ...rest]: readonly string[]): readonly unknown[] {
  if (step === undefined) return [value];
  if (step === '[]') return readArray(value).flatMap((item) => valuesAt(item, rest));
  return step === '*' ? Object.keys(readObject(value)) : valuesAt(readObject(value)[step], rest);
}

/**
 * Fields that say on which conditions a caller wants a response at all, with the values that do: a target that would leave one out is not
 * asked. Whatever else is left out is a wish, and named.
 */
const CONDITIONS: ReadonlyMap<string, RegExp> = new Map([
  ['compliance', /./],
  ['inference_geo', /^(?!global$)/],
  ['n', /^(?!1$)/],
  ['provider', /"(?:zdr|data_collection|only|ignore|enforce_distillable_text)":/],
  ['service_tier', /^flex$/],
]);

/** The error for the first condition of a caller that would be left out; undefined where only wishes are. `bodies` may hold its value. */
export function brokenCondition(
  dropped: readonly string[],
  bodies: readonly JsonObject[],
  provider: string,
): GatewayError | undefined {
  for (const param of dropped) {
    const field = param.replace(/^extra_body\./, '');
    const value = bodies
      .flatMap((body) => [body[field], readObject(body['extra_body'])[field]])
      .find((one) => (one ?? undefined) !== undefined);
    if (CONDITIONS.get(field)?.test(typeof value === 'object' ? JSON.stringify(value) : String(value)))
      return new GatewayError(
        'invalid_request',
        `\`${param}\` is a condition for the response that "${provider}" does not support. Remove it or use another model.`,
        { param },
      );
  }
  return undefined;
}
