import type { RuleData } from '../rules/index.ts';
import rules from './rules.json' with { type: 'json' };

/** What a generated answer must not say. */
export interface ReleaseRule extends RuleData {
  /** The objection that the writer gets, to correct the answer. */
  readonly objection: string;
  /** Only together with a danger sign. */
  readonly onlyWithDanger?: boolean;
  /** An amount that the person or a source named may be repeated. */
  readonly mayRepeat?: boolean;
}

/** All rules that a generated answer is held to. Their shape is checked by `test/plugins/agents/medical/rules.test.ts`. */
export const RELEASE_RULES: readonly ReleaseRule[] = Object.freeze(rules as unknown as readonly ReleaseRule[]);
