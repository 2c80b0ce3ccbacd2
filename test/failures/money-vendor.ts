import {
  type ChatChunk,
  type ChatRequest,
  type ChatResponse,
  type Provider,
  StreamFailure,
  type TransportResponse,
} from '../../contract/index.ts';

/** Behaviour of a provider in one attempt. */
export type Deed = 'answers' | 'fails' | 'limits' | 'breaks' | 'errs inside';

/** Script of one call. */
export interface Script {
  /** Behaviour of the first target and of the second. */
  readonly deeds: readonly [Deed, Deed];
  /** Number of pieces that the model writes, one token each. */
  readonly pieces: number;
  /** Additional thinking tokens, which appear only in the usage. */
  readonly hidden: number;
  readonly tellsUsage: boolean;
}

/** Price per token in nano-dollars, at either provider. */
export const PRICE = { input: 1, output: 3 };
/** One token by the estimate. */
export const PIECE = 'word';

const usageOf = (request: ChatRequest, { pieces, hidden }: Script) => {
  const completion_tokens = Math.min(pieces + hidden, request.max_tokens ?? 0);
  return { prompt_tokens: 3, completion_tokens, total_tokens: 3 + completion_tokens };
};

/**
 * Provider without a network. It follows the script of a call (found by `user`) and records the requests that caused
 * work.
 */
export function scriptedProvider(at: 0 | 1, scripts: ReadonlyMap<string, Script>, worked: Set<string>): Provider {
  const base = { id: 'c', created: 1, model: 'm' };
  const chunkOf = (delta: object, finish_reason: string | null = null) => ({
    ...{ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] },
  });
  const respond = (status: number, type: string, body: AsyncIterable<Uint8Array>): TransportResponse => ({
    ...{ status, headers: { 'content-type': type }, body },
  });
  const whole = async function* (value: object) {
    yield Buffer.from(JSON.stringify(value));
  };
  return {
    ...{ specVersion: 1, vendor: 'scripted', baseUrl: 'http://scripted.invalid', anyModel: true },
    prices: { '*': { input: PRICE.input / 1000, output: PRICE.output / 1000 } },
    error: (status) => ({ class: status === 429 ? 'rate_limit' : 'upstream_error', message: 'no' }),
    async transport({ body }) {
      const request = body as ChatRequest;
      const id = String(request['user']);
      const script = scripts.get(id);
      if (!script) throw new Error('no script');
      const deed = script.deeds[at];
      await new Promise((resolve) => setImmediate(resolve));
      if (deed === 'fails' || deed === 'limits')
        return respond(deed === 'fails' ? 500 : 429, 'application/json', whole({}));
      if (deed !== 'errs inside') worked.add(id);
      return request.stream
        ? respond(200, 'text/event-stream', stream(request, script, deed))
        : respond(200, 'application/json', wholeResponse(request, script, deed));
    },
    chat: {
      request: (input) => ({ path: '/', body: input }),
      response: (body) => readResponse(body),
      stream: () => {
        let complete = false;
        return {
          push({ data }) {
            if (data === 'error') throw failure();
            const chunk = JSON.parse(data) as ChatChunk;
            complete ||= chunk.choices.some(({ finish_reason }) => finish_reason !== null);
            return [chunk];
          },
          end: () => ({ chunks: [], complete }),
        };
      },
    },
  };

  async function* stream(request: ChatRequest, script: Script, deed: Deed) {
    const event = (data: object | string) =>
      Buffer.from(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
    if (deed === 'errs inside') {
      yield event('error');
      return;
    }
    for (let piece = 0; piece < script.pieces; piece++) {
      await new Promise((resolve) => setImmediate(resolve));
      yield event(chunkOf({ content: PIECE }));
      if (deed === 'breaks' && piece >= script.pieces / 2) throw new Error('broke off');
    }
    if (deed === 'breaks') throw new Error('broke off');
    yield event(chunkOf({}, 'stop'));
    await new Promise((resolve) => setImmediate(resolve));
    if (script.tellsUsage) yield event({ ...chunkOf({}), choices: [], usage: usageOf(request, script) });
  }

  async function* wholeResponse(request: ChatRequest, script: Script, deed: Deed) {
    if (deed === 'breaks') throw new Error('broke off');
    if (deed === 'errs inside') {
      yield* whole({ error: {} });
      return;
    }
    const message = { role: 'assistant', content: PIECE.repeat(script.pieces) };
    yield* whole({
      ...{ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] },
      ...(script.tellsUsage && { usage: usageOf(request, script) }),
    });
  }
}

function readResponse(body: unknown): ChatResponse {
  if (typeof body === 'object' && body !== null && 'error' in body) throw failure();
  return body as ChatResponse;
}

function failure(): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: 'no' });
}
