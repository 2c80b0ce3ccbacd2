import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  GatewayError,
  isObject,
  type JsonObject,
  moveNumber,
  readArray,
  readObject,
  readString,
  type Schema,
  withNumbersOf,
  writeJson,
} from '../../../contract/index.ts';
import {
  ANSWER_TOOL,
  type AnswerFormat,
  type CalledTool,
  type Conversation,
  type FunctionTool,
  invalid,
  type Located,
  parseArguments,
  readAnswerFormat,
  readDataUrl,
  readToolChoice,
  readTools,
  type ToolMode,
  type ToolResult,
  tellDropped,
  textOf,
  urlOf,
} from '../kit/index.ts';
import { type AnthropicTraits, anthropicCallId, cacheControlOf, valueOfOpaque } from './tables.ts';
import { isThinkingBlock, placedThinking } from './thinking.ts';
import type { AnthropicMessage, AnthropicRequest, Block, MessagesTool, TextBlock } from './types.ts';

/** User turn added where the vendor requires one and the caller sent none. */
const OPENING = '(The assistant speaks first.)';
const CLOSING = 'Continue.';

/**
 * Writes messages and system texts. `instruction` replaces unsupported fields and ends the user's last turn. At the
 * front, such as in `system`, it would change the prefix between requests with and without it. Thinking from one
 * would then be rejected in the other. `prefill` keeps a final assistant turn.
 */
export function anthropicMessages(
  conversation: Conversation,
  instruction: string | undefined,
  prefill: boolean,
): Pick<AnthropicRequest, 'messages' | 'system'> {
  const messages: GrowingMessage[] = [];
  for (const turn of conversation.turns) {
    if (turn.kind === 'user') append(messages, 'user', cached(turn.parts.flatMap(anthropicBlocks), turn.message));
    else if (turn.kind === 'assistant') append(messages, 'assistant', assistantBlocks(turn));
    else append(messages, 'user', turn.results.map(resultBlock));
  }
  const system = conversation.system.flatMap(({ value }) => textBlocks(value.text, value));
  const written = textBlocks(instruction ?? '');
  // The vendor requires a turn: without any, the system texts become a user turn.
  if (messages.length === 0 && system.length > 0)
    return { messages: [{ role: 'user', content: [...system, ...written] }] };
  if (messages.length === 0) throw invalid('messages', 'must contain text, an image or other content');
  if (messages[0]?.role === 'assistant') messages.unshift({ role: 'user', content: [...textBlocks(OPENING)] });
  if (messages.at(-1)?.role === 'assistant') {
    if (prefill) trimPrefill(messages);
    else messages.push({ role: 'user', content: [...textBlocks(CLOSING)] });
  }
  messages.findLast(({ role }) => role === 'user')?.content.push(...written);
  return { ...(system.length > 0 && { system }), messages };
}

/** Mutable message: copying it for every turn would be slow with many short ones. */
interface GrowingMessage extends AnthropicMessage {
  readonly content: Block[];
}

/**
 * Appends a turn. Adjacent turns of one role are merged, so tool results and the user's text after them are one
 * message.
 */
function append(messages: GrowingMessage[], role: AnthropicMessage['role'], content: readonly Block[]): void {
  if (content.length === 0) return;
  const last = messages.at(-1);
  if (last?.role !== role) messages.push({ role, content: [...content] });
  else for (const block of content) last.content.push(block);
}

function assistantBlocks(turn: Extract<Conversation['turns'][number], { kind: 'assistant' }>): readonly Block[] {
  const placed = new Map<string, readonly Block[]>();
  for (const [index, block] of placedThinking(turn.message).entries()) placed.set(`reasoning:${index}`, block);
  for (const { value, at } of turn.parts) {
    const index = /\.content\[(\d+)\]$/.exec(at)?.[1] ?? '0';
    placed.set(`content:${index}`, assistantPart(value, at));
  }
  for (const [index, call] of turn.calls.entries()) placed.set(`tool:${index}`, [callBlock(call)]);
  const order = (turn.message.order ?? []).filter((entry) => placed.has(entry));
  const blocks = [...new Set([...order, ...placed.keys()])].flatMap((entry) => placed.get(entry) ?? []);
  // A turn needs more than thinking.
  const isTurn = blocks.some((block) => !isThinkingBlock(block));
  return isTurn ? cached(blocks, turn.message) : [];
}

