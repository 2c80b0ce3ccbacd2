import type { Server, ServerResponse } from 'node:http';
import { SHUTDOWN } from '../calls/run-call.ts';
import type { ReloadControl } from '../config/reload-report.ts';

export type Phase = 'starting' | 'ready' | 'draining' | 'closed';

export interface DrainOptions {
  /** Between being not ready and closing the listener, for load balancers to notice. */
  readonly delayMs: number;
  /** How long running requests may go on. */
  readonly deadlineMs: number;
  /** What the server does not close itself. */
  readonly sockets?: { drain(): void; close(): void };
}

/** How often idle keep-alive sockets are closed while draining; `server.close()` alone waits for them. */
const SWEEP_MS = 100;

/** After the deadline: how long error frames may take to leave before the sockets are cut. */
const GRACE_MS = 1000;

/** Where a gateway is in its life, and the signals that end its running calls. */
export class Lifecycle {
  phase: Phase = 'starting';
  /** How the configuration is read anew; undefined in a program that does it itself. */
  reloads: ReloadControl | undefined;
  #reloadProblem: string | undefined;
  readonly #running = new Set<AbortController>();
  /** Those of them that a drain does not wait for. */
  readonly #endless = new Set<AbortController>();
  #expired = false;
  #drained: Promise<void> | undefined;

  /** A signal that fires when the caller hangs up before the end of the response, or at the drain's deadline; of an endless one when it begins. */
  abortSignal(response: ServerResponse, isEndless = false): AbortSignal {
    const controller = new AbortController();
    if (this.#expired || (isEndless && this.draining)) controller.abort(SHUTDOWN);
    else if (response.destroyed || response.socket?.destroyed) controller.abort();
    this.#running.add(controller);
    if (isEndless) this.#endless.add(controller);
    response.once('close', () => {
      this.#running.delete(controller);
      this.#endless.delete(controller);
      if (!response.writableFinished) controller.abort();
    });
    return controller.signal;
  }

  /** Why the last reload was refused; undefined when it was not. */
  get reloadProblem(): string | undefined {
    return this.#reloadProblem;
  }

  noteReload(problem: string | undefined): void {
    this.#reloadProblem = problem;
  }

  get draining(): boolean {
    return this.phase === 'draining' || this.phase === 'closed';
  }

  /** Not ready at once; running requests finish or are ended at the deadline; resolves when the last socket is closed. */
  drain(server: Server, options: DrainOptions): Promise<void> {
    this.#drained ??= this.#drain(server, options);
    return this.#drained;
  }

  async #drain(server: Server, { delayMs, deadlineMs, sockets }: DrainOptions): Promise<void> {
    this.phase = 'draining';
    for (const controller of this.#endless) controller.abort(SHUTDOWN);
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    sockets?.drain();
    server.closeIdleConnections();
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    const end = setTimeout(() => this.#expire(), deadlineMs);
    const cut = setTimeout(() => {
      sockets?.close();
      server.closeAllConnections();
    }, deadlineMs + GRACE_MS);
    await closed;
    clearInterval(sweep);
    clearTimeout(end);
    clearTimeout(cut);
    this.phase = 'closed';
  }

  #expire(): void {
    this.#expired = true;
    for (const controller of this.#running) controller.abort(SHUTDOWN);
  }
}
