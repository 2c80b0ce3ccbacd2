/** Timer and clock that those of a test do not replace. */
const { setTimeout } = globalThis;
const now = performance.now.bind(performance);

/** Waits for a condition with a limit, instead of for a time. Rejects with a description of the missed condition. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const giveUpAt = now() + withinMs;
  while (!(await condition())) {
    if (now() > giveUpAt) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Repeats a check until it succeeds; rejects with its last error at the limit. */
export async function eventually<T>(condition: () => Promise<T>, boundMs = 60_000): Promise<T> {
  const deadline = now() + boundMs;
  for (;;) {
    try {
      return await condition();
    } catch (error) {
      if (now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
