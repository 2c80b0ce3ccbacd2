import type { AuditActor } from './audit.ts';
import type { Json, Schema } from './json.ts';

/** Difference between two configurations at one path. Secrets are masked. */
export interface ConfigChange {
  /** Path, such as `providers.openai.apiKey`. */
  readonly path: string;
  /** JSON; absent if the old configuration has no value there. */
  readonly before?: string;
  /** JSON; absent if the new configuration has no value there. */
  readonly after?: string;
  /** True if the change takes effect only after a restart. */
  readonly needsRestart: boolean;
}

/** Parts of a configuration file that operators may write by the API; no other part can be written. */
export type DraftSection = 'models' | 'provider_models' | 'plans' | 'budgets' | 'guardrails';

/** Draft of one entry of the configuration file. */
export interface ConfigDraft {
  readonly section: DraftSection;
  /** Name of the alias, provider, plan, budget or guardrail. */
  readonly name: string;
  /** Value as in the file; undefined removes the entry. */
  readonly value?: Json | undefined;
}

/** Entry of the configuration file. */
export interface DraftEntry {
  readonly name: string;
  /** Value in the form of the section's schema, without references replaced. */
  readonly value: Json;
  readonly yaml: string;
  /** Other file that has the entry, which cannot be changed then. */
  readonly from?: string;
}

/** Entries of a section, and the schema of one. */
export interface DraftSectionView {
  readonly section: DraftSection;
  readonly schema: Schema;
  /** Names of possible entries; absent if any name is possible. */
  readonly names?: readonly string[];
  readonly entries: readonly DraftEntry[];
}

/** Configuration file as operators may change it. */
export interface ConfigFile {
  /** Display name. */
  readonly file: string;
  /** Version of its content. */
  readonly version: string;
  /** Reason why it cannot be written; absent if it can. */
  readonly problem?: string;
  readonly sections: readonly DraftSectionView[];
}

/** Result of checking a draft. */
export interface DraftReport {
  readonly file: string;
  /** Version of the file that was checked. */
  readonly version: string;
  /** The entry as YAML, from the first level; empty for a removed one. */
  readonly yaml: string;
  /** Lines of the entry with `+`, `-` or a space before each. */
  readonly diff: string;
  /** Problems that would stop a start; empty for a valid configuration. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  /** Changes of the running configuration by a reload. Secrets are masked. */
  readonly changes: readonly ConfigChange[];
}

/** Checks drafts, and writes them to the configuration file. Rejects with a GatewayError for operators. */
export interface DraftControl {
  read(): Promise<ConfigFile>;
  /** Checks a draft as `tollgate config check` does; changes nothing. */
  check(draft: ConfigDraft): Promise<DraftReport>;
  /**
   * Writes a draft to the file of this version, and reloads. If the reload fails, the file gets its former content, and the
   * former configuration stays active.
   */
  write(draft: ConfigDraft, version: string, actor: AuditActor): Promise<DraftReport>;
}
