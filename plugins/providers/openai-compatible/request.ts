import { isDeepStrictEqual } from 'node:util';
import {
  type ChatCodec,
  type ChatRequest,
  type CodecCall,
  GatewayError,
  type HttpRequest,
  readObject,
  readString,
} from '../../../core/index.ts';
import { writeResponsesRequest } from '../../formats/openai-responses/write-request.ts';
import { fitCacheMarks, mergeExtraBody, tellDropped, toolsOfHistory } from '../kit/index.ts';
import { NO_FILES } from './files.ts';
import { mapMessages, plainTools } from './messages.ts';
import type { CompatibleRule, CompatibleRules } from './rules.ts';
import type { Differences, Variant } from './spec.ts';

type Defaults = NonNullable<Differences['defaults']>;

/** Makes the request half of a codec: the wire and the fields by rule, messages, stream options. */
export function createRequestMapper(differences: Differences, rulesFor: RulesFor): ChatCodec['request'] {
  const defaultsOf = (variant: Variant | undefined): Defaults | undefined =>
    variant?.defaults ? { ...differences.defaults, ...variant.defaults } : differences.defaults;
  return (request, call) => {
    const { variant, ruleOf } = rulesFor(request);
    const dropped: string[] = [];
    const input = withTools(
      mergeExtraBody(request, (field) => isExtraField(field, ruleOf), dropped),
      call.model,
      differences,
    );
    const fields = mapFields(input, ruleOf);
    if (variant?.wire === 'responses') return writeOnResponses(input, call, fields, dropped, variant, differences);
    const defaults = missingDefaults(defaultsOf(variant), input);
    const roles = variant?.roles ?? differences.roles ?? {};
    const told = new Set<string>();
    const mapped = mapMessages(input.messages, call.model, { ...differences, roles }, told);
    const messages = differences.messages?.(mapped, input) ?? mapped;
    const stream = streamFields(input, call, differences);
    for (const field of [...fields.dropped, ...told]) tellDropped(dropped, field);
    const path = differences.path?.('chat/completions', call.model) ?? '/chat/completions';
    const body = Object.assign({ model: call.model, messages }, stream, defaults, fields.body);
    return dropped.length > 0 ? { path, body, dropped } : { path, body };
  };
}

/** A request on the wire `responses`: what the rules made of its fields, in the other API's words. */
function writeOnResponses(
  input: ChatRequest,
  call: CodecCall,
  fields: MappedFields,
  dropped: string[],
  { roles, defaults }: Variant,
  differences: Differences,
): HttpRequest {
  const { files = NO_FILES, streamOptions, reasoningSummary, responsesPath } = differences;
  const left = new Set<string>();
  const rules = {
    ...differences,
    roles: roles ?? differences.roles ?? {},
    files: { ...files, urls: true },
    wire: 'responses',
  } as const;
  const messages = mapMessages(input.messages, call.model, rules, left);
  const wanted = readString(readObject(input.dialect_fields?.['responses']?.['reasoning'])['summary']);
  const summary = wanted ?? reasoningSummary;
  const chat = { ...fields.body, model: call.model, messages };
  const written = writeResponsesRequest(chat, { stream: call.stream, streamOptions, summary });
  for (const field of [...fields.dropped, ...left, ...written.dropped]) tellDropped(dropped, field);
  const path = responsesPath?.(call.model) ?? '/responses';
  const body = { ...defaults, ...written.body };
  return dropped.length > 0 ? { path, body, dropped } : { path, body };
}

/** A request with tools as the vendor takes them: without those of other formats, with those that its history called. */
function withTools(
  request: ChatRequest,
  model: string,
  { cacheMarks = false, historyTools }: Pick<Differences, 'cacheMarks' | 'historyTools'>,
): ChatRequest {
  const input = cacheMarks ? fitCacheMarks(request) : request;
  const { tools, tool_choice: _choice, ...rest } = input;
  if (!Array.isArray(tools) || tools.length === 0) {
    const called = historyTools?.test(model) ? toolsOfHistory(input.messages) : [];
    return called.length > 0 ? { ...input, tools: called } : input;
  }
  const plain = plainTools(tools, cacheMarks);
  if (plain === tools) return input;
  return plain.length > 0 ? { ...input, tools: plain as NonNullable<ChatRequest['tools']> } : rest;
}

