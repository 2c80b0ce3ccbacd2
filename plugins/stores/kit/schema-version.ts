/** The words of one kind of store for another schema version. */
export interface SchemaWords {
  readonly kind: string;
  /** What holds one store: `folder`, `database`. */
  readonly place: string;
  /** What the operator sets to leave that store alone: `set store to a new folder`. */
  readonly remedy: string;
}

/** Why a store with the schema version `found` is refused by a gateway that knows `known`; undefined when it is that one. */
export function explainSchemaVersion(words: SchemaWords, found: number, known: number): string | undefined {
  if (found === known) return undefined;
  const { kind, place, remedy } = words;
  const untouched = 'Nothing in it was changed.';
  return found < known
    ? `The ${kind} store was made by an earlier version of Tollgate (schema ${found}), which this version cannot read: keep its ${place} for that version, and ${remedy}. ${untouched}`
    : `The ${kind} store was written by a newer version of Tollgate (schema ${found}, this version knows ${known}): start that version, or ${remedy}. ${untouched}`;
}
