import {
  type ErrorCode,
  GatewayError,
  isObject,
  type JsonObject,
  type Metered,
  type Offer,
  type OperationDefinition,
  parseJson,
  readObject,
  type Transport,
} from '../../contract/index.ts';
import type { ToolResponse } from '../formats/kit/index.ts';
import { permissionOf } from './names.ts';
import { type ListedTool, type ToolOutcome, type ToolServer, tooLarge } from './tool-server.ts';

/** Provider of all MCP servers in the records of calls, and the first part of their models. */
export const PROVIDER = 'mcp';

const REQUEST = Object.freeze({
  type: 'object',
  required: ['model', 'arguments'],
  properties: { model: { type: 'string', minLength: 1 }, arguments: { type: 'string' } },
});

/** Time after a tool's own limit in which its failure is reported. */
const MARGIN_MS = 5000;

export type ServersByName = ReadonlyMap<string, ToolServer>;

/** Finds the listed tool of a server that a target names. Throws if the server is down or has no such tool. */
async function findTool(
  servers: ServersByName,
  model: string,
  user: string,
): Promise<{ readonly server: ToolServer; readonly tool: ListedTool }> {
  const { server: shared, name } = split(servers, model);
  const server = await shared?.forUser(user);
  const tool = (await server?.tools())?.get(name);
  if (!server || !tool) throw new GatewayError('unsupported_model', 'No MCP server has this tool.');
  return { server, tool };
}

function split(
  servers: ServersByName,
  model: string,
): { readonly server: ToolServer | undefined; readonly name: string } {
  const slash = model.indexOf('/');
  return { server: servers.get(model.slice(0, slash)), name: model.slice(slash + 1) };
}

/** Operation `mcp`: the call of one tool, with limits, price and record like every call. */
export function toolOperation(servers: ServersByName): OperationDefinition<'mcp'> {
  const meteredAt = (model: string, isError: boolean): Metered => {
    const { server, name } = split(servers, model);
    return meteredOf(server?.options.priceOf(name) ?? 0, isError);
  };
  return {
    name: 'mcp',
    request: REQUEST,
    estimate: (_request, { target }) => meteredAt(target.model, false),
    async attempt({ call, request, target, sendForJson, meter }) {
      const { userId: user } = call.principal;
      const { server, tool } = await findTool(servers, target.model, user);
      const args = parseJson(request.arguments);
      if (!isObject(args)) throw new GatewayError('invalid_request', 'The arguments are not a JSON object.');
      const body = { tool: permissionOf(server.options.name, tool.name), arguments: args, user };
      const outcome = readObject(await sendForJson({ path: `/${server.options.name}`, body }));
      const failure = readFailure(outcome['failure']);
      if (failure) {
        // The server did nothing, so nothing is owed.
        if (!failure.isDone) meter({ units: {}, cost: 0 });
        throw failure.error;
      }
      const { structuredContent, ...result } = readObject(outcome['result']);
      meter(meteredAt(target.model, result['isError'] === true));
      const structured = structuredContent !== undefined && { structured_json: JSON.stringify(structuredContent) };
      return { ...result, ...structured } as ToolResponse;
    },
    isResponse: (value): value is ToolResponse => isObject(value) && Array.isArray(value['content']),
  };
}

/** Registers all servers as one provider. A call reaches its server by the SDK, in place of HTTP. */
export function toolOffer(servers: ServersByName): Offer {
  const longestMs = Math.max(...[...servers.values()].map(({ options }) => options.timeoutMs));
  const totalMs = longestMs + MARGIN_MS;
  return {
    specVersion: 1,
    vendor: PROVIDER,
    baseUrl: 'http://mcp.invalid',
    anyModel: true,
    models: [],
    timeouts: { firstByteMs: totalMs, idleMs: totalMs, totalMs: totalMs + MARGIN_MS },
    transport: callServer(servers),
    // Keys and plans name the tools that a caller may use; the gate of every request checks it again.
    effects: { tool: [{ does: 'tool', note: 'Runs the tool of an MCP server.' }] },
    error: () => ({ class: 'upstream_error', message: '' }),
  };
}

/** Transport of a call: the server of its body by the SDK. The response is JSON with the result or the failure. */
function callServer(servers: ServersByName): Transport {
  return async ({ body }, signal) => {
    const { tool: permission, arguments: args, user } = readObject(body);
    const { server, tool } = await findTool(servers, String(permission).replace(/^mcp:/, ''), String(user));
    const outcome = await server.call(tool, readObject(args), signal);
    const text = JSON.stringify('failure' in outcome ? { failure: writeFailure(outcome) } : outcome);
    const { name, maxResultBytes } = server.options;
    const isTooLong = Buffer.byteLength(text) > maxResultBytes + ENVELOPE_BYTES;
    const failure = { isDone: true, failure: tooLarge(name, maxResultBytes) };
    const sent = Buffer.from(isTooLong ? JSON.stringify({ failure: writeFailure(failure) }) : text);
    return { status: 200, headers: { 'content-type': 'application/json' }, body: chunksOf(sent) };
  };
}

/** Bytes around a result in the JSON of an outcome. */
const ENVELOPE_BYTES = 1024;

async function* chunksOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

type Failed = Extract<ToolOutcome, { readonly failure: GatewayError }>;

function writeFailure({ failure: { code, message, retryAfterMs }, isDone }: Failed): JsonObject {
  return { code, message, isDone, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function readFailure(value: unknown): { readonly error: GatewayError; readonly isDone: boolean } | undefined {
  if (!isObject(value)) return undefined;
  const { code, message, isDone, retryAfterMs } = value;
  const error = new GatewayError(code as ErrorCode, String(message), {
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
  });
  return { error, isDone: isDone === true };
}

function meteredOf(cost: number, isError: boolean): Metered {
  const parts = [{ unit: 'tool_calls', quantity: 1, usd: cost / NANO }];
  return { units: { tool_calls: 1, ...(isError && { tool_errors: 1 }) }, cost, parts };
}

/** Nano-dollars of a US dollar. */
const NANO = 1e9;
