import { isObject, type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';
import { toolCallId } from '../kit/index.ts';
import { isMarked, type Mark, writeMark } from './marks.ts';

/** Maximum length of a tool call id that every vendor accepts. */
const MAX_ID = 64;

/** Response of a model in OpenAI's form, with the fields that the package ignored. */
export function readResult(result: JsonObject): JsonObject {
  const writer = createWriter(false);
  const message = new Map<string, unknown>();
  for (const part of readArray(result['content']).map(readObject))
    for (const delta of writer.part(part)) join(message, delta);
  const { id, modelId, timestamp } = readObject(result['response']);
  const dropped = [...namesOf(result['warnings']), ...writer.dropped];
  return {
    ...headOf({ id, modelId, timestamp }),
    choices: [{ index: 0, message: Object.fromEntries(message), ...endOf(result['finishReason']) }],
    ...usageOf(result['usage']),
    ...(dropped.length > 0 && { dropped }),
  };
}

/** Adds a delta to a message. */
function join(message: Map<string, unknown>, delta: JsonObject): void {
  for (const [field, value] of Object.entries(delta)) {
    const before = message.get(field);
    if (typeof value === 'string') message.set(field, typeof before === 'string' ? before + value : value);
    else message.set(field, [...readArray(before), ...readArray(value)]);
  }
}

export interface StreamWriter {
  /** Event streams' data for a part; undefined for a part without an effect. */
  push(part: JsonObject): readonly JsonObject[];
  /** Parts so far that OpenAI's form does not have. */
  readonly dropped: ReadonlySet<string>;
}

/** Converts the parts of a streamed answer to OpenAI's chunks. */
export function createStreamWriter(): StreamWriter {
  const writer = createWriter(true);
  let head: JsonObject = {};
  const chunk = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });
  return {
    dropped: writer.dropped,
    push(part) {
      if (part['type'] === 'response-metadata') {
        head = headOf(part);
        return [];
      }
      if (part['type'] !== 'finish') return writer.part(part).map((delta) => chunk(delta));
      return [
        ...writer.end().map((delta) => chunk(delta)),
        { ...chunk({}, endOf(part['finishReason'])), ...usageOf(part['usage']) },
      ];
    },
  };
}

interface Block {
  text: string;
  /** Last piece, which waits for the metadata at the end of its block. */
  held: string;
  metadata: JsonObject;
}

interface Writer {
  part(part: JsonObject): readonly JsonObject[];
  end(): readonly JsonObject[];
  readonly dropped: ReadonlySet<string>;
}

interface Call {
  readonly index: number;
  written: boolean;
}

/**
 * Converts parts of answers to deltas of OpenAI's form. Parts of whole answers and of streams may be mixed. The last
 * detail of a stream has all marks, since OpenAI's client keeps no other.
 */
