import type { RuleData } from '../rules/index.ts';
import rules from './rules.json' with { type: 'json' };

/** Rule against content in a generated answer. */
export interface ReleaseRule extends RuleData {
  /** Objection for the writer, to correct the answer. */
  readonly objection: string;
  /** Applies only together with a danger sign. */
  readonly onlyWithDanger?: boolean;
  /** Amounts that the person or a source named may be repeated. */
  readonly mayRepeat?: boolean;
}

/** All rules for generated answers. `test/plugins/agents/medical/rules.test.ts` checks their shape. */
export const RELEASE_RULES: readonly ReleaseRule[] = Object.freeze(rules as unknown as readonly ReleaseRule[]);
