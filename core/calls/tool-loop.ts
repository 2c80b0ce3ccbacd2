/**
 * Chats with tools of servers: the model is called, then the tools that it called, until it calls none of them. Each turn and each
 * tool is a call of its own. Other chats run only the check of {@link findServers}, and that only if a plugin has such tools.
 */
import { CHAT, type Principal } from '../../contract/call.ts';
import type {
  AssistantMessage,
  ChatChoice,
  ChatChunk,
  ChatMessage,
  ChatRequest,
  ChatResponse,
  ChunkChoice,
  ReasoningDetail,
  ServerToolCall,
  ToolCall,
  ToolCallDelta,
  Usage,
} from '../../contract/chat.ts';
import { isForced } from '../../contract/chat-form.ts';
import type { ChatContext, KnownServers, NamedServer, ServerTool, ServerTools } from '../../contract/chat-tools.ts';
import { usageChunk } from '../../contract/chunks.ts';
import type { DialectDefinition, DialectInput } from '../../contract/dialect.ts';
import { GatewayError } from '../../contract/errors.ts';
import { deepFreeze } from '../../contract/json.ts';
import type { OperationContext } from '../../contract/plugin.ts';
import { formatUsd } from '../../contract/units.ts';
import { callAttributed } from '../plugins/attribution.ts';
import type { Attributed } from '../plugins/registry.ts';
import { MAX_RESPONSE_BYTES } from './attempt.ts';
import { Call, owedBy } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { completeChat } from './chat.ts';
import { textLength } from './chat-chunks.ts';
import { type Batch, type ChatStream, streamChat } from './chat-stream.ts';
import type { InboundChat } from './inbound-chat.ts';
import { JoinedResponse } from './join-stream.ts';
import { addUsage } from './meter.ts';
import { endRefused } from './run-call.ts';
import { deploymentOf } from './seals.ts';

/** Request without the servers that it named. */
export interface FoundServers {
  readonly input: DialectInput;
  /** Servers of the request, then those of the caller's plan. */
  readonly servers: readonly NamedServer[];
  /** True if the caller requires a call of one of them. */
  readonly requiresTool: boolean;
}

/** Maximum number of tools that run in one turn. */
const MAX_CALLS = 64;

/** Maximum size of all results of a chat, which each later turn sends again. */
const MAX_RESULT_BYTES = 8 * 1024 * 1024;

/** Permissions of MCP tools, as in the defaults of a plan. */
const DEFAULT_TOOL = /^mcp:([^/]+)(?:\/(.+))?$/;

/** Finds the servers that a request or its caller's plan names. Undefined for a chat without any. */
export function findServers(
  { planOf }: Pick<CallDeps, 'planOf'>,
  known: KnownServers,
  { owner, value: format }: Attributed<DialectDefinition>,
  input: DialectInput,
  principal: Principal,
): FoundServers | Promise<FoundServers | undefined> | undefined {
  const take = format.servers;
  if (!take || (input.route.native ?? format.name) !== format.name) return undefined;
  const taken = callAttributed(owner, () => take.call(format, input.body, known));
  const found = (defaults: readonly string[] | undefined): FoundServers | undefined => {
    const servers = [...(taken?.servers ?? []), ...defaultsOf(defaults, taken?.servers)];
    if (!taken && servers.length === 0) return undefined;
    return {
      input: taken ? { ...input, body: deepFreeze(taken.body) } : input,
      servers,
      requiresTool: taken?.requiresTool === true,
    };
  };
  const plan = planOf(principal);
  return plan instanceof Promise ? plan.then((named) => found(named?.plan.chatTools)) : found(plan?.plan.chatTools);
}

/** Servers of a plan's defaults that the request does not name itself. */
function defaultsOf(defaults: readonly string[] = [], named: readonly NamedServer[] = []): readonly NamedServer[] {
  const tools = new Map<string, string[] | undefined>();
  for (const each of defaults) {
    const [, server, tool] = DEFAULT_TOOL.exec(each) ?? [];
    if (server === undefined || named.some((one) => one.server === server)) continue;
    const known = tools.get(server);
    tools.set(server, tool === undefined || (tools.has(server) && !known) ? undefined : [...(known ?? []), tool]);
  }
  return [...tools].map(([server, wanted]) => ({ server, ...(wanted && { tools: wanted }) }));
}

/**
 * Returns the tools for one request. Throws for a named one with the name of the caller's own tool, and for named ones with several
 * responses. A plan's defaults are left out there.
 */