function assistantPart(value: ContentPart, at: string): readonly Block[] {
  const text = textOf(value);
  if (text !== undefined) return textBlocks(text, value);
  if (value.type === 'opaque') return anthropicBlocks({ value, at });
  throw invalid(`${at}.type`, 'must be text or refusal in an assistant message');
}

function callBlock({ id, name, arguments: text, source }: CalledTool): Block {
  return {
    ...readObject(readObject(source['dialect_fields'])['messages']),
    type: 'tool_use',
    id: anthropicCallId(id),
    name,
    input: parseArguments(text),
    ...cacheControlOf(source),
  };
}

function resultBlock({ call, parts, message }: ToolResult): Block {
  const blocks = parts.flatMap(anthropicBlocks);
  const marked = [message, ...blocks].find((source) => 'cache_control' in source);
  const content = blocks.map(({ cache_control: _mark, ...block }) => block);
  return {
    type: 'tool_result',
    tool_use_id: anthropicCallId(call.id),
    ...(content.length > 0 && { content }),
    ...(message.is_error === true && { is_error: true }),
    ...cacheControlOf(marked),
  };
}

/** Moves the `cache_control` of a message to its last block. */
function cached<B extends Block>(blocks: readonly B[], message: ChatMessage): readonly B[] {
  const control = cacheControlOf(message);
  const last = blocks.at(-1);
  return last && control.cache_control ? [...blocks.slice(0, -1), { ...last, ...control }] : blocks;
}

/** The vendor rejects trailing white space in a text to continue. */
function trimPrefill(messages: readonly GrowingMessage[]): void {
  const last = messages.at(-1);
  const block = last?.content.pop();
  if (last && block)
    last.content.push(block.type === 'text' ? { ...block, text: String(block['text']).trimEnd() } : block);
}

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** A text block; none for blank text, which the vendor rejects. */
function textBlocks(text: string, source?: unknown): readonly TextBlock[] {
  return text.trim() === '' ? [] : [{ type: 'text', text, ...citationsOf(source), ...cacheControlOf(source) }];
}

/** Vendor's citations of a text. The vendor could not verify other citations. */
function citationsOf(source: unknown): { readonly citations?: readonly unknown[] } {
  const citations = readArray(readObject(source)['annotations']).flatMap((annotation) => ownValue(annotation) ?? []);
  return citations.length > 0 ? { citations } : {};
}

/** Value of an `opaque` part or tool of this format; annotations also have another type. */
function ownValue(thing: unknown): Block | undefined {
  return readObject(thing)['type'] === 'opaque' ? valueOfOpaque(thing) : undefined;
}

/**
 * Converts a part of a message to blocks (none for blank text). Throws `invalid_request` for a part that the vendor
 * does not accept.
 */
function anthropicBlocks(part: Located<ContentPart>): readonly Block[] {
  const own = ownValue(part.value);
  if (own) return [own];
  const text = textOf(part.value);
  if (text !== undefined) return textBlocks(text, part.value);
  switch (part.value.type) {
    case 'image_url':
      return [{ ...imageBlock(urlOf(part), `${part.at}.image_url.url`), ...cacheControlOf(part.value) }];
    case 'file':
      return [{ ...fileBlock(part), ...cacheControlOf(part.value) }];
    case 'opaque':
      // A block of another format is replaced by its text, if any.
      return textBlocks(readString(part.value['text']) ?? '');
    default:
      throw invalid(`${part.at}.type`, 'must be text, image_url or file for this provider');
  }
}

function imageBlock(url: string, at: string): Block {
  const inline = readDataUrl(url);
  if (!inline) {
    if (/^https:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } };
    throw invalid(at, 'must be an https: URL or a base64 data: URL');
  }
  const mediaType = inline.mediaType === 'image/jpg' ? 'image/jpeg' : inline.mediaType;
  if (!IMAGE_TYPES.has(mediaType)) throw invalid(at, 'must be a JPEG, PNG, GIF or WebP image for this provider');
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: inline.data } };
}

