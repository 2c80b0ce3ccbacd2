import type { TagRules } from './tags.ts';

/** A plan: requests and tokens a minute, calls at once (0 allows none), and what its callers may use beside models. */
export interface Plan {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
  /** Tools that a vendor runs with the operator's account and that callers of this plan may use; none unless set. */
  readonly serverTools?: readonly string[];
  readonly providers?: Readonly<
    Record<string, { readonly rpm?: number; readonly tpm?: number; readonly concurrency?: number }>
  >;
}

/** Facts of the whole configuration that plugins may know. */
export interface GatewaySettings {
  readonly billing: 'off' | 'track' | 'enforce';
  readonly plans: Readonly<Record<string, Plan>>;
  /** The plan of users whose key and token name none. */
  readonly defaultPlan: string | undefined;
  /** What calls may be booked under: the values of each name, or `*`. */
  readonly tags: TagRules;
  /** A folder that plugins may write into: beside the embedded store, else `./data`. Absolute. */
  readonly dataDir: string;
  /** The folder of the configuration file: what relative paths in a config are relative to. Absolute. */
  readonly baseDir: string;
  readonly version: string;
  /** True when no configuration file was found and the built-in one runs. */
  readonly isDefault: boolean;
}
