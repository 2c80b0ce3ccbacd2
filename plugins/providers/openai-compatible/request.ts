import type { ChatCodec, ChatRequest, CodecCall } from '../../../core/index.ts';
import { mergeExtraBody } from '../kit/index.ts';
import { compileRules, isExtraField, mapFields } from './fields.ts';
import { mapMessages, withoutCacheMarks } from './messages.ts';
import type { Differences, Variant } from './spec.ts';

type Defaults = NonNullable<Differences['defaults']>;

/** Makes the request half of a codec: fields by rule, messages, stream options. */
export function createRequestMapper(differences: Differences): ChatCodec['request'] {
  const rulesFor = compileRules(differences);
  const defaultsOf = (variant: Variant | undefined): Defaults | undefined =>
    variant?.defaults ? { ...differences.defaults, ...variant.defaults } : differences.defaults;
  return (asked, call) => {
    const { variant, ruleOf } = rulesFor(asked);
    const told: string[] = [];
    const input = mergeExtraBody(asked, (field) => isExtraField(field, ruleOf), told);
    const fields = mapFields(input, ruleOf);
    const dropped = [...told, ...fields.dropped];
    const defaults = missingDefaults(defaultsOf(variant), input);
    const roles = variant?.roles ?? differences.roles ?? {};
    const mapped = mapMessages(input.messages, roles, differences);
    const messages = differences.messages?.(mapped, input) ?? mapped;
    if (!differences.cacheMarks) stripTools(fields.body);
    const stream = streamFields(input, call, differences);
    return {
      path: differences.path?.('chat/completions', call.model) ?? '/chat/completions',
      body: { model: call.model, messages, ...stream, ...defaults, ...fields.body },
      ...(dropped.length > 0 && { dropped }),
    };
  };
}

/** Takes cache marks off the tools. */
function stripTools(body: Record<string, unknown>): void {
  const { tools } = body;
  if (Array.isArray(tools)) body['tools'] = withoutCacheMarks(tools);
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
