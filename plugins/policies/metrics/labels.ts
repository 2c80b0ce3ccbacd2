/** Values a label may have before new ones are counted as `_other`: a caller must not be able to fill the memory. */
const MAX_VALUES = 200;

/** Keeps the first {@link MAX_VALUES} values of a label, and calls the rest `_other`, as those that are not real. */
export function boundedLabel(): (value: string, isReal?: () => boolean) => string {
  const known = new Set<string>();
  return (value, isReal) => {
    if (known.has(value)) return value;
    if (known.size >= MAX_VALUES || isReal?.() === false) return '_other';
    known.add(value);
    return value;
  };
}
