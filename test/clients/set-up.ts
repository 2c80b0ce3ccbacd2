import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fillLine, readSetups } from '../../cli/init.ts';

/** Writes the files of a set-up; returns its program: the lines of a shell, or of a module. */
export function applySetUp(
  name: string,
  values: Readonly<Record<'base' | 'key' | 'model', string>>,
  { home, project }: { readonly home: string; readonly project: string },
  edit: (text: string) => string = (text) => text,
): { readonly language: string; readonly lines: readonly string[] } {
  const steps = readSetups()[name]?.steps ?? [];
  for (const { file, lines } of steps) {
    if (file === undefined) continue;
    const target = file.startsWith('~/') ? path.join(home, file.slice(2)) : path.join(project, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, `${edit(fillLine(lines.join('\n'), values))}\n`);
  }
  const program = steps.find(({ file }) => file === undefined);
  if (!program) throw new Error(`config/clients.json has nothing to run for ${name}`);
  return { language: program.language, lines: program.lines.map((line) => fillLine(line, values)) };
}
