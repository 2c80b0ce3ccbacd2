/** Waits for a condition with a bound, instead of for a time. Rejects naming what did not happen. */
export async function until(what: string, condition: () => boolean, withinMs = 5_000): Promise<void> {
  const giveUpAt = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
