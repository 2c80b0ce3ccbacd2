import { isDeepStrictEqual } from 'node:util';
import type { ChatCodec, ChatRequest, CodecCall } from '../../../core/index.ts';
import { compileRules, mapFields } from './fields.ts';
import { mapMessages, withoutCacheMarks } from './messages.ts';
import type { Differences, Variant } from './spec.ts';

type Defaults = NonNullable<Differences['defaults']>;

/**
 * Makes the request half of a codec: fields by rule, messages, stream options. When nothing differs from what the
 * caller sent, the caller's own bytes go out.
 */
export function createRequestMapper(differences: Differences): ChatCodec['request'] {
  const rulesFor = compileRules(differences);
  const defaultsOf = (variant: Variant | undefined): Defaults | undefined =>
    variant?.defaults ? { ...differences.defaults, ...variant.defaults } : differences.defaults;
  return (input, call) => {
    const { variant, ruleOf } = rulesFor(input);
    const fields = mapFields(input, ruleOf);
    const defaults = missingDefaults(defaultsOf(variant), input);
    const roles = variant?.roles ?? differences.roles ?? {};
    const mapped = mapMessages(input.messages, roles, differences);
    const messages = differences.messages?.(mapped, input) ?? mapped;
    const stream = streamFields(input, call, differences);
    const marked = !differences.cacheMarks && stripTools(fields.body);
    const changed =
      fields.changed ||
      marked ||
      defaults !== undefined ||
      messages !== input.messages ||
      input.model !== call.model ||
      stream.changed;
    return {
      path: differences.path?.('chat/completions', call.model) ?? '/chat/completions',
      body:
        call.raw && !changed ? call.raw : { model: call.model, messages, ...stream.body, ...defaults, ...fields.body },
      ...(fields.dropped.length > 0 && { dropped: fields.dropped }),
    };
  };
}

/** Takes cache marks off the tools; tells whether there were any. */
function stripTools(body: Record<string, unknown>): boolean {
  const { tools } = body;
  if (!Array.isArray(tools)) return false;
  const plain = withoutCacheMarks(tools);
  body['tools'] = plain;
  return plain !== tools;
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
): { readonly body: Readonly<Record<string, unknown>>; readonly changed: boolean } {
  if (!call.stream) {
    const explicit = input.stream === false;
    return { body: explicit ? { stream: false } : {}, changed: input.stream === true || 'stream_options' in input };
  }
  if (streamUsage === 'always') {
    return { body: { stream: true }, changed: input.stream !== true || 'stream_options' in input };
  }
  const options = { ...input.stream_options, ...streamOptions, include_usage: true };
  return {
    body: { stream: true, stream_options: options },
    changed: input.stream !== true || !isDeepStrictEqual(input.stream_options, options),
  };
}
