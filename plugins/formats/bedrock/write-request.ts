import {
  type ChatRequest,
  type CodecCall,
  type ContentPart,
  type HttpRequest,
  type JsonObject,
  readObject,
  readString,
  type Schema,
  writeJson,
} from '../../../contract/index.ts';
import {
  applyFieldRules,
  type Conversation,
  type FunctionTool,
  fitCacheMarks,
  fitEffort,
  invalid,
  isEffort,
  type Located,
  mergeExtraBody,
  parseArguments,
  readAnswerFormat,
  readConversation,
  readDataUrl,
  readToolChoice,
  readTools,
  type ToolResult,
  tellDropped,
  textOf,
  toolCallId,
  toolsOfHistory,
  urlOf,
} from '../kit/index.ts';
import { CONVERSE_FIELDS, IMAGES_APART } from './tables.ts';

type Block = JsonObject;

interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: Block[];
}

/** User turn added where the vendor requires one and the caller sent none. */
const OPENING = '(The assistant speaks first.)';

const CACHE_POINT: Block = Object.freeze({ cachePoint: Object.freeze({ type: 'default' }) });

/** Path of a model operation; an id or ARN is one segment. */
export function modelPath(model: string, operation: string): string {
  return `/model/${encodeURIComponent(model)}/${operation}`;
}

/**
 * Writes a chat request for `Converse`. Source:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export function converseRequest(request: ChatRequest, call: CodecCall): HttpRequest {
  const unread: string[] = [];
  const { dialect_fields: fields, ...plain } = mergeExtraBody(request, () => false, unread);
  for (const own of Object.values(readObject(fields)))
    for (const field of Object.keys(readObject(own))) tellDropped(unread, field);
  const dropped = [...unread, ...applyFieldRules(plain, CONVERSE_FIELDS, 'Bedrock')];
  const takesMarks = /(?:^|\.)amazon\.nova/.test(call.model);
  const input = takesMarks ? fitCacheMarks(plain) : plain;
  const conversation = readConversation(input.messages);
  const mark = takesMarks ? markAfter : none;
  const inferenceConfig = readInference(input);
  const toolConfig = readToolConfig(input, conversation, mark, dropped);
  const own = readEffort(input, dropped);
  const results = IMAGES_APART.test(call.model) ? resultsApart : resultBlocks;
  const body = {
    ...converseMessages(conversation, instructionOf(input), { mark, results }, dropped),
    ...(Object.keys(inferenceConfig).length > 0 && { inferenceConfig }),
    ...(toolConfig && { toolConfig }),
    ...(own && { additionalModelRequestFields: own }),
  };
  return {
    path: modelPath(call.model, call.stream ? 'converse-stream' : 'converse'),
    body,
    ...(dropped.length > 0 && { dropped }),
  };
}

type Mark = (owner: unknown) => readonly Block[];

const none: Mark = () => [];
const markAfter: Mark = (owner) => (readObject(readObject(owner)['cache_control'])['type'] ? [CACHE_POINT] : []);

function readInference(input: ChatRequest): JsonObject {
  const { temperature, top_p: topP, stop } = input;
  const maxTokens = input.max_completion_tokens ?? input.max_tokens;
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text.trim() !== '');
  return {
    ...(typeof maxTokens === 'number' && { maxTokens }),
    ...(typeof temperature === 'number' && { temperature: Math.min(temperature, 1) }),
    ...(typeof topP === 'number' && { topP }),
    ...(stops.length > 0 && { stopSequences: stops }),
  };
}

/** Reasoning effort in each model's own fields; undefined for models not known to take one. */
function readEffort(input: ChatRequest, dropped: string[]): JsonObject | undefined {
  const { model, reasoning_effort: wanted } = input;
  if (!isEffort(wanted)) return undefined;
  if (/openai\.gpt-oss/.test(model)) return { reasoning_effort: fitEffort(wanted, ['low', 'medium', 'high']) };
  if (/openai\.gpt-/.test(model)) return { reasoning: { effort: wanted } };
  if (/amazon\.nova-2/.test(model))
    return wanted === 'none'
      ? { reasoningConfig: { type: 'disabled' } }
      : { reasoningConfig: { type: 'enabled', maxReasoningEffort: fitEffort(wanted, ['low', 'medium', 'high']) } };
  if (wanted !== 'none') tellDropped(dropped, 'reasoning_effort');
  return undefined;
}

