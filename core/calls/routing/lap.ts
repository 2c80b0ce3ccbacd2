import type { Target } from '../../contract/call.ts';
import type { LiveCall } from '../live-call.ts';

/** One attempt: alone, or one of two that run at the same time on copies of the call. */
export interface Lap {
  readonly call: LiveCall;
  readonly target: Target;
  /** Whether it was begun because another one takes long. */
  readonly isSecond: boolean;
  /** To be told that it is over; answers whether another one still runs. */
  end(): boolean;
}

/** A target in a line of the log; callers make names up. */
export function nameOf({ provider, model }: Target): string {
  return `${provider}/${model.slice(0, 100)}`;
}
