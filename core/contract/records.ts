/** A record as it is now. */
export interface RecordVersion<T> {
  /** How often it was changed; 0 for one that was never written. */
  readonly version: number;
  readonly value: T | undefined;
}

export interface RecordChange<T> {
  readonly version: number;
  readonly before: T | undefined;
  readonly value: T;
}

/**
 * Records that are changed one change after the other, on every store and by any number of nodes: no change is lost,
 * each is made of what the one before it left.
 */
export interface Records<T> {
  find(id: string): Promise<RecordVersion<T>>;
  /**
   * Writes what `make` makes of the value; runs it again on the newer value when another change came first. With `expected`
   * it throws `precondition_failed` unless that is the version. What `make` throws changes nothing.
   */
  change(id: string, make: (value: T | undefined) => T, expected?: number): Promise<RecordChange<T>>;
  /** Told the id of each record that this process changed, so that it forgets what it knew. */
  onChange(listener: (id: string) => void): void;
}
