import type { HttpRequest, Transport } from '../contract/provider.ts';
import type { Exchange, ExchangeController } from './exchange.ts';

/** Lets a provider's own {@link Transport} answer an exchange: the same clocks, bounds and abort as the network. */
export async function runTransport(transport: Transport, request: HttpRequest, exchange: Exchange): Promise<void> {
  const abort = new AbortController();
  let paused: Promise<void> | undefined;
  let go: (() => void) | undefined;
  const controller: ExchangeController = {
    pause() {
      paused ??= new Promise((resolve) => {
        go = resolve;
      });
    },
    resume() {
      paused = undefined;
      go?.();
    },
    abort(reason) {
      abort.abort(reason);
      controller.resume();
    },
  };
  exchange.onRequestStart(controller);
  try {
    const answer = await transport(request, abort.signal);
    exchange.onResponseStarted();
    exchange.onResponseStart(controller, answer.status, answer.headers);
    const chunks = answer.body[Symbol.asyncIterator]();
    while (!abort.signal.aborted) {
      const chunk = await chunks.next();
      if (chunk.done) {
        exchange.onResponseEnd();
        return;
      }
      const { buffer, byteOffset, byteLength } = chunk.value;
      exchange.onResponseData(controller, Buffer.from(buffer, byteOffset, byteLength));
      if (paused) await paused;
    }
    await chunks.return?.();
  } catch (error) {
    exchange.onResponseError(controller, error instanceof Error ? error : new Error(String(error)));
  }
}
