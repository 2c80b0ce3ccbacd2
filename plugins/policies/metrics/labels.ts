/** How many names that are known to be real a label may have, and how many that only worked: a caller must not fill the memory. */
const MAX_LISTED = 1000;
const MAX_OTHERS = 100;

/**
 * Keeps the first names of a label, and calls the rest `_other`. Listed names have places of their own, so that names which
 * callers make up, also those that a provider answers to, never take them.
 */
export function boundedLabel(): (value: string, kindOf: () => 'listed' | 'worked' | 'unknown') => string {
  const listed = new Set<string>();
  const others = new Set<string>();
  return (value, kindOf) => {
    if (listed.has(value) || others.has(value)) return value;
    const kind = kindOf();
    const [known, max] = kind === 'listed' ? [listed, MAX_LISTED] : [others, MAX_OTHERS];
    if (kind === 'unknown' || known.size >= max) return '_other';
    known.add(value);
    return value;
  };
}
