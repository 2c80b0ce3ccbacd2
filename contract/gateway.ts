import type { Got } from 'got';
import type { AuditActor } from './audit.ts';
import type { RoutingState, Target } from './call.ts';
import type { Log } from './units.ts';

/** One place at which two configurations differ. Secrets are masked. */
export interface ConfigChange {
  /** As `providers.openai.apiKey`. */
  readonly path: string;
  /** As JSON; absent where the former one has nothing there. */
  readonly before?: string;
  /** As JSON; absent where the new one has nothing there. */
  readonly after?: string;
  /** Whether it counts only after a restart. */
  readonly needsRestart: boolean;
}

/** What a reload came to, or would come to. */
export interface ReloadReport {
  /** The configuration's name for people. */
  readonly file: string;
  /** Whether it serves now; a trial changes nothing. */
  readonly isReloaded: boolean;
  readonly changes: readonly ConfigChange[];
  /** Why the former configuration goes on. */
  readonly problem?: string;
  /** The same in words that anybody may read: without paths, and not too long. */
  readonly summary?: string;
  /** False for a reload that the audit log lacks, since the store did not take the entry. */
  readonly isInAudit?: boolean;
}

/** Reads the configuration of a running gateway anew. Nothing rejects: what is wrong is in the report. */
export interface ReloadControl {
  /** Goes on with it, and writes it to the audit log; one after the other. `cause` is for the log, `actor` for the audit log. */
  reload(cause: string, actor: AuditActor): Promise<ReloadReport>;
  /** What a reload would change; changes nothing. */
  compare(): Promise<ReloadReport>;
}

/** What an instance did with one hook since the process started. */
export interface HookReport {
  readonly hook: string;
  /** How often its functions ran; of a stream's transform also once a chunk. */
  readonly calls: number;
  /** Bugs, and what it needs that does not work; a refusal is none. */
  readonly failures: number;
  readonly failedInARow: number;
  /** How often it was left out because it took too long again and again. */
  readonly skipped: number;
  /** Calls that gave a promise, and the milliseconds of all of them. */
  readonly timed: number;
  readonly timedMs: number;
}

/** An instance of the configuration: what it is, and what it registered. */
export interface PluginReport {
  /** What the configuration calls it. */
  readonly name: string;
  /** The built-in name, package or path. */
  readonly plugin: string;
  readonly kind: string;
  /** Whether it comes with Tollgate. */
  readonly isBuiltin: boolean;
  /** Where it may connect, in addition to its options. */
  readonly hosts: readonly string[];
  /** What of the gateway it uses beyond what every plugin may. */
  readonly permissions: readonly string[];
  /** The environment variables that its options name, whether or not they are set. */
  readonly environment: readonly string[];
  /** Why the gateway runs without it: it is not required, and cannot be set up. In words for operators: it may name files and hosts. */
  readonly problem?: string;
  /** In the order in which it registered them; `admit (pre)` where it says when. */
  readonly hooks: readonly string[];
  /** What its hooks came to since this process started. */
  readonly counts: readonly HookReport[];
  /** As `GET /api/things/:id`. */
  readonly routes: readonly string[];
  readonly commands: readonly string[];
}

/** The configuration that serves. */
export interface ConfigurationReport {
  /** Its name for people. */
  readonly file: string;
  /** Whether it is the built-in one. */
  readonly isDefault: boolean;
  /** What counts, defaults included, secrets masked. */
  printable(): Readonly<Record<string, unknown>>;
  /** By JSON pointer where a value came from, when not from the file. */
  readonly sources: ReadonlyMap<string, string>;
}

/** The gateway as its operators see it. */
export interface GatewayView {
  /** What all of its processes know of their targets and retries. */
  routing(): Promise<RoutingState>;
  /** From now on this process sends no new calls to these targets (`provider/model`) and providers, and to no others that it was told before. */
  drain(names: ReadonlySet<string>): void;
  /** Closes a target in this process, as if nothing had been found out about it, its provider and their keys. */
  reset(target: Target): void;
  readonly configuration: ConfigurationReport;
  /** All instances, the store's first, then in the order of the configuration; complete once the gateway listens. */
  plugins(): readonly PluginReport[];
  /** How its configuration is read anew; undefined in a program that does it itself. */
  reloads(): ReloadControl | undefined;
  /** Why the last reload was refused, in words that anybody may read; undefined when it was not. */
  reloadProblem(): string | undefined;
}

/** What a manager of secrets is read with. */
export interface SecretsContext {
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
  readonly log: Log;
  /** The client of the control plane, as `api.http()`; for these hosts too. */
  http(hosts?: readonly string[]): Promise<Got>;
}

/** A manager of secrets, for one start, reload or look whether something changed. */
export interface SecretsReader {
  /** The secret of a reference, without what stands before its first colon. Rejects with an Error that says why it is missing, and holds no secret. */
  read(name: string): Promise<Secret>;
}

export interface Secret {
  readonly text: string;
  /** After how many milliseconds it is read anew; where it differs then, the configuration is reloaded. Never unless set. */
  readonly againMs?: number;
}
