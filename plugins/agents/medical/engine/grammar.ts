/** Concepts that say how a sentence is built: no rule asks for them, and nothing denies them. */
export const GRAMMAR: ReadonlySet<string> = new Set(
  'no not not_after denied_after ruled_out have but or and subject pseudo idiom now past well topic fiction asks person complaint'.split(
    ' ',
  ),
);

/**
 * What a body does by itself: not doing it is the sign. "Does not breathe" is one, "no difficulty breathing" is not, so only a
 * negated verb counts for these.
 */
export const FUNCTIONS: ReadonlySet<string> = new Set(
  'breathe wake respond move speak see feel stand swallow stop feed pee help understand fade open bend smile obey push bear cry shiver let_go'.split(
    ' ',
  ),
);

/** An instruction: "setzen Sie es nicht ab" is no change. A complaint may well have its negation in the gap. */
export const INSTRUCTIONS: ReadonlySet<string> = new Set(['change', 'dose_verb', 'again_after', 'start', 'intake']);
