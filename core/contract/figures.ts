/** A number that operators see, read when somebody looks. */
export interface Figure {
  /** Words of `[a-z0-9_]`, its unit last: `held_usd`. Among the metrics it is `tollgate_held_usd`. */
  readonly name: string;
  /** One line. */
  readonly help: string;
  read(): number;
}

/** Told of each operation of the store when it is over: `ledger.reserve`, `counters.take`, `documents.get`. */
export type StoreWatcher = (operation: string, ms: number, isOk: boolean) => void;