function createWriter(isStream: boolean): Writer {
  const texts = new Map<unknown, JsonObject>();
  const blocks = new Map<unknown, Block>();
  const calls = new Map<string, Call>();
  const dropped = new Set<string>();
  let details = 0;

  const detail = (fields: JsonObject): JsonObject => ({ ...fields, format: 'ai-sdk', index: details++ });
  const marks: Mark[] = [];
  const reasoning = (text: string, metadata: unknown, last = text): readonly JsonObject[] => {
    const said = last === '' ? [] : [{ reasoning_content: last }];
    if (!isMarked(metadata)) return said;
    marks.push({ of: 'reasoning', metadata, text });
    const data = writeMark({ of: 'reasoning', metadata });
    if (data === undefined || text === '') return [...said, ...encrypted(data)];
    const kept = detail({ type: 'reasoning.text', text, data });
    return [{ reasoning_content: last, reasoning_details: [kept] }];
  };
  const encrypted = (data: string | undefined): readonly JsonObject[] => {
    if (data !== undefined) return [{ reasoning_details: [detail({ type: 'reasoning.encrypted', data })] }];
    dropped.add('metadata');
    return [];
  };
  const hidden = (of: string, metadata: unknown): readonly JsonObject[] => {
    if (!isMarked(metadata)) return [];
    const mark = { of, metadata };
    marks.push(mark);
    return isStream ? [] : encrypted(writeMark(mark));
  };
  const allMarks = (): readonly JsonObject[] => {
    const isWritten = marks.length === 0 || (marks.length === 1 && marks[0]?.of === 'reasoning');
    return isStream && !isWritten ? encrypted(writeMark(marks)) : [];
  };
  const open = ({ id, providerMetadata }: JsonObject): Block => {
    const block = blocks.get(id) ?? { text: '', held: '', metadata: {} };
    blocks.set(id, block);
    if (isObject(providerMetadata)) block.metadata = { ...block.metadata, ...providerMetadata };
    return block;
  };
  const close = (id: unknown): readonly JsonObject[] => {
    const block = blocks.get(id);
    blocks.delete(id);
    return block ? reasoning(block.text, block.metadata, block.held) : [];
  };
  const begin = (id: string, name: unknown, written: string): JsonObject => {
    const call = { index: calls.size, written: written !== '' };
    calls.set(id, call);
    return { tool_calls: [{ index: call.index, id, type: 'function', function: { name, arguments: written } }] };
  };

  return {
    dropped,
    part(part) {
      const { type, providerMetadata } = part;
      switch (type) {
        case 'text':
          return [...hidden('text', providerMetadata), { content: readString(part['text']) ?? '' }];
        case 'text-start':
        case 'text-delta': {
          if (isMarked(providerMetadata)) texts.set(part['id'], providerMetadata);
          const text = readString(part['delta']);
          return text === undefined ? [] : [{ content: text }];
        }
        case 'text-end':
          return hidden('text', providerMetadata ?? texts.get(part['id']));
        case 'reasoning':
          return reasoning(readString(part['text']) ?? '', providerMetadata);
        case 'reasoning-start':
          open(part);
          return [];
        case 'reasoning-delta': {
          const block = open(part);
          const delta = readString(part['delta']) ?? '';
          if (delta === '') return [];
          const before = block.held;
          block.text += delta;
          block.held = delta;
          return before === '' ? [] : [{ reasoning_content: before }];
        }
        case 'reasoning-end':
          open(part);
          return close(part['id']);
        case 'tool-input-start':
          return part['providerExecuted'] === true ? [] : [begin(idOf(part['id']), part['toolName'], '')];
        case 'tool-input-delta': {
          const call = calls.get(idOf(part['id']));
          const written = readString(part['delta']);
          if (!call || written === undefined) return [];
          call.written = true;
          return [{ tool_calls: [{ index: call.index, function: { arguments: written } }] }];
        }
        case 'tool-call': {
          // The vendor has run it; its sources follow.
          if (part['providerExecuted'] === true) return [];
          const id = idOf(part['toolCallId']);
          const input = typeof part['input'] === 'string' ? part['input'] : JSON.stringify(part['input'] ?? {});
          const call = calls.get(id);
          const said = !call
            ? [begin(id, part['toolName'], input)]
            : call.written || input === ''
              ? []
              : [{ tool_calls: [{ index: call.index, function: { arguments: input } }] }];
          return [...hidden(`call ${id}`, providerMetadata), ...said];
        }
        case 'source':
          return [{ annotations: [annotationOf(part)] }];
        case 'file': {
          const images = fileOf(part);
          if (images.length === 0) dropped.add('file');
          return images;
        }
        case 'reasoning-file':
        case 'custom':
          dropped.add(type);
          return [];
        default:
          return [];
      }
    },
    end: () => [...[...blocks.keys()].flatMap((id) => close(id)), ...allMarks()],
  };
}

function idOf(id: unknown): string {
  return toolCallId(readString(id) ?? '', MAX_ID);
}

/** Page or document that the model names, as OpenAI writes citations. */
function annotationOf({ sourceType, url, title, filename, id }: JsonObject): JsonObject {
  const name = readString(title) ?? readString(url) ?? '';
  if (sourceType === 'url')
    return { type: 'url_citation', url_citation: { url, title: name, start_index: 0, end_index: 0 } };
  return { type: 'file_citation', file_id: readString(id) ?? name, filename: readString(filename) ?? name, index: 0 };
}

