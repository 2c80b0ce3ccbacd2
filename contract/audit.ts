import type { RouteContext } from './route.ts';

/** Author of a change. */
export interface AuditActor {
  /** `console`: a person signed in with a browser; `file`: a change of the configuration file, by a watch or a signal. */
  readonly via: 'api' | 'cli' | 'console' | 'file';
  /** User of the key or token; on the command line, the name of the system's user. */
  readonly userId?: string;
  /** Public id of the key. */
  readonly keyId?: string;
  readonly address?: string;
}

/** Change that an operator made. Contains no secrets: neither keys nor hashes of keys. */
export interface AuditChange {
  readonly actor: AuditActor;
  /** Action, such as `key.block`. */
  readonly action: string;
  /** Changed object, such as `tg_Q0sdw7kGLtpz` or `u_42`. */
  readonly subject: string;
  /** State before the change; absent for created objects. */
  readonly before?: object;
  /** State after the change; absent for deleted objects. */
  readonly after?: object;
}

/** Entry of the audit log. */
export interface AuditEntry extends AuditChange {
  /** Unique and ordered by time. */
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Filter for entries, newest first. Absent fields do not filter. */
export interface AuditQuery {
  /** Unix milliseconds; half-open: `from` is included, `to` is excluded. */
  readonly from?: number;
  readonly to?: number;
  readonly subject?: string;
  /** User, id of a key, or `api`, `cli`, `console`, `file`. */
  readonly actor?: string;
  /** Action such as `key.block`, or a prefix: `key` matches all actions on keys. */
  readonly action?: string;
  /** 1 to 1000. */
  readonly limit: number;
  /** `next` of the previous page. */
  readonly after?: string;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Cursor of the next page; absent on the last page. A page with fewer entries may have one: the search is bounded. */
  readonly next?: string;
}

/** Returns the caller of a route, for the audit log. */
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
