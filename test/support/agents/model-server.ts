import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChatRequest, isGatewayError } from '../../../contract/index.ts';
import { type Rule, type ScriptedModel, scriptModel } from './scripted-model.ts';

export interface ModelServer {
  /** URL that ends in `/v1`. */
  readonly url: string;
  readonly model: ScriptedModel;
  /** Number of open requests. */
  readonly open: () => number;
  close(): Promise<void>;
}

/** Vendor with OpenAI's format on a loopback port, with a {@link scriptModel} behind it, for the real call pipeline. */
export async function startModelServer(rules: readonly Rule[]): Promise<ModelServer> {
  const model = scriptModel(rules);
  let open = 0;
  const server = http.createServer(async (request, response) => {
    open += 1;
    const client = new AbortController();
    response.once('close', () => {
      open -= 1;
      client.abort();
    });
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as ChatRequest;
    const { status, reply } = await respondTo(model, body, client.signal);
    if (!client.signal.aborted) {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    model,
    open: () => open,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function respondTo(
  model: ScriptedModel,
  body: ChatRequest,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly reply: unknown }> {
  try {
    return { status: 200, reply: await model.chat(body, { signal } as never) };
  } catch (error) {
    const status = isGatewayError(error) ? error.status : 500;
    const param = isGatewayError(error) ? (error.param ?? null) : null;
    return { status, reply: { error: { message: 'refused', type: 'invalid_request_error', code: null, param } } };
  }
}
