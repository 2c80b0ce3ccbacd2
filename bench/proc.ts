import { readdirSync, readFileSync } from 'node:fs';

/** Kernel ticks per second in /proc/<pid>/stat: Linux has reported 100 to programs for twenty years. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/**
 * CPU time of a process, its threads and its children, in microseconds (user + system). Uses scheduler nanoseconds if
 * the kernel counts them, else ticks of 10 ms.
 */
export function cpuMicros(pid: number): number {
  return family(pid).reduce((sum, each) => sum + (scheduledMicros(each) ?? tickedMicros(each)), 0);
}

/** RSS of a process and its children, in bytes. */
export function memoryBytes(pid: number): number {
  return family(pid).reduce(
    (sum, each) => sum + Number(read(`/proc/${each}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES,
    0,
  );
}

function family(pid: number): readonly number[] {
  const children = tasks(pid).flatMap((task) => read(`/proc/${pid}/task/${task}/children`).trim().split(' '));
  return [pid, ...children.filter(Boolean).flatMap((child) => family(Number(child)))];
}

function scheduledMicros(pid: number): number | undefined {
  let nanos = 0;
  for (const task of tasks(pid)) nanos += Number(read(`/proc/${pid}/task/${task}/schedstat`).split(' ')[0] ?? 0);
  return nanos > 0 ? nanos / 1000 : undefined;
}

function tickedMicros(pid: number): number {
  // The name in the second field may contain spaces.
  const fields = read(`/proc/${pid}/stat`).split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 1_000_000) / TICKS_PER_SECOND;
}

function tasks(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** A thread may end between being listed and being read. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
