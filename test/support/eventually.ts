/** Waits until a condition holds, by trying; rejects with what was wrong last when it never does. */
export async function eventually<T>(condition: () => Promise<T>, boundMs = 15_000): Promise<T> {
  const deadline = Date.now() + boundMs;
  for (;;) {
    try {
      return await condition();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
