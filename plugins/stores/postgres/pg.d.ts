/** Types for the part of `pg` that this store uses; the package has no types. */
declare module 'pg' {
  export interface QueryConfig {
    /** Prepares the statement under this name, once per connection. */
    readonly name?: string;
    readonly text: string;
    readonly values?: readonly unknown[];
    /** Milliseconds; overrides the pool's. */
    readonly query_timeout?: number;
  }

  export interface QueryResult {
    readonly rows: Record<string, unknown>[];
  }

  export interface PoolConfig {
    readonly connectionString?: string;
    readonly max?: number;
    readonly connectionTimeoutMillis?: number;
    readonly idleTimeoutMillis?: number;
    readonly query_timeout?: number;
    readonly statement_timeout?: number;
    readonly idle_in_transaction_session_timeout?: number;
    readonly keepAlive?: boolean;
    readonly application_name?: string;
  }

  export class Pool {
    constructor(config: PoolConfig);
    on(event: 'error', listener: (error: unknown) => void): this;
    query(query: QueryConfig): Promise<QueryResult>;
    end(): Promise<void>;
  }

  const pg: { readonly Pool: typeof Pool };
  export default pg;
}