/** Instruction that replaces a response format. */
function instructionOf(input: ChatRequest): string | undefined {
  const format = readAnswerFormat(input);
  if (format.kind === 'text') return undefined;
  const plain = 'Answer with one JSON object and nothing else: no other text, no code fence.';
  return format.kind === 'json' ? plain : `${plain} It must conform to this JSON Schema:\n${writeJson(format.schema)}`;
}

const ANY_OBJECT: Schema = Object.freeze({ type: 'object', properties: {} });

function readToolConfig(
  input: ChatRequest,
  { turns }: Conversation,
  mark: Mark,
  dropped: string[],
): JsonObject | undefined {
  const declared = readTools(input);
  const { mode, only } = readToolChoice(input, declared);
  const hasCalls = turns.some((turn) => turn.kind === 'assistant' && turn.calls.length > 0);
  if (declared.some(({ strict }) => strict)) tellDropped(dropped, 'tools.strict');
  if (mode === 'none' && hasCalls && declared.length > 0) tellDropped(dropped, 'tool_choice');
  if (!hasCalls && (declared.length === 0 || mode === 'none')) return undefined;
  // The vendor rejects tool calls in the history of a request that declares no tools.
  const tools = declared.length > 0 ? declared : readTools({ ...input, tools: toolsOfHistory(input.messages) });
  const [name] = only ?? [];
  const taken = only && only.length > 1 ? tools.filter((tool) => only.includes(tool.name)) : tools;
  const choice = only?.length === 1 ? { tool: { name } } : mode === 'required' ? { any: {} } : undefined;
  return {
    tools: taken.flatMap((tool) => [toolBlock(tool), ...mark(tool.source)]),
    ...(choice && { toolChoice: choice }),
  };
}

function toolBlock({ name, description, parameters = ANY_OBJECT }: FunctionTool): Block {
  return { toolSpec: { name, ...(description !== undefined && { description }), inputSchema: { json: parameters } } };
}

function converseMessages(
  { system, turns }: Conversation,
  instruction: string | undefined,
  { mark, results }: { readonly mark: Mark; readonly results: typeof resultBlocks },
  dropped: string[],
): { readonly messages: readonly Message[]; readonly system?: readonly Block[] } {
  const messages: Message[] = [];
  const names: Names = { documents: 0 };
  const blocks = (part: Located<ContentPart>): readonly Block[] => [...partBlocks(part, names), ...mark(part.value)];
  for (const turn of turns) {
    if (turn.kind === 'user') append(messages, 'user', turn.parts.flatMap(blocks));
    else if (turn.kind === 'results') append(messages, 'user', results(turn.results, names));
    else {
      const calls = turn.calls.map(({ id, name, arguments: text }) => ({
        toolUse: { toolUseId: toolCallId(id, 64), name, input: parseArguments(text) },
      }));
      const thoughts = thoughtBlocks(turn.message.reasoning_details, dropped);
      const said = [...turn.parts.flatMap(blocks), ...calls];
      append(messages, 'assistant', said.length > 0 ? [...thoughts, ...said] : []);
    }
  }
  const instructions = system.flatMap(({ value }) => [...textBlocks(value.text), ...mark(value)]);
  // The vendor requires a user turn first.
  if (messages.length === 0 && instructions.length > 0) return { messages: [{ role: 'user', content: instructions }] };
  if (messages.length === 0) throw invalid('messages', 'must contain text, an image or other content');
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: [...textBlocks(OPENING)] });
  messages.findLast(({ role }) => role === 'user')?.content.push(...textBlocks(instruction ?? ''));
  return { messages, ...(instructions.length > 0 && { system: instructions }) };
}

/** Appends a turn; adjacent turns of one role are merged. */
function append(messages: Message[], role: Message['role'], content: readonly Block[]): void {
  if (content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role !== role) messages.push({ role, content: [...content] });
  else for (const block of content) last.content.push(block);
}

