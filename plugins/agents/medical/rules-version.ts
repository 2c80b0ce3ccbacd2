import { createHash } from 'node:crypto';
import { LEXICONS } from './lexicon/index.ts';
import { RELEASE_RULES } from './release-rules/index.ts';
import { RELEASE_LEXICONS } from './release-rules/lexicon/index.ts';
import { RULES } from './rules/index.ts';

/** Raised by hand when the rules are read in another way than before. */
const EDITION = 3;

/** Which rules and lexicons answered: the edition and a fingerprint of their text, so that two answers can be compared. */
export const RULES_VERSION = `${EDITION}.${createHash('sha256')
  .update(JSON.stringify([RULES, LEXICONS, RELEASE_RULES, RELEASE_LEXICONS]))
  .digest('hex')
  .slice(0, 10)}`;
