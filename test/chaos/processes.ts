import { readdirSync, readFileSync } from 'node:fs';

const PAGE_BYTES = 4096;

/** Child processes of a process. */
export function childrenOf(pid: number): readonly number[] {
  return list(`/proc/${pid}/task`).flatMap((task) =>
    read(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number),
  );
}

/** Memory and open files of a process and its children. */
export function measureFamily(pid: number): {
  readonly bytes: number;
  readonly files: number;
  readonly processes: number;
} {
  const family = [pid, ...childrenOf(pid)];
  return {
    bytes: family.reduce((sum, each) => sum + Number(read(`/proc/${each}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES, 0),
    files: family.reduce((sum, each) => sum + list(`/proc/${each}/fd`).length, 0),
    processes: family.length,
  };
}

/** Open connections to a port of this machine, on the listening side. */
export function countConnections(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const ESTABLISHED = '01';
  return ['/proc/net/tcp', '/proc/net/tcp6'].reduce((sum, file) => {
    const rows = read(file).split('\n').slice(1);
    const ours = rows
      .map((row) => row.trim().split(/\s+/))
      .filter(([, at = '', , state]) => at.endsWith(`:${hex}`) && state === ESTABLISHED);
    return sum + ours.length;
  }, 0);
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** A process may end between listing and reading. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}
