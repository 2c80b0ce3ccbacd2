/**
 * Common description of a model's response, and its representation in the vendors' formats: as JSON, or as the events
 * of a stream.
 */

/** Page that a text cites. */
export interface Page {
  readonly url: string;
  readonly title: string;
}

/** Block of a response. */
export type Piece =
  | { readonly reasoning: string; readonly signature?: string }
  | {
      readonly text: string;
      /** Pages that are cited for the whole text, by the wires that have citations. */
      readonly cites?: readonly Page[];
      /** True to report a log probability of each token, by the wires that have them. */
      readonly logprobs?: boolean;
    }
  | { readonly call: string; readonly id: string; readonly arguments: string; readonly signature?: string };

/** Response of a model; its pieces have this order if the format has one. */
export interface ScriptedOutput {
  readonly pieces: readonly Piece[];
  /** Default: `tool_calls` if a tool was called, otherwise `stop`. */
  readonly finish?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** Default: 20 and 5 tokens. `prompt` includes the others. */
  readonly usage?: {
    readonly prompt: number;
    readonly completion: number;
    readonly cached?: number;
    readonly written?: number;
    /** Tokens of thoughts, which `completion` includes; of the wires that report them. */
    readonly reasoned?: number;
  };
  /** Only Anthropic reports it. */
  readonly stopSequence?: string;
}

export const WIRES = ['openai', 'anthropic', 'gemini', 'mistral', 'deepseek'] as const;
export type Wire = (typeof WIRES)[number];

/** Complete body of a response. */
export function wholeBody(wire: Wire, said: ScriptedOutput): object {
  if (wire === 'anthropic') return anthropicMessage(said);
  if (wire !== 'gemini') return completion(wire, said);
  const tokens = said.pieces.flatMap((piece) => ('text' in piece && piece.logprobs ? bits(piece.text) : []));
  return geminiEvent(said, said.pieces.map(geminiPart), true, tokens);
}

/** Bytes of a stream's events. */
export function streamText(wire: Wire, said: ScriptedOutput): string {
  const events =
    wire === 'anthropic' ? anthropicEvents(said) : wire === 'gemini' ? geminiEvents(said) : chunks(wire, said);
  const named = (event: object): string =>
    'type' in event && wire === 'anthropic' ? `event: ${String(event.type)}\n` : '';
  const text = events.map((event) => `${named(event)}data: ${JSON.stringify(event)}\n\n`).join('');
  return wire === 'anthropic' || wire === 'gemini' ? text : `${text}data: [DONE]\n\n`;
}

/** Text as a model streams it, three characters at a time. */
function bits(text: string): readonly string[] {
  return text.match(/.{1,3}/gsu) ?? [];
}

/** Log probability of each token of a text; a token has three characters. */
const LOGPROB = -0.25;
const tokensOf = (text: string): readonly object[] =>
  bits(text).map((token) => ({ token, logprob: LOGPROB, bytes: [...Buffer.from(token)], top_logprobs: [] }));

interface CitedText {
  readonly text: string;
  readonly cites: readonly Page[];
  /** Position of the text in that of the response. */
  readonly from: number;
}

/** Texts of a response with their citations. */
function citedTexts({ pieces }: ScriptedOutput): readonly CitedText[] {
  let from = 0;
  return pieces.flatMap((piece) => {
    if (!('text' in piece)) return [];
    const cited = { text: piece.text, cites: piece.cites ?? [], from };
    from += piece.text.length;
    return [cited];
  });
}

/** Citations as OpenAI's search models return them. */
function urlCitations({ text, cites, from }: CitedText): readonly object[] {
  const place = { start_index: from, end_index: from + text.length };
  return cites.map((page) => ({ type: 'url_citation', url_citation: { ...place, ...page } }));
}

const isCall = (piece: Piece): boolean => 'call' in piece;

function finishOf({ finish, pieces }: ScriptedOutput): NonNullable<ScriptedOutput['finish']> {
  return finish ?? (pieces.some(isCall) ? 'tool_calls' : 'stop');
}

const usageOf = ({ usage }: ScriptedOutput) => ({
  cached: 0,
  written: 0,
  prompt: 20,
  completion: 5,
  reasoned: 0,
  ...usage,
});

function openaiUsage(said: ScriptedOutput): object {
  const { prompt, completion: written, cached, reasoned } = usageOf(said);
  return {
    prompt_tokens: prompt,
    completion_tokens: written,
    total_tokens: prompt + written,
    prompt_tokens_details: { cached_tokens: cached },
    ...(reasoned > 0 && { completion_tokens_details: { reasoning_tokens: reasoned } }),
  };
}

/** Mistral's reasoning is a part of the content. Other vendors have a separate field. */
function reasoningField(wire: Wire, text: string): object {
  if (wire !== 'mistral') return { reasoning_content: text };
  return { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] };
}

const callOf = (piece: Extract<Piece, { call: string }>, text: string) => ({
  ...{ id: piece.id, type: 'function', function: { name: piece.call, arguments: text } },
});

