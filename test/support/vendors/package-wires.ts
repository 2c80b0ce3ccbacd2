/** Responses of vendors as packages of the AI SDK read them: whole, or as the events of a stream. */
import { amazonStream } from './amazon-frames.ts';
import { responsesBody, responsesEvents, responsesText } from './responses-wire.ts';
import { type RecordedRequest, respondWith, type Script } from './scripted-upstream.ts';
import { type Piece, type ScriptedOutput, streamText, type Wire, wholeBody } from './vendor-wires.ts';

/** Wire of a package. Groq's is OpenAI's with differences, Hugging Face's that of OpenAI's Responses. */
export type PackageWire = Wire | 'groq' | 'cohere' | 'bedrock' | 'responses' | 'huggingface';

export function isStreamed({ path: sent, body }: RecordedRequest): boolean {
  return sent.includes('stream') || (JSON.parse(body.toString() || '{}') as { stream?: unknown }).stream === true;
}

/** Answers in the wire's format, whole or streamed as the request says. */
export const respondAs =
  (wire: PackageWire, said: ScriptedOutput): Script =>
  ({ request, send }) => {
    if (!isStreamed(request)) return send(respondWith(200, wholeOf(wire, said)));
    return send(respondWith(200, streamOf(wire, said), { 'content-type': streamType(wire) }));
  };

/** Content type of the wire's streams. */
export function streamType(wire: PackageWire): string {
  return wire === 'bedrock' ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
}

/** Whole response in the wire's format. */
export function wholeOf(wire: PackageWire, said: ScriptedOutput): object {
  if (wire === 'groq') return JSON.parse(asGroq(JSON.stringify(wholeBody('openai', said)))) as object;
  if (wire === 'cohere') return cohereBody(said);
  if (wire === 'bedrock') return bedrockBody(said);
  if (wire === 'responses') return responsesBody({ ...said, encrypted: 'c2VhbGVk' });
  if (wire === 'huggingface') return asHuggingFace(responsesBody(said)) as object;
  return wholeBody(wire, said);
}

/** Bytes of a stream in the wire's format. */
export function streamOf(wire: PackageWire, said: ScriptedOutput): string | Buffer {
  if (wire === 'groq') return asGroq(streamText('openai', said));
  if (wire === 'cohere') return eventsText(cohereEvents(said));
  if (wire === 'bedrock') return amazonStream(eventsText(bedrockEvents(said)));
  if (wire === 'responses') return responsesText(responsesEvents({ ...said, encrypted: 'c2VhbGVk' }));
  if (wire === 'huggingface') return responsesText(responsesEvents(said).map((event) => asHuggingFace(event)));
  return streamText(wire, said);
}

type Event = readonly [name: string, data: object];

function eventsText(events: readonly Event[]): string {
  return events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('');
}

/** Groq names thoughts otherwise, and its streams have the usage in a place of their own. */
function asGroq(text: string): string {
  return text
    .replaceAll('"reasoning_content"', '"reasoning"')
    .replace(/"choices":\[\],"usage":(.*)\}\n/, '"choices":[],"x_groq":{"usage":$1}}\n');
}

