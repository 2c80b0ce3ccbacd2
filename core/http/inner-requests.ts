import type { IncomingMessage, Server } from 'node:http';
import { type LocalRequest, postLocally } from './local-request.ts';
import type { RequestState } from './request-state.ts';

/**
 * Requests that the gateway makes to itself in place of a caller's: they run on when the caller leaves, and what they respond is
 * seen whole. What the calls made for them come to is told to the caller's request.
 */
export class InnerRequests {
  #server: Server | undefined;
  readonly #outer = new WeakMap<object, RequestState>();

  /** Names the server that they go to. */
  attach(server: Server): void {
    this.#server = server;
  }

  /** Resolves with the head of the response; `outer` is the state of the caller's request. */
  post(request: LocalRequest, outer: RequestState): Promise<IncomingMessage> {
    if (!this.#server) throw new TypeError('there is no server yet');
    return postLocally(this.#server, request, (socket) => this.#outer.set(socket, outer));
  }

  /** The state of the caller's request that this one was made for; undefined for one that came in from outside. */
  outerOf({ socket }: IncomingMessage): RequestState | undefined {
    return this.#outer.get(socket);
  }
}
