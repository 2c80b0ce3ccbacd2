import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import setups from '../../config/clients.json' with { type: 'json' };

interface Step {
  readonly language: string;
  readonly file?: string;
  readonly lines: readonly string[];
}

export interface Values {
  readonly base: string;
  readonly key: string;
  readonly model: string;
}

export interface SetUp {
  readonly title: string;
  readonly note?: string;
  readonly steps: readonly Step[];
}

export const SETUPS: Readonly<Record<string, SetUp>> = setups;

export function fill(text: string, values: Values): string {
  return text.replace(/\{(base|key|model)\}/g, (_, name: keyof Values) => values[name]);
}

/** Writes what a set-up has as files; returns its program: the lines of a shell, or of a module. */
export function applySetUp(
  name: string,
  values: Values,
  { home, project }: { readonly home: string; readonly project: string },
  edit: (text: string) => string = (text) => text,
): { readonly language: string; readonly lines: readonly string[] } {
  const { steps } = SETUPS[name] ?? { steps: [] };
  for (const { file, lines } of steps) {
    if (file === undefined) continue;
    const target = file.startsWith('~/') ? path.join(home, file.slice(2)) : path.join(project, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, `${edit(fill(lines.join('\n'), values))}\n`);
  }
  const program = steps.find(({ file }) => file === undefined);
  if (!program) throw new Error(`config/clients.json has nothing to run for ${name}`);
  return { language: program.language, lines: program.lines.map((line) => fill(line, values)) };
}
