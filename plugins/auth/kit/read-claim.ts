/** Reads a claim by its full name (which may contain dots: `https://acme.example/plan`), else as a path. */
export function readClaim(payload: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name];
  return name.split('.').reduce<unknown>((value, part) => {
    const isObject = typeof value === 'object' && value !== null;
    return isObject && Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined;
  }, payload);
}

/** Returns a list of texts unchanged, or splits one text into words; undefined for other values. */
export function splitWords(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return value.split(' ').filter(Boolean);
  if (!Array.isArray(value)) return undefined;
  return value.every((entry) => typeof entry === 'string') ? value : undefined;
}
