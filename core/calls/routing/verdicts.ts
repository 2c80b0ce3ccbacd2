import type { Target } from '../../contract/call.ts';
import type { FailureClass } from '../../contract/provider.ts';
import type { OpenCause } from '../../contract/routing.ts';
import type { FailedAttempt } from '../attempt.ts';
import { redact } from '../failures.ts';
import type { HealthBook, Scope } from './health-book.ts';
import type { Verdict } from './target-health.ts';

/** What a class of failure says about its target; undefined for what a caller sent, or for how long a caller waits. */
const CAUSES: Readonly<Record<FailureClass, Exclude<OpenCause, 'shared'> | undefined>> = Object.freeze({
  authentication: 'credential',
  billing: 'credential',
  rate_limit: 'rate_limit',
  overloaded: 'failures',
  upstream_error: 'failures',
  timeout: 'failures',
  model_not_found: undefined,
  context_length: undefined,
  content_filter: undefined,
  invalid_request: undefined,
});

/** Errors of core's own about a response that is none. */
const BROKEN: ReadonlySet<string> = new Set(['provider_invalid_response', 'provider_unavailable']);

/** Whether an attempt failed by what its target did, not by a plugin or because nothing could be sent. */
export function isOfTarget({ class: kind, error }: FailedAttempt): boolean {
  return kind !== undefined || BROKEN.has(error.code);
}

/** Notes what a failed attempt says about its target: nothing when the caller, or a plugin, is why it failed. */
export function reportFailure(
  health: HealthBook,
  target: Target,
  failed: FailedAttempt,
  status: number | undefined,
  requestId: string,
): void {
  const { class: kind, phase, message, errno, error } = failed;
  // Our own bound on connections, and a caller's slowness that the vendor tells.
  if (!isOfTarget(failed) || status === 408 || (phase === 'connect' && kind === 'overloaded')) return;
  const cause = kind === undefined ? 'failures' : CAUSES[kind];
  const verdict: Verdict =
    cause === undefined
      ? { kind: 'alive' }
      : {
          ...{ kind: 'failure', cause, retryAfterMs: error.retryAfterMs },
          error: {
            ...{ message: redact(message), requestId },
            ...(kind && { class: kind }),
            ...(status !== undefined && { status }),
            ...(errno !== undefined && { errno }),
          },
        };
  health.report(target, verdict, scopeOf(failed, status));
}

/** Nothing of a provider works without connection, key or credit; a 403 may be about one model. */
function scopeOf({ class: kind, phase }: FailedAttempt, status: number | undefined): Scope {
  const isWhole = phase === 'connect' || kind === 'billing' || (kind === 'authentication' && status !== 403);
  return isWhole ? 'provider' : 'model';
}
