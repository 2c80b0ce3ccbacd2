import type { RuleExamples, Source } from '../rules/rule.ts';

/** What a generated answer must not say. */
export interface ReleaseRule {
  readonly id: string;
  /** Raised when the rule says something else than before. */
  readonly version: number;
  /** The objection that the writer gets, to correct the answer. */
  readonly objection: string;
  /** Conditions over the concepts of `lexicon/`; the rule holds when one of them does. */
  readonly when: readonly string[];
  /** Only together with a danger sign. */
  readonly onlyWithDanger?: boolean;
  /** An amount that the person or a source named may be repeated. */
  readonly mayRepeat?: boolean;
  readonly source: Source;
  readonly examples: RuleExamples;
}
