import { CERTAIN_DIAGNOSIS } from './certain-diagnosis.ts';
import { DOSE_AMOUNT } from './dose-amount.ts';
import { DOSE_FREQUENCY } from './dose-frequency.ts';
import { FALSE_COMFORT } from './false-comfort.ts';
import { MEDICINE_CHANGE } from './medicine-change.ts';
import { MEDICINE_START } from './medicine-start.ts';
import type { ReleaseRule } from './release-rule.ts';

/** All rules that a generated answer is held to. */
export const RELEASE_RULES: readonly ReleaseRule[] = Object.freeze([
  CERTAIN_DIAGNOSIS,
  DOSE_AMOUNT,
  DOSE_FREQUENCY,
  MEDICINE_CHANGE,
  MEDICINE_START,
  FALSE_COMFORT,
]);
