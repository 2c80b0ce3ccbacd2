/** Concepts that say how a sentence is built: no rule asks for them, and nothing denies them. */
export const GRAMMAR: ReadonlySet<string> = new Set(
  'no not not_after denied_after ruled_out have but or and subject pseudo idiom now past well topic fiction asks person complaint'.split(
    ' ',
  ),
);
