import {
  type DialectNeed,
  GatewayError,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Tool,
} from '../../../contract/index.ts';
import { namespacedName, TOOL_SEARCH, TOOL_SEARCH_OUTPUT } from './tables.ts';
import type { Item, ResponsesBody } from './types.ts';

/** Tool under its name in the caller's request. */
export interface CallerTool {
  readonly kind: 'function' | 'custom' | 'search';
  readonly name: string;
  readonly namespace?: string;
}

/** Tools of a request, by the names sent to models. */
export interface ToolTable {
  readonly tools: readonly Tool[];
  /** Path of each tool in the caller's body. */
  readonly places: readonly string[];
  readonly callers: ReadonlyMap<string, CallerTool>;
  /** Types of tools that only vendors of this format have. */
  readonly hosted: readonly string[];
  readonly needs: readonly DialectNeed[];
}

interface Draft {
  readonly tools: Tool[];
  readonly places: string[];
  readonly callers: Map<string, CallerTool>;
  readonly hosted: string[];
  readonly needs: DialectNeed[];
}

/** Tools that the caller runs; they require only a vendor whose models know them. */
const CLIENT_TOOLS: ReadonlySet<string> = new Set(['local_shell', 'apply_patch', TOOL_SEARCH]);

const tables = new WeakMap<ResponsesBody, ToolTable>();

/** Tools of a body, including those in its input. Throws for two tools with the same resulting name. */
export function readToolTable(body: ResponsesBody): ToolTable {
  const known = tables.get(body);
  if (known) return known;
  const draft: Draft = { tools: [], places: [], callers: new Map(), hosted: [], needs: [] };
  addTools(draft, body.tools, 'tools');
  for (const [index, item] of readArray(body.input).entries()) {
    if (!isObject(item) || !Array.isArray(item['tools'])) continue;
    const place = `input[${index}].tools`;
    if (item['type'] === 'additional_tools') addTools(draft, item['tools'], place);
    else if (item['type'] === TOOL_SEARCH_OUTPUT) addSearched(draft, item['tools'], place);
    // Tools listed by an MCP server are names only: none of them runs.
    else if (item['type'] !== 'mcp_list_tools') addFoundTools(draft, item['tools'], place);
  }
  tables.set(body, draft);
  return draft;
}

/** Adds tools that a search of the caller found. Several searches may find the same tool. */
function addSearched(draft: Draft, tools: unknown, at: string, namespace?: Item): void {
  for (const [index, tool] of readArray(tools).entries()) {
    if (!isObject(tool)) continue;
    const place = `${at}[${index}]`;
    if (tool['type'] === 'namespace' && !namespace) addSearched(draft, tool['tools'], `${place}.tools`, tool);
    else if (!draft.callers.has(fullName(tool, namespace))) addTool(draft, tool, place, namespace);
  }
}

function fullName({ name }: JsonObject, namespace: Item | undefined): string {
  return namespacedName(readString(namespace?.['name']), readString(name) ?? '');
}

/** Vendor tools among those found earlier; the caller's own tools there are past calls. */
function addFoundTools(draft: Draft, tools: unknown, at: string): void {
  for (const [index, tool] of readArray(tools).entries()) {
    if (!isObject(tool)) continue;
    const place = `${at}[${index}]`;
    if (Array.isArray(tool['tools'])) addFoundTools(draft, tool['tools'], `${place}.tools`);
    else if (tool['type'] !== 'function' && tool['type'] !== 'custom') addHosted(draft, tool, place);
  }
}

function addTools(draft: Draft, tools: unknown, at: string, namespace?: Item): void {
  for (const [index, tool] of readArray(tools).entries())
    if (isObject(tool)) addTool(draft, tool, `${at}[${index}]`, namespace);
}

function addTool(draft: Draft, tool: JsonObject, at: string, namespace: Item | undefined): void {
  const { type } = tool;
  if (type === 'namespace' && !namespace) addTools(draft, tool['tools'], `${at}.tools`, tool);
  else if (type === 'function' || type === 'custom') addOwn(draft, tool, type, at, namespace);
  else if (isSearchOfCaller(tool) && !draft.callers.has(TOOL_SEARCH)) addSearch(draft, tool, at);
  else addHosted(draft, tool, at);
}

