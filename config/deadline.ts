/** Time limit of one step of a third-party plugin while a configuration is loaded. */
export const LOAD_TIMEOUT_MS = 30_000;

/** Resolves like `work`, and rejects with `late()` at the time limit. The timer keeps the process alive until then. */
export async function within<T>(work: PromiseLike<T>, timeoutMs: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), timeoutMs);
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