function missingDefaults(
  defaults: Defaults | undefined,
  input: ChatRequest,
): Readonly<Record<string, unknown>> | undefined {
  if (!defaults) return undefined;
  const missing = Object.entries(defaults).filter(([field]) => input[field] === undefined || input[field] === null);
  return missing.length > 0 ? Object.fromEntries(missing) : undefined;
}

/** `stream` as the call says, and usage asked for wherever it has to be asked for. */
function streamFields(
  input: ChatRequest,
  call: CodecCall,
  { streamUsage = 'ask', streamOptions }: Differences,
): Readonly<Record<string, unknown>> {
  if (!call.stream) return input.stream === false ? { stream: false } : {};
  if (streamUsage === 'always') return { stream: true };
  return { stream: true, stream_options: { ...input.stream_options, ...streamOptions, include_usage: true } };
}

/** OpenAI's chat fields beside those with code of their own (`model`, `messages`, `stream`, `stream_options`; `dialect_fields` is for other formats). */
export const CHAT_FIELDS: ReadonlySet<string> = new Set(
  `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata
  modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
  reasoning_effort response_format safety_identifier seed service_tier stop store temperature tool_choice tools
  top_logprobs top_p user verbosity web_search_options`.split(/\s+/),
);

/** Names by which bodies steer other gateways and SDKs. A caller never chooses host, key or headers here. */
const ROUTING_FIELDS: ReadonlySet<string> = new Set(
  `api_base api_key api_type api_version base_url custom_llm_provider default_headers deployment_id extra_body
  extra_headers extra_query fallbacks headers organization project provider timeout`.split(/\s+/),
);

const OWN = new Set(['model', 'messages', 'stream', 'stream_options', 'dialect_fields']);
const PASSED: CompatibleRule = Object.freeze({ rule: 'passed' });
const DROPPED: CompatibleRule = Object.freeze({ rule: 'dropped' });

interface MappedFields {
  readonly body: Record<string, unknown>;
  readonly dropped: string[];
}

/** Finds the variant that a request fits, and the rule of each of its fields. */
export type RulesFor = (request: ChatRequest) => {
  readonly variant: Variant | undefined;
  ruleOf(field: string): CompatibleRule;
};

const NO_FIELDS: ReadonlySet<string> = new Set();

/** Compiles a vendor's tables: they are laid over each other once. */
export function compileRules(
  differences: Pick<Differences, 'fields' | 'unknown' | 'extras' | 'variants' | 'cacheMarks' | 'responsesPath'>,
): RulesFor {
  const { unknown = 'passed', extras = [], variants = [], cacheMarks = false, responsesPath } = differences;
  const fields = { cache_control: cacheRule(cacheMarks), ...differences.fields };
  const own = new Set(extras);
  const base = finder(fields, unknown, own);
  const varied = new Map(
    variants.map((variant) => [
      variant,
      // A field of the Responses API may name what lies in the operator's account: only those that are known here go there.
      variant.wire === 'responses'
        ? finder({ ...fields, ...variant.fields }, 'dropped', NO_FIELDS)
        : finder({ ...fields, ...variant.fields }, unknown, own),
    ]),
  );
  return (request) => {
    const variant = variants.find(
      ({ applies, wire }) => applies(request) && (wire !== 'responses' || responsesPath?.(request.model) !== undefined),
    );
    return { variant, ruleOf: (variant && varied.get(variant)) ?? base };
  };
}

/** What becomes of the mark by which a request as a whole is kept in the vendor's cache. */
export function cacheRule(cacheMarks: boolean): CompatibleRule {
  const note = cacheMarks
    ? 'here and in messages and tools: at most four marks, none of `1h` after one of five minutes'
    : 'its cache takes no marks';
  return { rule: cacheMarks ? 'passed' : 'dropped', note };
}