export function fitTools(
  { tools: own = [], n }: ChatRequest,
  tools: readonly ServerTool[],
  servers: readonly NamedServer[],
): readonly ServerTool[] {
  const named = new Set(servers.filter(({ param }) => param !== undefined).map(({ server }) => server));
  const isNamed = ({ server }: ServerTool): boolean => named.has(server);
  if ((n ?? 1) > 1) {
    if (!tools.some(isNamed)) return [];
    throw new GatewayError('invalid_request', '`n` must be 1 for a chat with tools of MCP servers.', { param: 'n' });
  }
  const places = new Map(own.map((tool, index) => [nameOf(tool), `tools[${index}]`]));
  return tools.filter((tool) => {
    const param = places.get(nameOf(tool.definition));
    if (param === undefined || !isNamed(tool)) return param === undefined;
    throw new GatewayError('invalid_request', `\`${param}\` has the name of a tool of an MCP server. Rename it.`, {
      param,
    });
  });
}

/** Adds tools of servers to a request. */
export function withServerTools(
  request: ChatRequest,
  tools: readonly ServerTool[],
  requiresTool: boolean,
): ChatRequest {
  if (tools.length === 0) return request;
  const all = [...(request.tools ?? []), ...tools.map(({ definition }) => definition)];
  return { ...request, tools: all, ...(requiresTool && { tool_choice: 'required' }) };
}

function nameOf(tool: object): unknown {
  return 'function' in tool ? (tool.function as { readonly name?: unknown } | undefined)?.name : undefined;
}

/** One chat with tools of servers, in as many turns as the model needs and the bounds allow. */
export class ToolLoop {
  readonly #deps: CallDeps;
  readonly #runner: ServerTools;
  readonly #context: OperationContext & Pick<ChatContext, 'mayContinue'>;
  /** Undefined for a chat that a plugin sends. */
  readonly #client: InboundChat | undefined;
  readonly #request: ChatRequest;
  readonly #tools: ReadonlyMap<unknown, ServerTool>;
  readonly #startedMs = performance.now();
  /** Messages of the turns so far. */
  readonly #added: ChatMessage[] = [];
  readonly #calls: ServerToolCall[] = [];
  readonly #texts: string[] = [];
  #turns = 0;
  /** Nano-dollars of the turns and tools so far, as far as prices are known. */
  #cost = 0;
  #isPriced = true;
  #usage: Usage | undefined;
  #resultBytes = 0;
  #stream: ChatStream | undefined;

  constructor(
    deps: CallDeps,
    runner: ServerTools,
    context: OperationContext & Pick<ChatContext, 'mayContinue'>,
    request: ChatRequest,
    tools: readonly ServerTool[],
    client?: InboundChat,
  ) {
    this.#deps = deps;
    this.#runner = runner;
    this.#context = context;
    this.#client = client;
    this.#request = request;
    this.#tools = new Map(tools.map((tool) => [nameOf(tool.definition), tool]));
  }

  /** Creates the call of the next turn. */
  next(): Call {
    const { tool_choice: choice, ...rest } = this.#request;
    // A required call was made in the first turn.
    const request = this.#turns > 0 && isForced(choice) ? rest : this.#request;
    const messages = this.#added.length === 0 ? request.messages : [...request.messages, ...this.#added];
    const context = this.#turns === 0 ? this.#context : this.#laterContext;
    this.#turns += 1;
    return new Call(this.#deps, CHAT, { ...request, messages } as ChatRequest, context, this.#client);
  }

  /** Context of what follows the first turn. A plugin's chat counts as one request, as its other calls do. */
  get #laterContext(): OperationContext & Pick<ChatContext, 'mayContinue'> {
    return this.#client ? this.#context : { ...this.#context, skip: ['rpm', 'concurrency'] };
  }

  /** Cost of all turns and tools, as in the header `x-tollgate-cost-usd`. */
  get cost(): string {
    return this.#isPriced ? formatUsd(this.#cost) : 'unknown';
  }

