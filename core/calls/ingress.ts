import { isIP } from 'node:net';
import type { Principal } from '../contract/call.ts';
import type { ChatRequest } from '../contract/chat.ts';
import type { DialectNeed, NativeBody, NativeChange } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
import { isObject, readArray, readObject, readString, type Schema } from '../contract/json.ts';
import type { HttpRequest, NativeRow } from '../contract/provider.ts';
import { atCallersPlace } from './error-marks.ts';
import type { PlanFinder } from './plans.ts';
import { clip } from './targets.ts';

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
  /** Places of optional needs that this caller may not have. */
  readonly without?: readonly string[];
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
export function assertOwnBlocks({ dialect, before: { messages, tools, dialect_fields: fields } }: Ingress): void {
  const assertOpaque = (items: unknown, place: string): void => {
    for (const [index, item] of readArray(items).entries())
      if (isObject(item) && item['type'] === 'opaque' && item['dialect'] !== dialect)
        throw foreign(`${place}[${index}]`, dialect);
  };
  const assertFields = (own: unknown, place: string): void => {
    const other = Object.keys(readObject(own)).find((name) => name !== dialect);
    if (other !== undefined) throw foreign(`${place}dialect_fields.${other}`, dialect);
  };
  assertFields(fields, '');
  assertOpaque(tools, 'tools');
  for (const [index, { content, opaque, dialect_fields: own }] of messages.entries()) {
    assertFields(own, `messages[${index}].`);
    assertOpaque(content, `messages[${index}].content`);
    assertOpaque(opaque, `messages[${index}].opaque`);
  }
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

/** Names that are written as they are known: nothing else folds to them. */
const PLAIN = /^[a-z0-9_]+$/;

/**
 * Refuses a field whose name is a known one in another case: `Model`, `MAX_TOKENS`, `me\u017f\u017fages`. Some vendors' parsers fold case
 * (Go's does, U+017F and U+212A included), so such a field would reach the vendor as one that was never checked or priced. Looks where
 * `schema` names fields; every operation's requests pass here.
 */
export function assertNoDisguisedFields(value: unknown, schema: Schema, path = ''): void {
  if (Array.isArray(value)) {
    const items = readObject(schema['items']);
    if (!items['properties']) return;
    for (const [index, item] of value.entries()) assertNoDisguisedFields(item, items, `${path}[${index}]`);
    return;
  }
  const known = schema['properties'];
  if (!isObject(value) || !isObject(known)) return;
  const placeOf = (field: string): string => (path === '' ? field : `${path}.${field}`);
  for (const field of Object.keys(value)) {
    const inner = value[field];
    if (Object.hasOwn(known, field)) {
      if (typeof inner === 'object' && inner !== null)
        assertNoDisguisedFields(inner, readObject(known[field]), placeOf(field));
    } else if (!PLAIN.test(field) && Object.hasOwn(known, foldCase(field)))
      throw refuseDisguised(placeOf(field), foldCase(field));
  }
}

/** Through upper case, because U+017F has no lower case but an upper one: S. */
function foldCase(field: string): string {
  return field.toUpperCase().toLowerCase();
}

function refuseDisguised(param: string, known: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` is \`${known}\` in another case, which some providers take for it. Write \`${known}\`, or leave it out.`,
    { param },
  );
}

/** Fields of a part that hold an address to be fetched by the vendor. */
const PLACES = Object.freeze([
  ['image_url', 'url'],
  ['video_url', 'url'],
  ['audio_url', 'url'],
  ['file', 'file_url'],
] as const);

/** Every place of a request that names media by an address instead of carrying it. */
export function* remoteMedia(request: ChatRequest): Generator<{ readonly url: string; readonly param: string }> {
  for (const [at, { content }] of request.messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [index, part] of content.entries())
      for (const [field, name] of PLACES) {
        const holder: unknown = isObject(part) ? part[field] : undefined;
        const url = isObject(holder) ? readString(holder[name]) : readString(holder);
        if (url !== undefined && !/^data:/i.test(url))
          yield { url, param: `messages[${at}].content[${index}].${field}.${name}` };
      }
  }
}

/**
 * Refuses addresses of media that a vendor must not be sent to fetch: only `https:` at a public host. The gateway fetches none
 * itself; a vendor on the operator's own network would.
 */
export function assertPublicMedia(request: ChatRequest): void {
  for (const { url, param } of remoteMedia(request)) {
    if (isPublicHttps(url)) continue;
    throw new GatewayError(
      'invalid_request',
      `\`${param}\` must be a data URL, or an https URL of a public host. Other addresses are not passed on.`,
      { param },
    );
  }
}

function isPublicHttps(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return protocol === 'https:' && username === '' && password === '' && isPublicHost(hostname);
}