function fileBlock({ value, at }: Located<ContentPart>): Block {
  const file = readObject(value['file']);
  const [title, context] = [readString(file['filename']), readString(value['context'])];
  const documentOf = (source: JsonObject): Block => ({
    type: 'document',
    source,
    ...(title !== undefined && { title }),
    ...(context !== undefined && { context }),
    ...(isObject(value['citations']) && { citations: value['citations'] }),
  });
  const own = readObject(readObject(readObject(value['dialect_fields'])['messages'])['source']);
  if (own['type'] === 'content') return documentOf({ type: 'content', content: own['content'] });
  const url = file['file_url'] ?? file['file_data'] ?? file['file_id'];
  if (typeof url === 'string' && /^https:\/\//i.test(url)) return documentOf({ type: 'url', url });
  const inline = typeof url === 'string' ? readDataUrl(url) : undefined;
  if (inline && IMAGE_TYPES.has(inline.mediaType)) return imageBlock(String(url), at);
  if (inline?.mediaType === 'application/pdf')
    return documentOf({ type: 'base64', media_type: inline.mediaType, data: inline.data });
  if (inline?.mediaType === 'text/plain') {
    const data = Buffer.from(inline.data, 'base64').toString('utf8');
    return documentOf({ type: 'text', media_type: 'text/plain', data });
  }
  const wanted = 'as a base64 data: URL of a PDF, a plain text or an image, or an https: URL as `file_id`';
  throw invalid(`${at}.file`, `must contain \`file_data\` ${wanted}`);
}

const ANY_OBJECT: Schema = { type: 'object', properties: {} };
const JSON_INSTRUCTION =
  'When you answer in text, the text must be one valid JSON object and nothing else: no prose, no code fence.';

/** Splits function tools from vendor tools; tools of other formats are dropped. */
function splitTools(
  input: ChatRequest,
  dropped: string[],
): { readonly functions: ChatRequest; readonly others: readonly Block[] } {
  const isOpaque = (tool: unknown): boolean => isObject(tool) && tool['type'] === 'opaque';
  const opaque = readArray(input.tools).filter(isOpaque);
  if (opaque.length === 0) return { functions: input, others: [] };
  const others = opaque.flatMap((tool) => ownValue(tool) ?? []);
  if (others.length < opaque.length) tellDropped(dropped, 'tools');
  return { functions: { ...input, tools: (input.tools ?? []).filter((tool) => !isOpaque(tool)) }, others };
}

/** Vendor tool, for a tool choice that names it. */
function asNamed(tool: Block): FunctionTool {
  return { name: readString(tool['name']) ?? '', strict: false, source: tool, at: 'tools' };
}

/** Tools and response format, planned together. */
interface ToolPlan {
  readonly tools: readonly MessagesTool[];
  readonly choice?: JsonObject;
  /** Field of `output_config`. */
  readonly format?: JsonObject;
  /** Text in place of unsupported options. */
  readonly instruction?: string;
}

/** Plans tools, tool choice and response format together; adds unsupported options to `dropped`. */
export function planTools(
  input: ChatRequest,
  conversation: Conversation,
  traits: AnthropicTraits,
  dropped: string[],
): ToolPlan {
  const { functions, others } = splitTools(input, dropped);
  const tools = readTools(functions);
  const choice = readToolChoice(input, [...tools, ...others.map(asNamed)]);
  const declared = [
    ...tools.filter(({ name }) => isOffered(name, choice)).map((tool) => declare(tool, traits, dropped)),
    ...others,
  ];
  const plan: ToolPlan = {
    tools: declared.length > 0 ? declared : replayedTools(conversation),
    ...chosen(choice, declared, traits, dropped),
  };
  const wanted = readAnswerFormat(input);
  // A response format has no effect on a forced call.
  if (wanted.kind === 'text' || choice.mode === 'required') return withParallel(plan, input);
  return withParallel(withFormat(plan, wanted, choice, traits), input);
}

/** The vendor has no list of allowed tools, so others are omitted. They stay if the choice names one tool. */
function isOffered(name: string, { mode, only }: ToolMode): boolean {
  const isNamed = mode === 'required' && only?.length === 1;
  return only === undefined || isNamed || only.includes(name);
}

function declare(tool: FunctionTool, traits: AnthropicTraits, dropped: string[]): MessagesTool {
  const schema = withNumbersOf({ ...ANY_OBJECT, ...tool.parameters }, tool.parameters ?? ANY_OBJECT);
  if (!isToolSchema(schema)) {
    throw invalid(`${tool.at}.function.parameters`, 'must be an object schema without a choice at its root');
  }
  const strict = tool.strict && traits.jsonSchema && fitsStrictly(schema);
  if (tool.strict && !strict) tellDropped(dropped, 'tools.strict');
  const { eager_input_streaming: eager } = tool.source;
  return {
    ...readObject(readObject(tool.source['dialect_fields'])['messages']),
    name: tool.name,
    ...(tool.description && { description: tool.description }),
    input_schema: strict ? strictSchema(schema) : schema,
    ...(strict && { strict }),
    ...(typeof eager === 'boolean' && { eager_input_streaming: eager }),
    ...cacheControlOf({ ...cacheControlOf(tool.source['function']), ...cacheControlOf(tool.source) }),
  };
}

/** The vendor rejects tool calls in the history of a request that declares no tools. */
function replayedTools({ turns }: Conversation): readonly MessagesTool[] {
  return toolsNamed(turns.flatMap((turn) => (turn.kind === 'assistant' ? turn.calls : [])).map(({ name }) => name));
}

/** Tools for which only the names are known. */
export function toolsNamed(names: readonly string[]): readonly MessagesTool[] {
  return [...new Set(names)].map((name) => ({ name, input_schema: ANY_OBJECT }));
}

function chosen(
  { mode, only }: ToolMode,
  tools: readonly unknown[],
  traits: AnthropicTraits,
  dropped: string[],
): Pick<ToolPlan, 'choice' | 'instruction'> {
  if (tools.length === 0 || mode === 'none') return { choice: { type: 'none' } };
  if (mode === 'auto') return { choice: { type: 'auto' } };
  const [name] = only ?? [];
  const single = only?.length === 1 && name !== undefined;
  if (traits.forcedTools) return { choice: single ? { type: 'tool', name } : { type: 'any' } };
  dropped.push('tool_choice');
  const which = single ? `the tool \`${name}\`` : 'one of your tools';
  return { choice: { type: 'auto' }, instruction: `You must answer by calling ${which}. Do not answer in text.` };
}

function withFormat(
  plan: ToolPlan,
  wanted: Exclude<AnswerFormat, { kind: 'text' }>,
  { mode }: ToolMode,
  traits: AnthropicTraits,
): ToolPlan {
  if (wanted.kind === 'json') return instructed(plan, JSON_INSTRUCTION);
  const { schema, description } = wanted;
  if (traits.jsonSchema && fitsStrictly(schema)) {
    return { ...plan, format: { type: 'json_schema', schema: strictSchema(schema) } };
  }
  // An additional tool would change the prefix, after which the model's thinking may be rejected.
  if (!traits.forcedTools || traits.preservedThinking || !isToolSchema(schema)) {
    return instructed(plan, `${JSON_INSTRUCTION} It must conform to this JSON Schema:\n${writeJson(schema)}`);
  }
  const tool: MessagesTool = {
    name: ANSWER_TOOL,
    description: description ?? 'Gives the final answer to the user. Call it when no other tool is needed.',
    input_schema: withNumbersOf({ type: 'object', ...schema }, schema),
  };
  const free = mode === 'auto' && plan.choice?.['type'] === 'auto';
  return {
    ...plan,
    tools: [...plan.tools, tool],
    choice: free ? { type: 'any' } : { type: 'tool', name: ANSWER_TOOL },
  };
}

function instructed(plan: ToolPlan, text: string): ToolPlan {
  return { ...plan, instruction: plan.instruction ? `${plan.instruction} ${text}` : text };
}

function withParallel(plan: ToolPlan, input: ChatRequest): ToolPlan {
  if (plan.tools.length === 0) {
    const { choice: _choice, ...rest } = plan;
    return rest;
  }
  if (input.parallel_tool_calls !== false || !plan.choice || plan.choice['type'] === 'none') return plan;
  return { ...plan, choice: { ...plan.choice, disable_parallel_tool_use: true } };
}

/**
 * JSON Schema keywords that structured outputs and strict tools accept. Source:
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs
 */
const FORMATS: ReadonlySet<unknown> = new Set(
  'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '),
);
const KEPT: ReadonlySet<string> = new Set('$ref type title description enum const default required'.split(' '));
const SILENT: ReadonlySet<string> = new Set('$schema $id $comment examples deprecated readOnly writeOnly'.split(' '));

