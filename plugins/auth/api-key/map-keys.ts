/** How many keys are read at once: each is several documents, and a store on a server has few connections. */
const AT_ONCE = 8;

/** What `read` makes of each key, in their order: a page of keys waits for the store in small parts. */
export async function mapKeys<Key, Result>(
  keys: readonly Key[],
  read: (key: Key) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < keys.length; at += AT_ONCE)
    results.push(...(await Promise.all(keys.slice(at, at + AT_ONCE).map(read))));
  return results;
}