/** Image that a model made, as relays write it. */
function fileOf({ mediaType, data }: JsonObject): readonly JsonObject[] {
  if (typeof mediaType !== 'string' || !mediaType.startsWith('image/')) return [];
  const { data: held = data, url: address } = readObject(data);
  const base64 = held instanceof Uint8Array ? Buffer.from(held).toString('base64') : held;
  const url = typeof base64 === 'string' ? `data:${mediaType};base64,${base64}` : address && String(address);
  return typeof url === 'string' ? [{ images: [{ type: 'image_url', image_url: { url } }] }] : [];
}

function headOf({ id, modelId, timestamp }: JsonObject): JsonObject {
  const created = timestamp instanceof Date ? Math.floor(timestamp.getTime() / 1000) : undefined;
  return {
    ...(typeof id === 'string' && { id }),
    ...(typeof modelId === 'string' && { model: modelId }),
    ...(created !== undefined && Number.isFinite(created) && { created }),
  };
}

/** Finish reasons of specifications v2 to v4. */
const ENDS: Readonly<Record<string, string>> = Object.freeze({
  'content-filter': 'content_filter',
  'tool-calls': 'tool_calls',
});

function endOf(reason: unknown): JsonObject {
  const { unified = reason, raw } = readObject(reason);
  const word = readString(unified) ?? 'stop';
  const native = readString(raw);
  // The vendor's own word says more than `other`, and the tables of this wire may know it.
  if (word === 'other' || word === 'unknown') return { finish_reason: native ?? word };
  return { finish_reason: ENDS[word] ?? word, ...(native !== undefined && { native_finish_reason: native }) };
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;

/** Usage of specification v2 is flat, that of v3 and v4 by kind of token. */
function usageOf(usage: unknown): { readonly usage?: JsonObject } {
  const { inputTokens, outputTokens, reasoningTokens, cachedInputTokens } = readObject(usage);
  const input = isObject(inputTokens) ? inputTokens : { total: inputTokens, cacheRead: cachedInputTokens };
  const output = isObject(outputTokens) ? outputTokens : { total: outputTokens, reasoning: reasoningTokens };
  const prompt = count(input['total']);
  const completion = count(output['total']);
  if (prompt === undefined && completion === undefined) return {};
  const [cached, written, thought] = [
    count(input['cacheRead']),
    count(input['cacheWrite']),
    count(output['reasoning']),
  ];
  const details = { ...(cached && { cached_tokens: cached }), ...(written && { cache_write_tokens: written }) };
  return {
    usage: {
      prompt_tokens: prompt ?? 0,
      completion_tokens: completion ?? 0,
      total_tokens: (prompt ?? 0) + (completion ?? 0),
      ...(Object.keys(details).length > 0 && { prompt_tokens_details: details }),
      ...(thought !== undefined && { completion_tokens_details: { reasoning_tokens: thought } }),
    },
  };
}

/** Settings of the AI SDK by the fields of OpenAI's form. */
const FIELDS: Readonly<Record<string, string>> = Object.freeze({
  maxOutputTokens: 'max_tokens',
  topP: 'top_p',
  topK: 'top_k',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  stopSequences: 'stop',
  responseFormat: 'response_format',
  toolChoice: 'tool_choice',
  reasoning: 'reasoning_effort',
  aspectRatio: 'size',
  outputFormat: 'format',
});

const MAX_WARNINGS = 32;

/** Names of what a package ignored, from its warnings. */
export function namesOf(warnings: unknown): readonly string[] {
  const names = readArray(warnings)
    .slice(0, MAX_WARNINGS)
    .map(readObject)
    // The package has written an equivalent.
    .filter(({ type }) => type !== 'compatibility')
    .map(({ type, feature, setting, tool, message }) => {
      const name = readString(feature) ?? readString(setting);
      if (name !== undefined) return FIELDS[name] ?? name;
      if (type === 'unsupported-tool') return `tools.${readString(readObject(tool)['name']) ?? ''}`;
      return readString(message) ?? String(type);
    });
  return [...new Set(names)];
}