const MAX_DEPTH = 64;
const MAX_VISITS = 5000;
/** Vendor's limit for the whole schema. */
const MAX_OPTIONAL = 24;

/**
 * Converts a schema to the vendor's subset. Constraints that the vendor does not enforce move into the description,
 * for the model to read.
 */
export function strictSchema(schema: Schema, depth = 0): Schema {
  if (depth > MAX_DEPTH)
    throw new GatewayError('invalid_request', `A JSON Schema is nested deeper than ${MAX_DEPTH} levels. Flatten it.`);
  const clean = (value: unknown): unknown => (isObject(value) ? strictSchema(value, depth + 1) : {});
  const cleanAll = (values: unknown): Schema =>
    Object.fromEntries(Object.entries(readObject(values)).map(([name, value]) => [name, clean(value)]));
  const result: JsonObject = {};
  const unenforced: string[] = [];
  for (const [word, value] of Object.entries(schema)) {
    if (word === 'properties' || word === '$defs' || word === 'definitions') result[word] = cleanAll(value);
    else if (word === 'anyOf' || word === 'oneOf') result['anyOf'] = readArray(value).map(clean);
    else if (word === 'allOf') result[word] = readArray(value).map(clean);
    else if (word === 'items') result[word] = clean(value);
    else if (word === 'format' && FORMATS.has(value)) result[word] = value;
    else if (word === 'minItems' && (value === 0 || value === 1)) result[word] = value;
    else if (KEPT.has(word)) result[word] = value;
    else if (word !== 'additionalProperties' && !SILENT.has(word)) unenforced.push(word);
  }
  if (isObjectSchema(schema)) result['additionalProperties'] = false;
  if (unenforced.length > 0) {
    const description = typeof schema['description'] === 'string' ? `${schema['description']}\n\n` : '';
    const written = unenforced.map((word) => `${word}: ${writeMember(schema, word)}`);
    result['description'] = `${description}{${written.join(', ')}}`;
  }
  return withNumbersOf(result, schema);
}