/** Returns thinking that the vendor signed or encrypted. Unsigned thinking and other vendors' thinking are dropped. */
function thoughtBlocks(
  details: ChatRequest['messages'][number]['reasoning_details'],
  dropped: string[],
): readonly Block[] {
  return (details ?? []).flatMap((detail): readonly Block[] => {
    const { kind, text, data, signature, format } = detail;
    if (format !== 'bedrock') {
      if (data !== undefined || signature !== undefined) tellDropped(dropped, 'reasoning');
      return [];
    }
    if (kind === 'encrypted') return data === undefined ? [] : [{ reasoningContent: { redactedContent: data } }];
    return signature === undefined ? [] : [{ reasoningContent: { reasoningText: { text: text ?? '', signature } } }];
  });
}

interface Names {
  documents: number;
}

function resultBlocks(results: readonly ToolResult[], names: Names): readonly Block[] {
  return results.map((result) => {
    const content = result.parts.flatMap((part) => partBlocks(part, names));
    return resultBlock(result, content.length > 0 ? content : [{ text: '(empty)' }]);
  });
}

/** Results for models that refuse images in them. The images follow the results of their turn, with the id of the call. */
function resultsApart(results: readonly ToolResult[], names: Names): readonly Block[] {
  const apart: Block[] = [];
  const blocks = results.map((result) => {
    const content = result.parts.flatMap((part) => partBlocks(part, names));
    const images = content.filter((block) => 'image' in block);
    const others = content.filter((block) => !('image' in block));
    if (images.length > 0) apart.push({ text: `Result of call ${callIdOf(result)}:` }, ...images);
    const replacement = images.length > 0 ? 'The images follow the tool results.' : '(empty)';
    return resultBlock(result, others.length > 0 ? others : [{ text: replacement }]);
  });
  return [...blocks, ...apart];
}

function resultBlock(result: ToolResult, content: readonly Block[]): Block {
  const isError = result.message.is_error === true;
  return { toolResult: { toolUseId: callIdOf(result), content, ...(isError && { status: 'error' }) } };
}

function callIdOf({ call }: ToolResult): string {
  return toolCallId(call.id, 64);
}

/** A text block; none for blank text, which the vendor rejects. */
function textBlocks(text: string): readonly Block[] {
  return text.trim() === '' ? [] : [{ text }];
}

const IMAGES: Readonly<Record<string, string>> = Object.freeze({
  'image/jpeg': 'jpeg',
  'image/jpg': 'jpeg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
});

const DOCUMENTS: Readonly<Record<string, string>> = Object.freeze({
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'text/html': 'html',
  'text/plain': 'txt',
  'text/markdown': 'md',
});

function partBlocks(part: Located<ContentPart>, names: Names): readonly Block[] {
  const { value, at } = part;
  const text = textOf(value);
  if (text !== undefined) return textBlocks(text);
  if (value.type === 'opaque') return textBlocks(readString(readObject(value)['text']) ?? '');
  if (value.type === 'image_url') {
    const { mediaType, data } = dataOf(urlOf(part), `${at}.image_url.url`);
    const format = IMAGES[mediaType];
    if (format === undefined)
      throw invalid(`${at}.image_url.url`, 'must be a JPEG, PNG, GIF or WebP image for this provider');
    return [{ image: { format, source: { bytes: data } } }];
  }
  if (value.type === 'file') {
    const file = readObject(value['file']);
    const { mediaType, data } = dataOf(readString(file['file_data']) ?? '', `${at}.file.file_data`);
    const format = DOCUMENTS[mediaType];
    if (format === undefined)
      throw invalid(
        `${at}.file.file_data`,
        'must be a PDF, CSV, Word, Excel, HTML, text or Markdown document for this provider',
      );
    names.documents += 1;
    // The vendor restricts the characters of a name and rejects duplicate names.
    const title = (readString(file['filename']) ?? 'document').replace(/[^A-Za-z0-9 ()[\]-]+/g, ' ').trim();
    return [{ document: { format, name: `${title} ${names.documents}`, source: { bytes: data } } }];
  }
  throw invalid(`${at}.type`, 'must be text, image_url or file for this provider');
}

function dataOf(url: string, at: string): { readonly mediaType: string; readonly data: string } {
  const inline = readDataUrl(url);
  if (!inline) throw invalid(at, 'must be a base64 data: URL; this provider does not accept other URLs');
  return inline;
}
