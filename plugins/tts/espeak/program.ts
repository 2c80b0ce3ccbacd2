import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Where a program is: its path when it was given as one, else the first executable of its name on PATH. */
export function findProgram(program: string, searchPath: string = process.env['PATH'] ?? ''): string | undefined {
  const candidates = isAbsolute(program)
    ? [program]
    : searchPath
        .split(delimiter)
        .filter((folder) => folder !== '')
        .map((folder) => join(folder, program));
  return candidates.find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What a program of ours sees of the environment: where to find programs and espeak's data, and no secret. */
export function programEnvironment(): Record<string, string> {
  const kept = ['PATH', 'ESPEAK_DATA_PATH', 'LD_LIBRARY_PATH', 'SYSTEMROOT'];
  const entries = kept.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(entries), LANG: 'C.UTF-8' };
}
