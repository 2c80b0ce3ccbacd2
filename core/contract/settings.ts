/** Limits by the name of a plan: requests and tokens a minute, calls at once; 0 allows none. */
export interface Plan {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
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
  /** A folder that plugins may write into: beside the embedded store, else `./data`. Absolute. */
  readonly dataDir: string;
  /** The folder of the configuration file: what relative paths in a config are relative to. Absolute. */
  readonly baseDir: string;
  readonly version: string;
  /** True when no configuration file was found and the built-in one runs. */
  readonly isDefault: boolean;
}
