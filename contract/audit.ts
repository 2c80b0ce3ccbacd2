import type { RouteContext } from './route.ts';

/** Who changed something, and from where. */
export interface AuditActor {
  /** `console`: a person who signed in with a browser; `file`: whoever changed the configuration file, by a watch or a signal. */
  readonly via: 'api' | 'cli' | 'console' | 'file';
  /** The user of the key or token; on the command line the name of the system's user. */
  readonly userId?: string;
  /** The public id of the key. */
  readonly keyId?: string;
  readonly address?: string;
}

/** A change that an operator made. What it shows holds no secret: neither a key nor a hash of one. */
export interface AuditChange {
  readonly actor: AuditActor;
  /** What was done, as `key.block`. */
  readonly action: string;
  /** What it was done to, such as `tg_Q0sdw7kGLtpz` or `u_42`. */
  readonly subject: string;
  /** How it was before; absent for what was made. */
  readonly before?: object;
  /** How it is since; absent for what was removed. */
  readonly after?: object;
}

/** A change as it was written down. */
export interface AuditEntry extends AuditChange {
  /** Unique, and in the order of time. */
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Which entries are wanted, newest first; what is absent does not narrow. */
export interface AuditQuery {
  /** Unix milliseconds; half-open: `from` is in it, `to` is not. */
  readonly from?: number;
  readonly to?: number;
  readonly subject?: string;
  /** A user, the id of a key, or `api`, `cli`, `console`, `file`. */
  readonly actor?: string;
  /** An action such as `key.block`, or all that begin with a word: `key`. */
  readonly action?: string;
  /** 1 to 1000. */
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: string;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Where the next page begins; absent on the last one. A page that is not full may have one: the search is bounded. */
  readonly next?: string;
}

/** Who makes a request, for the audit log. */
export function auditActor(ctx: { readonly state: Pick<RouteContext['state'], 'principal' | 'ip'> }): AuditActor {
  const { principal, ip } = ctx.state;
  const { credential, userId, keyId } = principal;
  return {
    via: credential === 'session' ? 'console' : 'api',
    userId,
    ...(keyId !== undefined && { keyId }),
    address: ip,
  };
}
