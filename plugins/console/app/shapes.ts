/** Responses of operator routes, as far as the pages use them. `/docs` describes each. */

export interface Attempt {
  readonly target: string;
  /** Name of the provider's key, if it has several. */
  readonly key?: string;
  readonly ms: number;
  readonly status?: number;
  readonly class?: string;
  readonly reason?: string;
}

export interface Call {
  readonly id: string;
  readonly request_id: string;
  readonly at: string;
  readonly started_at: string;
  readonly account: string;
  readonly user_id: string;
  readonly key: string;
  readonly tags: readonly string[];
  readonly session: string | null;
  readonly address: string | null;
  readonly end_user: string | null;
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  readonly requested: string | null;
  readonly stream: boolean;
  readonly outcome: string;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly refused_by: string | null;
  readonly attempts: readonly Attempt[];
  readonly lane: string | null;
  readonly duration_ms: number;
  readonly first_byte_ms: number | null;
  /** Milliseconds by phase; null in records of earlier builds. */
  readonly phases: Readonly<Record<string, number>> | null;
  readonly hook_times: readonly { readonly plugin: string; readonly hook: string; readonly ms: number }[] | null;
  readonly units: Readonly<Record<string, number>>;
  /** Null if nothing was charged because the cost is unknown. */
  readonly cost_usd: string | null;
  readonly saved_usd: string | null;
  readonly estimated: boolean;
  readonly priced: boolean;
}

/** Action of a plugin's hook on a call. */
export interface CallHook {
  readonly plugin: string;
  readonly hook: string;
  readonly action: string;
  readonly ms?: number;
}

export interface OneCall extends Call {
  readonly trace_id: string | null;
  readonly hooks: readonly CallHook[] | null;
  readonly cost_parts:
    | readonly { readonly unit: string; readonly quantity: number; readonly usd: string | null }[]
    | null;
  readonly bodies: unknown;
}

/** Budget close to exhaustion. */
export interface NearBudget {
  readonly budget: string;
  readonly of: string;
  readonly whose: string;
  readonly plan?: string;
  readonly used: number;
  readonly amount_usd: string;
  readonly spent_usd: string;
  readonly left_usd: string;
  readonly starts_at: string | null;
  readonly resets_at: string | null;
  readonly forecast_usd: string | null;
  readonly runs_out_at: string | null;
}

/** Sums of calls over time. */
export interface OverviewSums {
  readonly requests: number;
  readonly errors: number;
  readonly refused: number;
  readonly cost_usd: string;
  readonly duration_p95_ms: number | null;
  readonly first_byte_p50_ms: number | null;
}

/** Calls with the same error of the same model. */
export interface Cause {
  readonly outcome: string;
  readonly error_code: string | null;
  readonly refused_by: string | null;
  readonly alias: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  readonly calls: number;
  readonly users: number;
  readonly first_at: string;
  readonly last_at: string;
  readonly last_id: string;
  readonly message: string | null;
}

export interface Overview {
  readonly from: string;
  readonly to: string;
  readonly steps: readonly (OverviewSums & { readonly at: string; readonly name: string })[];
  readonly totals: OverviewSums;
  readonly causes: readonly Cause[];
  readonly is_complete: boolean;
}

/** Program that a person signed in with. */
export interface ProgramSignIn {
  readonly id: string;
  readonly program: string;
  readonly address: string;
  readonly started_at: string;
  readonly ends_at: string;
}

/** Process that runs on the store. */
export interface GatewayNode {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly started_at: string;
  readonly seen_at: string;
  readonly generation: number;
  readonly targets: Readonly<Record<string, number>>;
}