function completion(wire: Wire, said: ScriptedOutput): object {
  const text = said.pieces.map((piece) => ('text' in piece ? piece.text : '')).join('');
  const reasoning = said.pieces.map((piece) => ('reasoning' in piece ? piece.reasoning : '')).join('');
  const calls = said.pieces.flatMap((piece) => ('call' in piece ? [callOf(piece, piece.arguments)] : []));
  const thought = reasoning === '' ? {} : reasoningField(wire, reasoning);
  const parts = 'content' in thought && Array.isArray(thought.content) ? [...thought.content] : [];
  const cited = citedTexts(said).flatMap(urlCitations);
  const tokens = said.pieces.flatMap((piece) => ('text' in piece && piece.logprobs ? tokensOf(piece.text) : []));
  const logprobs = tokens.length > 0 ? { content: tokens, refusal: null } : null;
  const message = {
    ...{ role: 'assistant', ...thought, content: text === '' && calls.length > 0 ? null : text, refusal: null },
    ...(parts.length > 0 && { content: [...parts, ...(text === '' ? [] : [{ type: 'text', text }])] }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(cited.length > 0 && { annotations: cited }),
  };
  return {
    ...{ id: 'chatcmpl-vendor', object: 'chat.completion', created: 1_790_000_000, model: `${wire}-model` },
    choices: [{ index: 0, message, finish_reason: finishOf(said), logprobs }],
    usage: openaiUsage(said),
  };
}

function chunks(wire: Wire, said: ScriptedOutput): readonly object[] {
  const head = {
    id: 'chatcmpl-vendor',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: `${wire}-model`,
  };
  // Each of Mistral's deltas has a content.
  const own = wire === 'mistral' ? { content: '' } : {};
  const chunkOf = (delta: object, finish_reason: string | null = null, logprobs: object | null = null) => ({
    ...{ ...head, choices: [{ index: 0, delta: { ...own, ...delta }, finish_reason, logprobs }] },
  });
  let calls = 0;
  let texts = 0;
  const cited = citedTexts(said);
  const deltas = said.pieces.flatMap((piece): readonly object[] => {
    if ('reasoning' in piece) return bits(piece.reasoning).map((bit) => chunkOf(reasoningField(wire, bit)));
    if ('text' in piece) {
      const tokens = piece.logprobs ? tokensOf(piece.text) : [];
      const words = bits(piece.text).map((bit, at) => {
        const token = tokens[at];
        return chunkOf({ content: bit }, null, token ? { content: [token], refusal: null } : null);
      });
      const own = cited[texts++];
      const annotations = own ? urlCitations(own) : [];
      return annotations.length > 0 ? [...words, chunkOf({ annotations })] : words;
    }
    const index = calls++;
    const more = bits(piece.arguments).map((bit) => ({ tool_calls: [{ index, function: { arguments: bit } }] }));
    return [{ tool_calls: [{ index, ...callOf(piece, '') }] }, ...more].map((delta) => chunkOf(delta));
  });
  const opening = chunkOf({ role: 'assistant', content: '' });
  const last = chunkOf({}, finishOf(said));
  const usage = openaiUsage(said);
  // Mistral's last chunk has the usage; others send it in a chunk of its own.
  const ending = wire === 'mistral' ? [{ ...last, usage }] : [last, { ...head, choices: [], usage }];
  return [opening, ...deltas, ...ending];
}

const STOP_REASON = Object.freeze({
  ...{ stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' },
});

function anthropicUsage(said: ScriptedOutput): object {
  const { prompt, completion: written, cached, written: cacheWritten } = usageOf(said);
  return {
    input_tokens: prompt - cached - cacheWritten,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWritten,
    output_tokens: written,
  };
}

function anthropicEnd(said: ScriptedOutput): { readonly stop_reason: string; readonly stop_sequence: string | null } {
  if (said.stopSequence !== undefined) return { stop_reason: 'stop_sequence', stop_sequence: said.stopSequence };
  return { stop_reason: STOP_REASON[finishOf(said)], stop_sequence: null };
}

function pageCitations(text: string, pages: readonly Page[]): readonly object[] {
  return pages.map((page) => ({
    ...{ type: 'web_search_result_location', ...page, cited_text: text, encrypted_index: 'vendor' },
  }));
}

function anthropicMessage(said: ScriptedOutput): object {
  const content = said.pieces.map((piece) => {
    if ('text' in piece)
      return {
        type: 'text',
        text: piece.text,
        ...(piece.cites && { citations: pageCitations(piece.text, piece.cites) }),
      };
    if ('call' in piece) return { type: 'tool_use', id: piece.id, name: piece.call, input: parse(piece.arguments) };
    return { type: 'thinking', thinking: piece.reasoning, signature: piece.signature ?? 'sig' };
  });
  return {
    ...{ id: 'msg_vendor', type: 'message', role: 'assistant', model: 'claude-vendor', content },
    ...{ ...anthropicEnd(said), usage: anthropicUsage(said) },
  };
}

function anthropicEvents(said: ScriptedOutput): readonly object[] {
  const message = {
    ...{ ...anthropicMessage({ ...said, pieces: [] }), content: [], stop_reason: null, stop_sequence: null },
    usage: { ...anthropicUsage(said), output_tokens: 1 },
  };
  const blocks = said.pieces.flatMap((piece, index) => {
    const [block, deltas] = anthropicBlock(piece);
    return [
      { type: 'content_block_start', index, content_block: block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ];
  });
  return [
    { type: 'message_start', message },
    { type: 'ping' },
    ...blocks,
    { type: 'message_delta', delta: anthropicEnd(said), usage: anthropicUsage(said) },
    { type: 'message_stop' },
  ];
}

function anthropicBlock(piece: Piece): readonly [block: object, deltas: readonly object[]] {
  if ('text' in piece) {
    const deltas = bits(piece.text).map((text) => ({ type: 'text_delta', text }));
    const cited = pageCitations(piece.text, piece.cites ?? []).map((citation) => ({
      type: 'citations_delta',
      citation,
    }));
    return [{ type: 'text', text: '' }, [...deltas, ...cited]];
  }
  if ('call' in piece) {
    const deltas = bits(piece.arguments).map((bit) => ({ type: 'input_json_delta', partial_json: bit }));
    return [{ type: 'tool_use', id: piece.id, name: piece.call, input: {} }, deltas];
  }
  const deltas = bits(piece.reasoning).map((thinking) => ({ type: 'thinking_delta', thinking }));
  const signature = { type: 'signature_delta', signature: piece.signature ?? 'sig' };
  return [{ type: 'thinking', thinking: '', signature: '' }, [...deltas, signature]];
}

const FINISH = Object.freeze({ stop: 'STOP', length: 'MAX_TOKENS', tool_calls: 'STOP', content_filter: 'SAFETY' });

function geminiPart(piece: Piece): object {
  if ('text' in piece) return { text: piece.text };
  if ('call' in piece)
    return {
      functionCall: { id: piece.id, name: piece.call, args: parse(piece.arguments) },
      ...(piece.signature !== undefined && { thoughtSignature: piece.signature }),
    };
  return { text: piece.reasoning, thought: true };
}

/** Pages of a whole response, with the places that cite them in bytes. */
function geminiGrounding(said: ScriptedOutput): object {
  const cited = citedTexts(said).filter(({ cites }) => cites.length > 0);
  const groundingChunks = cited.flatMap(({ cites }) => cites.map(({ url: uri, title }) => ({ web: { uri, title } })));
  if (groundingChunks.length === 0) return {};
  const whole = said.pieces.map((piece) => ('text' in piece ? piece.text : '')).join('');
  const bytesTo = (place: number): number => Buffer.byteLength(whole.slice(0, place));
  let chunk = 0;
  const groundingSupports = cited.map(({ text, cites, from }) => ({
    segment: { startIndex: bytesTo(from), endIndex: bytesTo(from + text.length), text },
    groundingChunkIndices: cites.map(() => chunk++),
  }));
  return { groundingMetadata: { groundingChunks, groundingSupports } };
}

function geminiLogprobs(texts: readonly string[]): object {
  const chosenCandidates = texts.map((token) => ({ token, logProbability: LOGPROB }));
  if (chosenCandidates.length === 0) return {};
  return { logprobsResult: { chosenCandidates, topCandidates: chosenCandidates.map(() => ({ candidates: [] })) } };
}

function geminiEvent(
  said: ScriptedOutput,
  parts: readonly object[],
  isLast: boolean,
  tokens: readonly string[] = [],
): object {
  const { prompt, completion: written, cached, reasoned } = usageOf(said);
  return {
    candidates: [
      {
        ...{ content: { role: 'model', parts }, index: 0, ...geminiLogprobs(tokens) },
        ...(isLast && { finishReason: FINISH[finishOf(said)], ...geminiGrounding(said) }),
      },
    ],
    usageMetadata: {
      ...{
        promptTokenCount: prompt,
        candidatesTokenCount: isLast ? written - reasoned : 1,
        totalTokenCount: prompt + written,
      },
      cachedContentTokenCount: cached,
      ...(reasoned > 0 && { thoughtsTokenCount: reasoned }),
    },
    ...{ modelVersion: 'gemini-vendor', responseId: 'vendor' },
  };
}

function geminiEvents(said: ScriptedOutput): readonly object[] {
  const events = said.pieces.flatMap((piece): readonly object[] => {
    if ('text' in piece)
      return bits(piece.text).map((text) => geminiEvent(said, [{ text }], false, piece.logprobs ? [text] : []));
    if ('reasoning' in piece)
      return bits(piece.reasoning).map((text) => geminiEvent(said, [{ text, thought: true }], false));
    return [geminiEvent(said, [geminiPart(piece)], false)];
  });
  return [...events, geminiEvent(said, [{ text: '' }], true)];
}

/** Arguments as an object; incomplete arguments become an empty object. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text);
  } catch {
    return {};
  }
}