function finder(
  fields: CompatibleRules,
  unknown: 'passed' | 'dropped',
  extras: ReadonlySet<string>,
): (field: string) => CompatibleRule {
  const rules = new Map(Object.entries(fields));
  const other = unknown === 'passed' ? PASSED : DROPPED;
  const isKnown = (field: string): boolean =>
    OWN.has(field) || CHAT_FIELDS.has(field) || ROUTING_FIELDS.has(field) || rules.has(field) || extras.has(field);
  return (field) =>
    rules.get(field) ??
    (extras.has(field) || CHAT_FIELDS.has(field)
      ? PASSED
      : ROUTING_FIELDS.has(field) || isKnown(foldCase(field))
        ? DROPPED
        : other);
}

/** A name in another case: a vendor whose parser folds case reads `Model` as `model`, and U+017F as an s. */
function foldCase(field: string): string {
  return field.toUpperCase().toLowerCase();
}

/** Whether a field may come in `extra_body`: the vendor's own ones and unknown ones, where they would pass beside it. */
function isExtraField(field: string, ruleOf: (field: string) => CompatibleRule): boolean {
  return !OWN.has(field) && !CHAT_FIELDS.has(field) && ruleOf(field).rule === 'passed';
}

/** The caller's fields as the vendor spells them. Null means absent, as it does at OpenAI. */
export function mapFields(
  request: Readonly<Record<string, unknown>>,
  ruleOf: (field: string) => CompatibleRule,
  skip: ReadonlySet<string> = OWN,
): MappedFields {
  const mapped: MappedFields = { body: {}, dropped: [] };
  const emulations: (() => void)[] = [];
  for (const field of Object.keys(request)) {
    if (skip.has(field)) continue;
    const value = request[field];
    if (value === null || value === undefined || field === '__proto__') continue;
    const rule = ruleOf(field);
    if (rule.rule === 'emulated')
      emulations.push(() => emulateField(mapped, field, value, rule, request as ChatRequest));
    else mapField(mapped, field, value, rule, request);
  }
  for (const emulation of emulations) emulation();
  return mapped;
}

function mapField(
  mapped: MappedFields,
  field: string,
  value: unknown,
  rule: CompatibleRule,
  request: Readonly<Record<string, unknown>>,
): void {
  const { body, dropped } = mapped;
  if (rule.rule === 'passed') {
    const sent = rule.convert ? rule.convert(value) : value;
    checkRange(field, sent, rule);
    if (sent !== undefined) body[field] = sent;
    else tellDropped(dropped, field);
  } else if (rule.rule === 'renamed') {
    const to = rule.to ?? field;
    if (request[to] === undefined || request[to] === null) body[to] = rule.convert ? rule.convert(value) : value;
  } else if (!rule.neutral?.some((neutral) => isDeepStrictEqual(value, neutral))) {
    if (rule.rule === 'refused') throw refusal(field, rule.note);
    tellDropped(dropped, field);
  }
}

function emulateField(
  mapped: MappedFields,
  field: string,
  value: unknown,
  rule: CompatibleRule,
  request: ChatRequest,
): void {
  const { body = {}, dropped = false, told = [] } = rule.apply?.(value, request) ?? {};
  if (dropped) tellDropped(mapped.dropped, field);
  for (const part of told) tellDropped(mapped.dropped, part);
  for (const [name, replacement] of Object.entries(body)) {
    if (replacement === undefined) delete mapped.body[name];
    else mapped.body[name] = replacement;
  }
}

function checkRange(field: string, value: unknown, rule: CompatibleRule): void {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = rule;
  if (typeof value !== 'number' || (value >= min && value <= max)) return;
  throw new GatewayError('invalid_request', `\`${field}\` must be between ${min} and ${max} for this provider.`, {
    param: field,
  });
}

/** The 400 for a field that the vendor does not have and that may not be left out in silence. */
export function refusal(field: string, note?: string): GatewayError {
  const reason = note ? ` (${note})` : '';
  return new GatewayError(
    'invalid_request',
    `This provider does not support \`${field}\`${reason}. Leave the field out, or choose a provider that has it.`,
    { param: field },
  );
}