/** Whether a host, as a URL has it, is neither an address of a private or loopback range nor a name for an inner network. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (isIP(host) === 4) return !PRIVATE_V4.test(host);
  if (isIP(host) === 6) return !PRIVATE_V6.test(host);
  return host.includes('.') && !/(^|\.)(localhost|local|internal|localdomain|home\.arpa|test|invalid)$/.test(host);
}

/** This network, private, loopback, link-local, shared (100.64/10), multicast and reserved. */
const PRIVATE_V4 =
  /^(?:0|10|127|22[4-9]|23\d|24\d|25\d)\.|^169\.254\.|^172\.(?:1[6-9]|2\d|3[01])\.|^192\.168\.|^100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./;

/** Unspecified and loopback, unique local, link-local, multicast, and IPv4 inside IPv6. */
const PRIVATE_V6 = /^::|^f[cd]|^fe[89ab]|^ff|^64:ff9b:/;

/**
 * Token estimates for when nobody told the true number: before a call (to reserve its cost) and after one whose provider
 * reported no usage. UTF-8 bytes / 4, the usual rule for English; languages with longer encodings come out dearer, never free.
 */
export const BYTES_PER_TOKEN = 4;

/** What one image part counts, in tokens: OpenAI's high-detail price of a 1024×1024 picture. */
const TOKENS_PER_IMAGE = 765;

/** What a message costs beside its text, in tokens. */
const TOKENS_PER_MESSAGE = 4;

export function estimateTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Bytes of recorded sound that count as one token: vendors count 10 to 32 tokens a second. */
const SOUND_BYTES_PER_TOKEN = Object.freeze({ plain: 1000, packed: 100 });

/** What a file or a recording counts that is only named, by an id or a URL. */
const TOKENS_PER_NAMED_FILE = 10_000;

/** Fields of a request that no model reads: they may be long and cost nothing. */
const UNREAD: ReadonlySet<string> = new Set([
  'messages',
  'metadata',
  'logit_bias',
  'stream_options',
  'stop',
  'modalities',
]);

/** The tokens of a chat request's input: of its messages, and of every other field that is more than a word or a number. */
export function estimateInputTokens(request: ChatRequest): number {
  let tokens = 0;
  for (const name of Object.keys(request)) {
    const value = request[name];
    if (typeof value === 'object' && value !== null && !UNREAD.has(name))
      tokens += estimateTextTokens(JSON.stringify(value));
  }
  for (const message of request.messages) tokens += estimateMessage(message);
  return tokens;
}

/** Tokens of the output that is foretold: those that the model does not use are billed as if it had written them. */
export function estimatePrediction(request: ChatRequest): number {
  const { prediction } = request;
  return prediction === undefined || prediction === null ? 0 : estimateTextTokens(JSON.stringify(prediction));
}

type Message = ChatRequest['messages'][number];

function estimateMessage(message: Message): number {
  let tokens = TOKENS_PER_MESSAGE;
  for (const name of Object.keys(message)) {
    const value = message[name];
    if (name === 'role' || name === 'tool_call_id') continue;
    if (typeof value === 'string') tokens += estimateTextTokens(value);
    else if (name === 'content' && Array.isArray(value)) for (const part of value) tokens += estimatePart(part);
    else if (typeof value === 'object' && value !== null) tokens += estimateTextTokens(JSON.stringify(value));
  }
  return tokens;
}

interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A part by its size: text, a file and whatever else is sent whole by its bytes, a recording by its length. */
function estimatePart(part: Part): number {
  if (typeof part['text'] === 'string') return estimateTextTokens(part['text']);
  if (part.type === 'image_url') return TOKENS_PER_IMAGE;
  const { bytes, isSent } = measurePart(part);
  if (part.type === 'input_audio') return Math.ceil(bytes / SOUND_BYTES_PER_TOKEN[isPacked(part) ? 'packed' : 'plain']);
  const tokens = Math.ceil(bytes / BYTES_PER_TOKEN);
  if (isSent) return tokens;
  return Math.max(tokens, FILES.has(part.type) ? TOKENS_PER_NAMED_FILE : TOKENS_PER_IMAGE);
}

const FILES: ReadonlySet<string> = new Set('file input_file document video_url input_video audio_url'.split(' '));
const SENT_AS: ReadonlySet<string> = new Set(['data', 'file_data']);

/** How many bytes a part has, and whether its content is among them (in base64) and not only its name. */
function measurePart(value: object): { readonly bytes: number; readonly isSent: boolean } {
  let bytes = 0;
  let isSent = false;
  for (const [name, field] of Object.entries(value)) {
    if (typeof field === 'string') {
      const isData = SENT_AS.has(name) || field.startsWith('data:');
      isSent ||= isData;
      bytes += isData ? (field.length * 3) / 4 : Buffer.byteLength(field);
    } else if (typeof field === 'object' && field !== null) {
      const inner = measurePart(field);
      isSent ||= inner.isSent;
      bytes += inner.bytes;
    }
  }
  return { bytes, isSent };
}

function isPacked({ input_audio: sound }: Part): boolean {
  return typeof sound === 'object' && sound !== null && 'format' in sound && !/^(?:wav|pcm)/.test(String(sound.format));
}