/** Returns whether a tool is the search that the caller runs over its deferred tools. */
function isSearchOfCaller({ type, execution }: JsonObject): boolean {
  return type === TOOL_SEARCH && execution === 'client';
}

/** Adds the search as a function, which models of all vendors can call. */
function addSearch(draft: Draft, tool: JsonObject, at: string): void {
  const { parameters, description = 'Searches for further tools.' } = tool;
  const schema = isObject(parameters) ? parameters : SEARCH_PARAMETERS;
  draft.callers.set(TOOL_SEARCH, { kind: 'search', name: TOOL_SEARCH });
  draft.places.push(at);
  draft.tools.push(functionTool(TOOL_SEARCH, { parameters: schema, description }, undefined));
}

const SEARCH_PARAMETERS = Object.freeze({
  type: 'object',
  properties: { query: { type: 'string', description: 'Words that describe the wanted tools.' } },
  required: ['query'],
  additionalProperties: false,
});

/** Adds a tool that the caller runs. */
function addOwn(
  draft: Draft,
  tool: JsonObject,
  type: CallerTool['kind'],
  at: string,
  namespace: Item | undefined,
): void {
  const { name } = tool;
  const own = readString(name);
  if (own === undefined)
    throw new GatewayError('invalid_request', `\`${at}.name\` is missing.`, { param: `${at}.name` });
  const space = readString(namespace?.['name']);
  const full = fullName(tool, namespace);
  if (draft.callers.has(full))
    throw new GatewayError(
      'invalid_request',
      `\`${at}.name\` gives two tools the name \`${full}\`. Rename one of them.`,
      {
        param: `${at}.name`,
      },
    );
  // The description of a namespace is added to its first tool.
  const isFirst = namespace !== undefined && tool === readArray(namespace['tools'])[0];
  const about = isFirst ? readString(namespace['description']) : undefined;
  draft.callers.set(full, { kind: type, name: own, ...(space !== undefined && { namespace: space }) });
  draft.places.push(at);
  draft.tools.push(type === 'custom' ? customTool(full, tool, about) : functionTool(full, tool, about));
}

function functionTool(name: string, tool: JsonObject, about: string | undefined): Tool {
  const { parameters, strict } = tool;
  const description = joined([about, readString(tool['description'])]);
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      ...(isObject(parameters) && { parameters }),
      ...(typeof strict === 'boolean' && { strict }),
    },
  };
}

/** Converts a plain text tool to a function with one string, since other vendors lack such tools. */
function customTool(name: string, tool: JsonObject, about: string | undefined): Tool {
  const { type, syntax, definition } = readObject(tool['format']);
  const grammar =
    type === 'grammar' && typeof definition === 'string'
      ? `The input must follow this grammar (${readString(syntax) ?? 'lark'}):\n${definition}`
      : undefined;
  const description = joined([about, readString(tool['description']), grammar]);
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', description: 'The input of the tool, as plain text.' } },
        required: ['input'],
        additionalProperties: false,
      },
    },
  };
}

function joined(texts: readonly (string | undefined)[]): string | undefined {
  const reported = texts.filter((text) => text !== undefined);
  return reported.length > 0 ? reported.join('\n\n') : undefined;
}

function addHosted(draft: Draft, tool: JsonObject, at: string): void {
  const { needs, hosted } = draft;
  const type = readString(tool['type']) ?? 'unknown';
  hosted.push(type);
  if (!isRunByCaller(tool)) needs.push({ kind: 'server tool', name: type, param: at, optional: true });
  const { model, container, vector_store_ids: stores, environment } = tool;
  if (typeof model === 'string') needs.push({ kind: 'model', name: model, param: `${at}.model` });
  const reference = (name: string): void => void needs.push({ kind: 'reference', name, param: `${at}.${name}` });
  if (typeof container === 'string' || readArray(readObject(container)['file_ids']).length > 0) reference('container');
  if (readArray(stores).length > 0) reference('vector_store_ids');
  const { container_id: id, skills, file_ids: files } = readObject(environment);
  if (typeof id === 'string' || readArray(skills).length > 0 || readArray(files).length > 0) reference('environment');
}

function isRunByCaller(tool: JsonObject): boolean {
  const { type, environment } = tool;
  if (type === 'shell') return readObject(environment)['type'] === 'local';
  return CLIENT_TOOLS.has(String(type));
}
