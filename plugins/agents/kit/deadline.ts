import { GatewayError, isGatewayError } from '../../../contract/index.ts';

export interface Deadline {
  /** Fires at the deadline, or when the parent fires. */
  readonly signal: AbortSignal;
  readonly expired: () => boolean;
  /** Clears the timer and aborts remaining work under the signal; call it when the work is done. */
  stop(): void;
}

/** Starts a deadline whose signal fires after `ms`, or with its parent. */
export function startDeadline(parent: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  let expired = false;
  const timer = setTimeout(() => {
    expired = true;
    controller.abort(new GatewayError('provider_timeout', `The agents did not finish within ${ms} ms.`));
  }, ms);
  const follow = () => controller.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener('abort', follow, { once: true });
  return {
    signal: controller.signal,
    expired: () => expired,
    stop() {
      clearTimeout(timer);
      parent.removeEventListener('abort', follow);
      controller.abort();
    },
  };
}

/** Resolves with the work's result, or rejects as soon as the signal fires, even if the work ignores it. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    const fire = () => reject(abortError(signal));
    if (signal.aborted) fire();
    signal.addEventListener('abort', fire, { once: true });
    stop = () => signal.removeEventListener('abort', fire);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop();
  }
}

function abortError(signal: AbortSignal): unknown {
  if (isGatewayError(signal.reason)) return signal.reason;
  return new GatewayError('shutting_down', 'The call was cancelled before it finished.', { cause: signal.reason });
}
