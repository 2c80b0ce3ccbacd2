/** The name of an account whose key is not its name, as JSON: that has no NUL and no half of a surrogate pair. */
export function packName(name: string, key: string): string | null {
  return name === key ? null : JSON.stringify(name);
}

/** The name of an account: what {@link packName} made, or its key. */
export function readName(key: string, packed: unknown): string {
  return typeof packed === 'string' ? (JSON.parse(packed) as string) : key;
}
