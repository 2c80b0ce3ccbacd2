/** Runs the tasks, at most `limit` at a time, and returns their outcomes in the order of the tasks. */
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