export interface Target {
  readonly target: string;
  readonly provider: string;
  readonly model: string;
  /** Name of the provider’s key, if the row is about a single one. */
  readonly key?: string;
  readonly state: 'closed' | 'half-open' | 'open' | 'drained';
  readonly cause?: string;
  readonly open_until?: string;
  readonly error_ratio: number;
  readonly attempts: number;
  readonly whole_ms?: number;
  readonly first_token_ms?: number;
  /** State in each process that used it. */
  readonly nodes: readonly {
    readonly node: string;
    readonly state: Target['state'];
    readonly error_ratio: number;
    readonly attempts: number;
    readonly first_token_ms?: number;
  }[];
  readonly last_error?: {
    readonly at: string;
    /** Absent for a vendor's message without the scope `bodies:read`. */
    readonly message?: string;
    readonly class?: string;
    readonly status?: number;
    readonly request_id?: string;
  };
}

/** Budget of one key, as the key shows it. */
export interface KeyBudget {
  readonly name: string;
  readonly every: string;
  readonly amount_usd: string;
  readonly spent_usd: string;
  readonly left_usd: string;
  readonly resets_at: string;
}

export interface Budget extends Omit<KeyBudget, 'resets_at'> {
  readonly of: string;
  readonly timezone: string;
  readonly held_usd: string;
  readonly resets_at: string | null;
  readonly owner: 'file' | 'store';
  readonly raised_usd?: string;
  readonly soft_usd?: string;
  readonly starts_on?: string | number;
  readonly user?: string;
  readonly key?: string;
  readonly tag?: string;
  readonly plan?: string;
  readonly end_user?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly raises: readonly { readonly amount_usd: string; readonly until: string }[];
}

export interface Key {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly role: string | null;
  readonly scopes?: readonly string[];
  readonly prefix: string;
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly blocked_at: string | null;
  readonly blocked_reason: string | null;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly plan: string | null;
  readonly models: readonly string[] | null;
  readonly server_tools?: readonly string[] | null;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly budget_usd: string | null;
  readonly budgets: readonly { readonly amount_usd: string; readonly every: string }[] | null;
  readonly tags: readonly string[] | null;
  readonly spent_usd: string;
}

export interface User {
  readonly id: string;
  readonly name: string | null;
  readonly plan: string | null;
  readonly account: string;
  readonly keys: number;
  readonly spent_this_month_usd: string;
  readonly last_call_at: string | null;
  readonly blocked: boolean;
  readonly blocked_at: string | null;
  readonly blocked_reason: string | null;
}

export interface Account {
  readonly id: string;
  readonly plan: string | null;
  readonly balance_usd: string;
  readonly held_usd: string;
  readonly spent_usd: string;
  readonly credited_usd: string;
  readonly updated_at: string | null;
}

export interface WholeAccount extends Account {
  readonly budgets: readonly (Omit<KeyBudget, 'resets_at'> & {
    readonly resets_at: string | null;
    readonly plan?: string;
  })[];
  readonly entries: readonly {
    readonly at: string;
    readonly kind: string;
    readonly amount_usd: string;
    readonly reason: string;
    readonly ref: string;
  }[];
}

export interface Team {
  readonly tag: string;
  readonly owners: {
    readonly users?: readonly string[];
    readonly groups?: readonly string[];
    readonly keys?: readonly string[];
  };
  /** Default: the tag. */
  readonly account?: string;
  readonly members?: readonly string[];
  readonly models?: readonly string[];
  readonly providers?: readonly string[];
  readonly server_tools?: readonly string[];
  readonly plans?: readonly string[];
  readonly budget?: Readonly<Record<string, unknown>> & {
    readonly amount_usd: string | number;
    readonly every: string;
  };
}

export interface Sums {
  readonly requests: number;
  readonly errors: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly reasoning_tokens: number;
  readonly cost_usd: string;
  readonly saved_usd: string;
  readonly unpriced_requests: number;
  /** Present if requested. */
  readonly latency?: Latency | null;
}

interface Latency {
  readonly calls: number;
  readonly duration_p50_ms: number;
  readonly duration_p95_ms: number;
  readonly first_byte_p50_ms?: number;
  readonly first_byte_p95_ms?: number;
}

