import { BLOOD_AND_INFECTION } from './blood-and-infection.ts';
import { BRAIN } from './brain.ts';
import { HEART_AND_BREATH } from './heart-and-breath.ts';
import { MIND_AND_POISON } from './mind-and-poison.ts';
import { MOTHER_AND_CHILD } from './mother-and-child.ts';
import type { RedFlag } from './red-flag.ts';

/** All rules, in the order in which they are told: what threatens life fastest first. */
export const RED_FLAGS: readonly RedFlag[] = Object.freeze([
  ...MIND_AND_POISON,
  ...HEART_AND_BREATH,
  ...BRAIN,
  ...BLOOD_AND_INFECTION,
  ...MOTHER_AND_CHILD,
]);