/** Hugging Face has the thought itself, without a summary. */
function asHuggingFace(value: object): Readonly<Record<string, unknown>> {
  const text = JSON.stringify(value)
    .replaceAll('response.reasoning_summary_text.', 'response.reasoning_text.')
    .replaceAll('"summary_index":0', '"content_index":0')
    .replaceAll(
      /"summary":\[\{"type":"summary_text","text":("[^"]*")\}\]/g,
      '"content":[{"type":"reasoning_text","text":$1}]',
    )
    .replaceAll('"type":"reasoning","summary":[]', '"type":"reasoning","content":[]');
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
}

/** Text as a model streams it, three characters at a time. */
const bits = (text: string): readonly string[] => text.match(/.{1,3}/gsu) ?? [];

const called = ({ pieces }: ScriptedOutput): readonly Extract<Piece, { call: string }>[] =>
  pieces.filter((piece) => 'call' in piece);

const COHERE_END = Object.freeze({
  stop: 'COMPLETE',
  length: 'MAX_TOKENS',
  tool_calls: 'TOOL_CALL',
  content_filter: 'ERROR',
});

function cohereEnd(said: ScriptedOutput): object {
  const { prompt = 20, completion = 5, cached = 0 } = said.usage ?? {};
  const tokens = { input_tokens: prompt, output_tokens: completion };
  return {
    finish_reason: COHERE_END[said.finish ?? (called(said).length > 0 ? 'tool_calls' : 'stop')],
    usage: { billed_units: tokens, tokens, cached_tokens: cached },
  };
}

const cohereCall = ({ call, id }: Extract<Piece, { call: string }>, written: string): object => ({
  ...{ id, type: 'function', function: { name: call, arguments: written } },
});

/** Source: https://docs.cohere.com/reference/chat */
function cohereBody(said: ScriptedOutput): object {
  const content = said.pieces.flatMap((piece): readonly object[] => {
    if ('reasoning' in piece) return [{ type: 'thinking', thinking: piece.reasoning }];
    return 'text' in piece ? [{ type: 'text', text: piece.text }] : [];
  });
  const calls = called(said).map((piece) => cohereCall(piece, piece.arguments));
  const message = {
    role: 'assistant',
    ...(content.length > 0 && { content }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return { id: 'cohere-vendor', message, ...cohereEnd(said) };
}

/** Source: https://docs.cohere.com/v2/docs/streaming */
function cohereEvents(said: ScriptedOutput): readonly Event[] {
  const event = (type: string, fields: object): Event => [type, { type, ...fields }];
  const within = (message: object) => ({ delta: { message } });
  const pieces = said.pieces.flatMap((piece, index): readonly Event[] => {
    if ('call' in piece)
      return [
        event('tool-call-start', { index, ...within({ tool_calls: cohereCall(piece, '') }) }),
        ...bits(piece.arguments).map((bit) =>
          event('tool-call-delta', { index, ...within({ tool_calls: { function: { arguments: bit } } }) }),
        ),
        event('tool-call-end', { index }),
      ];
    const [field, text] = 'text' in piece ? ['text', piece.text] : ['thinking', piece.reasoning];
    return [
      event('content-start', { index, ...within({ content: { type: field, [field]: '' } }) }),
      ...bits(text).map((bit) => event('content-delta', { index, ...within({ content: { [field]: bit } }) })),
      event('content-end', { index }),
    ];
  });
  const start = event('message-start', { id: 'cohere-vendor', ...within({ role: 'assistant' }) });
  return [start, ...pieces, event('message-end', { delta: cohereEnd(said) })];
}

const BEDROCK_END = Object.freeze({
  ...{ stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'content_filtered' },
});

const bedrockEnd = (said: ScriptedOutput): { readonly stopReason: string } => ({
  stopReason: BEDROCK_END[said.finish ?? (called(said).length > 0 ? 'tool_calls' : 'stop')],
});

function bedrockUsage({ usage }: ScriptedOutput): object {
  const { prompt = 20, completion = 5, cached = 0, written = 0 } = usage ?? {};
  return {
    ...{ inputTokens: prompt - cached - written, outputTokens: completion, totalTokens: prompt + completion },
    ...{ cacheReadInputTokens: cached, cacheWriteInputTokens: written },
  };
}

/** Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html */
function bedrockBody(said: ScriptedOutput): object {
  const content = said.pieces.map((piece) => {
    if ('text' in piece) return { text: piece.text };
    if ('call' in piece)
      return { toolUse: { toolUseId: piece.id, name: piece.call, input: JSON.parse(piece.arguments) as unknown } };
    return { reasoningContent: { reasoningText: { text: piece.reasoning, signature: piece.signature ?? 'sig' } } };
  });
  return {
    ...{ metrics: { latencyMs: 12 }, output: { message: { role: 'assistant', content } } },
    ...{ ...bedrockEnd(said), usage: bedrockUsage(said) },
  };
}

/** Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html */
function bedrockEvents(said: ScriptedOutput): readonly Event[] {
  const blocks = said.pieces.flatMap((piece, contentBlockIndex): readonly Event[] => {
    const delta = (value: object): Event => ['contentBlockDelta', { contentBlockIndex, delta: value }];
    const stop: Event = ['contentBlockStop', { contentBlockIndex }];
    if ('text' in piece) return [...bits(piece.text).map((text) => delta({ text })), stop];
    if ('call' in piece) {
      const start = { toolUse: { toolUseId: piece.id, name: piece.call } };
      const inputs = bits(piece.arguments).map((input) => delta({ toolUse: { input } }));
      return [['contentBlockStart', { contentBlockIndex, start }], ...inputs, stop];
    }
    const thoughts = bits(piece.reasoning).map((text) => delta({ reasoningContent: { text } }));
    return [...thoughts, delta({ reasoningContent: { signature: piece.signature ?? 'sig' } }), stop];
  });
  return [
    ['messageStart', { role: 'assistant' }],
    ...blocks,
    ['messageStop', bedrockEnd(said)],
    ['metadata', { usage: bedrockUsage(said), metrics: { latencyMs: 12 } }],
  ];
}
