/** Runs the tasks, at most `limit` concurrently, and returns their outcomes in order. */
export async function runBounded<T>(
  tasks: readonly (() => Promise<T>)[],
  limit: number,
): Promise<readonly PromiseSettledResult<T>[]> {
  const outcomes: PromiseSettledResult<T>[] = [];
  const queue = tasks.entries();
  const work = async () => {
    for (const [index, task] of queue) {
      const [outcome] = await Promise.allSettled([task()]);
      outcomes[index] = outcome;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, tasks.length) }, work));
  return outcomes;
}