/** `previous` has the sums of the range before, if requested. */
export type UsageRow = Sums & { readonly previous?: Sums } & Readonly<Record<string, unknown>>;

export interface Usage {
  readonly from: string;
  readonly to: string;
  readonly tz: string;
  readonly by: readonly string[];
  readonly data: readonly UsageRow[];
  readonly rows: number;
  readonly totals: Sums;
  readonly latency_of?: { readonly calls: number; readonly is_complete: boolean };
  readonly has_more: boolean;
  readonly next?: string;
}

export interface Model {
  readonly id: string;
  readonly provider: string | null;
  readonly is_callable: boolean;
  /** Problem that stops its calls, or some of them, with the remedy. */
  readonly problem: string | null;
  /** Targets of an alias. */
  readonly targets: readonly string[] | null;
  readonly context_window: number | null;
  /** Day from which its vendor no longer serves it. */
  readonly shutdown: string | null;
  readonly price: { readonly input: number; readonly output: number; readonly cached_input?: number } | null;
}

export interface SpeechVendor {
  readonly vendor: string;
  readonly is_callable: boolean;
  readonly models: readonly string[];
  readonly formats: readonly string[];
  readonly default_voice: string;
  readonly speed: { readonly min: number; readonly max: number };
}

export interface AgentTeam {
  readonly model: string;
  readonly agents: readonly { readonly name: string; readonly when: string; readonly model: string | null }[];
}

export interface HookCounts {
  readonly calls: number;
  readonly failures: number;
  readonly skipped: number;
  readonly seconds: number;
}

export interface Plugin {
  readonly name: string;
  readonly plugin: string;
  readonly kind: string;
  readonly is_builtin: boolean;
  readonly hosts: readonly string[];
  readonly environment: readonly string[];
  readonly permissions: readonly string[];
  readonly problem?: string;
  readonly hooks: readonly string[];
  readonly hook_counts: readonly (HookCounts & {
    readonly hook: string;
    /** Counts of each process. */
    readonly nodes: readonly (HookCounts & { readonly node: string })[];
  })[];
  readonly routes: readonly string[];
  readonly commands: readonly string[];
}

export interface Configuration {
  readonly file: string;
  /** Reason why the last reload was refused. */
  readonly problem?: string;
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly sources: Readonly<Record<string, string>>;
}

export interface Reload {
  readonly reloaded: boolean;
  readonly changes: readonly {
    readonly path: string;
    readonly before?: string;
    readonly after?: string;
    readonly needs_restart: boolean;
  }[];
}

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly actor: {
    readonly via: string;
    readonly user_id: string | null;
    readonly key_id: string | null;
    readonly address: string | null;
  };
  readonly action: string;
  readonly subject: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

export interface McpTool {
  readonly name: string;
  readonly state: 'approved' | 'new' | 'changed';
  readonly since?: string;
  readonly definition?: string;
  readonly approved_definition?: string;
}

export interface McpServer {
  readonly name: string;
  readonly approved: number;
  /** Tools that are withheld. */
  readonly waiting: number;
  /** True if each user connects an account. */
  readonly has_accounts: boolean;
  readonly processes: readonly {
    readonly state: string;
    readonly problem?: string;
    readonly pid?: number;
    readonly protocol?: string;
    readonly starts: number;
  }[];
  readonly tools: readonly McpTool[];
}

/** Person or program that proposed a change or decided about it. */
interface Decider {
  readonly user_id: string;
  readonly key_id: string | null;
}

export interface ProposedChange {
  readonly id: string;
  readonly state: 'open' | 'confirmed' | 'rejected' | 'failed';
  readonly summary: string;
  readonly scope: string;
  readonly method: string;
  readonly path: string;
  readonly body: object | null;
  readonly before: unknown;
  readonly differences: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[];
  readonly reason: string | null;
  readonly proposed_by: Decider;
  readonly expires_at: string;
  readonly decided_by: Decider | null;
  readonly problem: string | null;
}