/** Writes one member of a schema as JSON. */
function writeMember(schema: Schema, word: string): string {
  const holder: readonly unknown[] = [schema[word]];
  moveNumber(schema, word, holder, 0);
  return writeJson(holder).slice(1, -1);
}

/** Returns true if the vendor can enforce a schema completely: no recursion, no maps, few optional fields. */
export function fitsStrictly(schema: Schema): boolean {
  let visits = 0;
  let optional = 0;
  const fits = (node: unknown, path: readonly string[]): boolean => {
    visits += 1;
    if (visits > MAX_VISITS || path.length > MAX_DEPTH) return false;
    if (Array.isArray(node)) return node.every((item) => fits(item, path));
    if (!isObject(node)) return true;
    const reference = node['$ref'];
    if (typeof reference === 'string') {
      return !path.includes(reference) && fits(resolve(schema, reference), [...path, reference]);
    }
    if (isOpen(node)) return false;
    const required = new Set(readArray(node['required']));
    const properties = readObject(node['properties']);
    optional += Object.keys(properties).filter((name) => !required.has(name)).length;
    if (optional > MAX_OPTIONAL) return false;
    const inner = ['items', 'anyOf', 'oneOf', 'allOf'].map((word) => node[word]);
    return [...inner, Object.values(properties)].every((child) => fits(child, path));
  };
  return fits(schema, []);
}

/** Returns true for a valid tool schema: an object at the root, without alternatives there. */
export function isToolSchema(schema: Schema): boolean {
  return isObjectSchema(schema) && !['anyOf', 'oneOf', 'allOf', '$ref'].some((word) => word in schema);
}

function isObjectSchema(schema: Schema): boolean {
  return schema['type'] === 'object' || isObject(schema['properties']);
}

function isOpen(schema: JsonObject): boolean {
  const { additionalProperties: more, patternProperties, properties, type } = schema;
  if (more === true || isObject(more) || isObject(patternProperties)) return true;
  return type === 'object' && properties === undefined && more !== false;
}

function resolve(root: Schema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  const steps = reference.slice(1).split('/').slice(1);
  return steps.reduce<unknown>((node, step) => {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return isObject(node) && Object.hasOwn(node, name) ? node[name] : undefined;
  }, root);
}
