import type { AuditChange, PluginApi } from '../../../contract/index.ts';
import { networkOf } from '../../../contract/operators.ts';

/** Refused attempt to use an operator function. */
export interface Refusal extends Pick<AuditChange, 'actor' | 'subject'> {
  readonly action: 'admin.refused' | 'session.refused';
  /** Error code. */
  readonly code: string;
  /** Missing right, as named by the error. */
  readonly lacking?: string | undefined;
}

interface Repeated {
  readonly first: AuditChange;
  readonly after: object;
  /** Number of repeats since that entry was written. */
  times: number;
}

/** Time for which repeats are counted before one entry reports their number. */
const WINDOW_MS = 10 * 60_000;
/** Maximum callers counted separately in one window; others are counted together. */
const MAX_CALLERS = 100;

/**
 * Writes refusals to the audit log: the first of a caller at once, all others within ten minutes as one entry with
 * their number. Repeated attempts from any number of addresses thus cannot fill the log.
 */
export function createRefusals(
  api: Pick<PluginApi, 'onClose'> & { readonly operators: Pick<PluginApi['operators'], 'audit'> },
): (refusal: Refusal) => void {
  let window = new Map<string, Repeated>();
  let timer: NodeJS.Timeout | undefined;
  // Entries that the store refuses are in the gateway's log.
  const write = (change: AuditChange): Promise<void> => api.operators.audit(change).catch(() => undefined);

  const end = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const ended = [...window.values()];
    window = new Map();
    for (const { first, after, times } of ended)
      if (times > 0) await write({ ...first, after: { ...after, more_times: times } });
  };
  api.onClose(end);

  return ({ actor, action, subject, code, lacking }) => {
    timer ??= setTimeout(() => void end(), WINDOW_MS).unref();
    const isFull = window.size >= MAX_CALLERS;
    const { userId, keyId, address = '' } = actor;
    const own = [action, code, keyId ?? userId ?? networkOf(address)].join(' ');
    const key = isFull && !window.has(own) ? action : own;
    const known = window.get(key);
    if (known) {
      known.times += 1;
      return;
    }
    const after = { code, ...(lacking !== undefined && { lacking }) };
    const first =
      key === own
        ? { actor, action, subject, after }
        : { actor: { via: actor.via }, action, subject: 'many callers', after };
    window.set(key, { first, after, times: 0 });
    void write(first);
  };
}