  /** Completes the chat, and returns the call of its last turn, which has not ended. */
  async complete(first: Call): Promise<{ readonly call: Call; readonly response: ChatResponse }> {
    for (let call = first; ; call = this.next()) {
      const response = await completeChat(this.#deps, call);
      this.#count(call);
      const [choice] = response.choices;
      if (!choice || !this.#goesOn(choice)) return { call, response: this.#join(call, response) };
      const { message } = choice;
      this.#client?.respondFrom(call.record.target);
      call.finish('ok');
      if (message.content) this.#texts.push(message.content);
      for await (const _ of this.#run(call, message));
    }
  }

  /** Streams the chat. Rejects before the first byte if no target responds to the first turn. */
  async stream(first: Call): Promise<ChatStream> {
    this.#stream = await streamChat(this.#deps, first);
    if (first.record.lane === 'native') first.record.lane = 'mixed';
    return { batches: this.#batches(first, this.#stream), close: () => this.#stream?.close() };
  }

  async *#batches(first: Call, opened: ChatStream): AsyncGenerator<Batch, void, undefined> {
    const writer = new TurnWriter(this.#tools);
    let stream = opened;
    for (let call = first; ; call = this.next()) {
      if (call !== first) {
        stream = await streamChat(this.#deps, call);
        this.#stream = stream;
        this.#client?.respondFrom(call.record.target);
      }
      if (call.record.lane === 'native') call.record.lane = 'mixed';
      const joined = new JoinedResponse({ id: '', created: 0, model: '' });
      let bytes = 0;
      writer.begin();
      for await (const { chunks } of stream.batches) {
        for (const chunk of chunks) bytes += textLength(chunk);
        if (bytes > MAX_RESPONSE_BYTES) throw tooLong();
        joined.add(chunks);
        const shown = chunks.flatMap((chunk) => writer.write(chunk));
        if (shown.length > 0) yield batchOf(shown);
      }
      this.#count(call);
      const [choice] = joined.response().choices;
      if (!choice || !this.#goesOn(choice)) break;
      for await (const done of this.#run(call, choice.message)) yield batchOf(writer.report(done));
    }
    yield batchOf(writer.end(this.#usage));
  }

  /** Adds the usage and cost of a turn. */
  #count({ record }: Call): void {
    this.#usage = addUsage(this.#usage, record.usage);
    this.#owe(owedBy(record)?.cost);
  }

  #owe(cost: number | undefined): void {
    this.#isPriced &&= cost !== undefined;
    this.#cost += cost ?? 0;
  }

  /** Returns whether all tools that a turn called are tools of servers, and the bounds allow another turn. */
  #goesOn({ message: { tool_calls: calls = [] }, finish_reason: reason }: ChatChoice): boolean {
    const isComplete = reason === 'tool_calls' || reason === 'stop';
    if (!isComplete || calls.length === 0 || !calls.every((each) => this.#tools.has(nameOf(each)))) return false;
    const { maxTurns, maxTimeMs, maxCost } = this.#runner.bounds;
    const hasTime = performance.now() - this.#startedMs < maxTimeMs;
    const isWithin = this.#turns < maxTurns && hasTime && this.#cost < maxCost;
    return isWithin && this.#context.mayContinue?.() !== false;
  }

  /** Calls the tools of a turn one after the other, and keeps their results for the next turn. */
  async *#run(call: Call, message: AssistantMessage): AsyncGenerator<ServerToolCall, void, undefined> {
    const calls = message.tool_calls ?? [];
    this.#added.push(this.#keep(call, message));
    for (const [index, { id, function: called }] of calls.entries()) {
      const { output, is_error: isError = false } = await this.#callTool(called, index);
      const tool = this.#tools.get(called.name);
      const done: ServerToolCall = {
        id,
        server: tool?.server ?? '',
        name: tool?.tool ?? '',
        arguments: called.arguments,
        output,
        ...(isError && { is_error: true }),
      };
      this.#added.push({ role: 'tool', tool_call_id: id, content: output, ...(isError && { is_error: true }) });
      this.#calls.push(done);
      yield done;
    }
  }

  async #callTool({ name, arguments: args }: ToolCall['function'], index: number) {
    const tool = this.#tools.get(name);
    if (!tool || index >= MAX_CALLS) return { output: 'Too many tools in one turn. Call fewer.', is_error: true };
    const { principal, requestId, signal, session, trace, tags, skip } = this.#laterContext;
    const result = await this.#runner.call(tool, args, {
      principal,
      requestId,
      session,
      trace,
      ...(signal && { signal }),
      ...(tags && { tags }),
      ...(!this.#client && skip && { skip }),
      onOutcome: (call, outcome) => {
        this.#owe(outcome.cost ?? 0);
        this.#context.onOutcome?.(call, outcome);
      },
    });
    this.#resultBytes += Buffer.byteLength(result.output);
    if (this.#resultBytes <= MAX_RESULT_BYTES) return result;
    return { output: 'The results of the tools are too large for this chat.', is_error: true };
  }

  /** Message of a turn as the next one sends it, with reasoning that only the deployment which wrote it gets back. */
  #keep({ record, principal }: Call, message: AssistantMessage): ChatMessage {
    const {
      content,
      tool_calls: calls = [],
      reasoning_content: reasoning,
      reasoning_details: details,
      order,
    } = message;
    const { provider = '' } = record.target ?? {};
    const { offers } = this.#deps.partsOf('chat');
    const deployment = deploymentOf(offers.get(provider), provider);
    const seal = ({ signature, ...detail }: ReasoningDetail): ReasoningDetail => {
      const secret = detail.data ?? signature;
      return secret === undefined
        ? detail
        : { ...detail, data: this.#deps.seals.seal(principal.account, deployment, secret) };
    };
    const { extra_content: extra } = message;
    return {
      role: 'assistant',
      content,
      tool_calls: calls.map(({ dialect_fields: _fields, ...call }) => call) as readonly ToolCall[],
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
      ...(details && { reasoning_details: details.map(seal) }),
      ...(order && { order }),
      ...(extra !== undefined && { extra_content: extra }),
    };
  }

  /** Response of the whole chat: texts of all turns, calls of tools, and the last turn's calls of the caller's own functions. */
  #join({ record }: Call, response: ChatResponse): ChatResponse {
    const [choice] = response.choices;
    const calls = choice?.message.tool_calls ?? [];
    const own = calls.filter((each) => !this.#tools.has(nameOf(each)));
    if (!choice || (this.#turns === 1 && own.length === calls.length)) return response;
    record.native = undefined;
    if (record.lane === 'native') record.lane = 'mixed';
    const { tool_calls: _calls, order: _order, content, ...rest } = choice.message;
    // A text before JSON would make it invalid.
    const before = isJsonFormat(this.#request) ? [] : this.#texts;
    const text = [...before, ...(content ? [content] : [])].join(BETWEEN);
    const message = {
      ...rest,
      content: text === '' ? content : text,
      ...(this.#calls.length > 0 && { mcp_calls: this.#calls }),
      ...(own.length > 0 && { tool_calls: own }),
    };
    const reason = endOf(choice.finish_reason, own.length, calls.length);
    const usage = this.#usage ?? response.usage;
    return { ...response, choices: [{ ...choice, message, finish_reason: reason }], ...(usage && { usage }) };
  }
}

function isJsonFormat({ response_format: format }: ChatRequest): boolean {
  return format?.type === 'json_schema' || format?.type === 'json_object';
}

/** Completes a chat that a plugin sends, with the tools of the servers that its context names. */
export async function completePluginChat(
  deps: CallDeps,
  request: ChatRequest,
  context: ChatContext,
): Promise<ChatResponse | AsyncIterable<ChatChunk>> {
  const loop = context.servers && (await openLoop(deps, request, context, context.servers));
  const call = loop?.next() ?? new Call(deps, CHAT, request, context);
  if (!call.stream) return loop ? (await loop.complete(call)).response : completeChat(deps, call);
  const stream = loop ? loop.stream(call) : streamChat(deps, call);
  return chunksOf(await stream, request.stream_options?.include_usage === true);
}

/** Returns undefined if no tool is available. Rejects for a named server that is not available to the caller. */
async function openLoop(
  deps: CallDeps,
  request: ChatRequest,
  context: ChatContext,
  servers: readonly NamedServer[],
): Promise<ToolLoop | undefined> {
  const { serverTools: runner } = deps;
  let tools: readonly ServerTool[];
  try {
    assertKnown(runner, servers);
    tools = runner ? fitTools(request, await runner.list(servers, context.principal), servers) : [];
  } catch (thrown) {
    throw await endRefused(deps, new Call(deps, CHAT, request, context), thrown);
  }
  if (!runner || tools.length === 0) return undefined;
  await deps.seals.ready();
  return new ToolLoop(deps, runner, context, withServerTools(request, tools, false), tools);
}

function assertKnown(runner: ServerTools | undefined, servers: readonly NamedServer[]): void {
  const unknown = servers.find(({ server, param }) => param !== undefined && !runner?.has(server));
  if (!unknown) return;
  const param = `${unknown.param}.server`;
  throw new GatewayError('invalid_request', `\`${param}\` must name an MCP server of this gateway.`, { param });
}

/** Reads a stream chunk by chunk. The usage chunk is included on request only, as at OpenAI. */
async function* chunksOf(stream: ChatStream, wantsUsage: boolean): AsyncGenerator<ChatChunk, void, undefined> {
  for await (const { chunks } of stream.batches)
    for (const chunk of chunks) if (wantsUsage || !chunk.usage) yield chunk;
}

/** Between the texts of two turns. */
const BETWEEN = '\n\n';

/** Finish reason of a chat. A turn whose tools of servers did not run, and that calls nothing else, is incomplete. */
function endOf(reason: ChunkChoice['finish_reason'], ownCalls: number, calls: number): ChatChoice['finish_reason'] {
  const isComplete = reason === 'tool_calls' || reason === 'stop' || reason === null;
  if (!isComplete || (calls === 0 && reason !== null)) return reason;
  return ownCalls > 0 ? 'tool_calls' : 'length';
}

function batchOf(chunks: readonly ChatChunk[]): Batch {
  return { chunks, events: [] };
}

function tooLong(): GatewayError {
  return new GatewayError('provider_invalid_response', 'The provider returned a stream that is too long.');
}

/** Writes the chunks of several turns as one stream, without the calls of servers' tools. */
class TurnWriter {
  readonly #tools: ReadonlyMap<unknown, ServerTool>;
  #head: Pick<ChatChunk, 'id' | 'created' | 'model'> | undefined;
  /** Indexes of the caller's functions for the caller, by those of the turn. Undefined for tools of servers. */
  #indexes = new Map<number, number | undefined>();
  #ownCalls = 0;
  #hasText = false;
  #isLater = false;
  #end: Pick<ChunkChoice, 'finish_reason' | 'finish'> = { finish_reason: null };

  constructor(tools: ReadonlyMap<unknown, ServerTool>) {
    this.#tools = tools;
  }

  begin(): void {
    this.#indexes = new Map();
    this.#isLater = this.#hasText;
    this.#end = { finish_reason: null };
  }

  /** Returns the chunk for the caller, if anything of it is shown. */
  write(chunk: ChatChunk): readonly ChatChunk[] {
    const isFirst = this.#head === undefined;
    this.#head ??= { id: chunk.id, created: chunk.created, model: chunk.model };
    const choice = chunk.choices.find(({ index }) => index === 0);
    if (!choice) return [];
    const { finish_reason: reason, finish, ...rest } = choice;
    if (reason !== null) this.#end = { finish_reason: reason, ...(finish && { finish }) };
    const delta = this.#delta(choice, isFirst);
    if (!isFirst && Object.keys(delta).length === 0) return [];
    const { usage: _usage, ...others } = chunk;
    return [{ ...others, ...this.#head, choices: [{ ...rest, delta, finish_reason: null }] }];
  }

  #delta({ delta }: ChunkChoice, isFirst: boolean): ChunkChoice['delta'] {
    const { role, tool_calls: calls = [], content, ...rest } = delta;
    const shown = calls.flatMap((call) => this.#own(call));
    const text = content && this.#isLater ? BETWEEN + content : content;
    if (content) {
      this.#isLater = false;
      this.#hasText = true;
    }
    return {
      ...(isFirst && role !== undefined && { role }),
      ...(text !== undefined && (text !== null || isFirst) && { content: text }),
      ...rest,
      ...(shown.length > 0 && { tool_calls: shown }),
    };
  }

  #own(call: ToolCallDelta): readonly ToolCallDelta[] {
    if (!this.#indexes.has(call.index))
      this.#indexes.set(call.index, this.#tools.has(call.function?.name) ? undefined : this.#ownCalls++);
    const index = this.#indexes.get(call.index);
    return index === undefined ? [] : [{ ...call, index }];
  }

  /** Chunk with a call of a server's tool. */
  report(done: ServerToolCall): readonly ChatChunk[] {
    return [this.#chunk({ index: 0, delta: { mcp_calls: [done] }, finish_reason: null })];
  }

  /** Chunks of the end of the chat. */
  end(usage: Usage | undefined): readonly ChatChunk[] {
    const { finish_reason: reason, finish } = this.#end;
    const last = this.#chunk({
      index: 0,
      delta: {},
      finish_reason: endOf(reason, this.#ownCalls, this.#indexes.size),
      ...(finish && { finish }),
    });
    return usage ? [last, usageChunk(last, usage)] : [last];
  }

  #chunk(choice: ChunkChoice): ChatChunk {
    const { id = '', created = 0, model = '' } = this.#head ?? {};
    return { id, object: 'chat.completion.chunk', created, model, choices: [choice] };
  }
}
