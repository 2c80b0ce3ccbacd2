/** A claim by its full name (which may hold dots: `https://acme.example/plan`), else by the path it spells. */
export function readClaim(payload: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name];
  return name.split('.').reduce<unknown>((value, part) => {
    const isObject = typeof value === 'object' && value !== null;
    return isObject && Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined;
  }, payload);
}

/** The texts of a list as they are, or the words of one text; undefined for what is neither. */
export function splitWords(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return value.split(' ').filter(Boolean);
  if (!Array.isArray(value)) return undefined;
  return value.every((entry) => typeof entry === 'string') ? value : undefined;
}
