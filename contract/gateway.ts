import type { Got } from 'got';
import type { AuditActor } from './audit.ts';
import type { RoutingState, Target } from './call.ts';
import type { ConfigChange, DraftControl } from './config-changes.ts';
import type { Log } from './units.ts';

/** Result of a reload or of a trial. */
export interface ReloadReport {
  /** Display name of the configuration. */
  readonly file: string;
  /** True if the new configuration is active; a trial changes nothing. */
  readonly isReloaded: boolean;
  readonly changes: readonly ConfigChange[];
  /** Reason for keeping the old configuration. */
  readonly problem?: string;
  /** Public summary of the problem: short and without paths. */
  readonly summary?: string;
  /** False if the store rejected the audit entry of the reload. */
  readonly isInAudit?: boolean;
}

/** Reloads the configuration of a running gateway. Never rejects: problems are in the report. */
export interface ReloadControl {
  /** Reloads and writes to the audit log; reloads run one at a time. `cause` is for the log, `actor` for the audit log. */
  reload(cause: string, actor: AuditActor): Promise<ReloadReport>;
  /** Returns the changes that a reload would make, without making them. */
  compare(): Promise<ReloadReport>;
  /** Drafts of changes to the configuration file. */
  readonly drafts: DraftControl;
}

/** Statistics of one hook of an instance since the process started. */
export interface HookReport {
  readonly hook: string;
  /** Number of runs; for a stream's transform, one per chunk as well. */
  readonly calls: number;
  /** Bugs and unavailable dependencies. Rejections do not count. */
  readonly failures: number;
  readonly failedInARow: number;
  /** Number of skipped runs after repeated timeouts. */
  readonly skipped: number;
  /** Number of asynchronous calls and their total milliseconds. */
  readonly timed: number;
  readonly timedMs: number;
}

/** Part of an instance that works by itself, such as a program that it runs. */
export interface PartReport {
  /** Unique in the instance. */
  readonly name: string;
  /** One word, such as `ready`. */
  readonly state: string;
  readonly isHealthy: boolean;
  /** Reason of a bad state. For operators: it may name files and hosts. */
  readonly problem?: string;
}

/** Instance of the configuration and its registrations. */
export interface PluginReport {
  /** Instance name in the configuration. */
  readonly name: string;
  /** Built-in name, package or path. */
  readonly plugin: string;
  readonly kind: string;
  /** True if it ships with Tollgate. */
  readonly isBuiltin: boolean;
  /** Hosts that it may connect to, in addition to those in its options. */
  readonly hosts: readonly string[];
  /** Permissions beyond those of every plugin. */
  readonly permissions: readonly string[];
  /** Environment variables that its options name, including missing ones. */
  readonly environment: readonly string[];
  /** Reason why this optional instance failed to start. For operators: it may name files and hosts. */
  readonly problem?: string;
  /** Hooks in order of registration; `admit (pre)` if an order was given. */
  readonly hooks: readonly string[];
  /** Hook statistics since this process started. */
  readonly counts: readonly HookReport[];
  /** Its parts in this process; empty for most instances. */
  readonly parts: readonly PartReport[];
  /** Routes, such as `GET /api/things/:id`. */
  readonly routes: readonly string[];
  readonly commands: readonly string[];
}

/** Active configuration. */
export interface ConfigurationReport {
  /** Display name. */
  readonly file: string;
  /** True for the built-in configuration. */
  readonly isDefault: boolean;
  /** Same for all gateways that use this file; undefined without a file. */
  readonly fileId?: string | undefined;
  /** Returns the effective configuration, defaults included, secrets masked. */
  printable(): Readonly<Record<string, unknown>>;
  /** Source of each value by JSON pointer, if not the file. */
  readonly sources: ReadonlyMap<string, string>;
}

/** Operators' view of the gateway. */
export interface GatewayView {
  /** Returns targets and retries of all processes. */
  routing(): Promise<RoutingState>;
  /** Stops new calls of this process to these targets (`provider/model`) and providers. Replaces the previous set. */
  drain(names: ReadonlySet<string>): void;
  /** Closes the circuit of a target in this process, and resets the state of its provider and their keys. */
  reset(target: Target): void;
  readonly configuration: ConfigurationReport;
  /** Returns all instances, the store's first, then in the order of the configuration; complete once the gateway listens. */
  plugins(): readonly PluginReport[];
  /** Returns the reload control; undefined in a program that reloads the configuration itself. */
  reloads(): ReloadControl | undefined;
  /** Returns the public reason why the last reload was rejected; undefined if it succeeded. */
  reloadProblem(): string | undefined;
}

/** Context of a secrets manager. */
export interface SecretsContext {
  /** Base of relative paths. Absolute. */
  readonly baseDir: string;
  readonly log: Log;
  /** Returns the control-plane client, as `api.http()`, with access to these hosts too. */
  http(hosts?: readonly string[]): Promise<Got>;
}

/** Secrets manager for one start, one reload or one check for changes. */
export interface SecretsReader {
  /**
   * Returns the secret of a reference, which excludes the part before its first colon. Rejects with an Error that explains why it
   * is missing and contains no secret.
   */
  read(name: string): Promise<Secret>;
}

export interface Secret {
  readonly text: string;
  /** Milliseconds until the secret is read again; a change reloads the configuration. Default: never. */
  readonly againMs?: number;
}
