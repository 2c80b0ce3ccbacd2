import type { RuleExamples, Source } from '../rules/rule.ts';

/** What a generated answer must not say. */
export interface ReleaseRule {
  readonly id: string;
  /** Raised when the rule says something else than before. */
  readonly version: number;
  /** What the writer is told, so that it can be mended. */
  readonly objection: string;
  /** Conditions over the concepts of `lexicon/`; the rule holds when one of them does. */
  readonly when: readonly string[];
  /** Only beside a danger sign. */
  readonly besideDanger?: boolean;
  /** An amount that the person or a source named may be repeated. */
  readonly mayRepeat?: boolean;
  readonly source: Source;
  readonly examples: RuleExamples;
}
