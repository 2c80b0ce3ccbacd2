import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import { printClientSetup } from './client-setup.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';

/** `tollgate init`: the built-in configuration as a file of your own, the variables it reads, and what git should not see. */
export async function run(context: CommandContext): Promise<void> {
  const { terminal, globals, options } = context;
  if (typeof options['client'] === 'string') return printClientSetup(context, options['client']);
  const config = readFileSync(path.join(PACKAGE_ROOT, 'config', 'default.yaml'), 'utf8').replace(
    '$schema=./tollgate.schema.json',
    '$schema=./node_modules/tollgate/config/tollgate.schema.json',
  );
  const variables = [...new Set([...config.matchAll(/\$\{([A-Z][A-Z0-9_]*)(?=[:}])/g)].map(([, name]) => name))];
  const files: Record<string, string> = {
    'tollgate.config.yaml': config,
    '.env.example': `# Copy to .env and fill in what you have; a provider without its key answers 503 until it is set.\n${variables.map((name) => `${name}=`).join('\n')}\n`,
  };
  const ignored = ignoredBefore();
  const missing = IGNORED.filter((line) => !ignored.lines.has(bare(line)));
  const taken = Object.keys(files).filter((name) => existsSync(name));
  if (taken.length > 0 && options['force'] !== true)
    throw new CliError(
      `${taken.join(' and ')} exist already`,
      EXIT.usage,
      'Use --force to replace them, or another folder.',
    );
  if (missing.length > 0) files['.gitignore'] = `${ignored.text}${missing.join('\n')}\n`;
  for (const [name, text] of Object.entries(files)) writeFileSync(name, text);
  const names = Object.keys(files);
  createIo(terminal, globals.json === true).result(
    { written: names },
    `wrote ${names.join(', ')}\nNext: cp .env.example .env, fill in a key, then: tollgate check && tollgate start`,
  );
}

/** What git must never see: keys, and the store with its pepper. */
const IGNORED: readonly string[] = Object.freeze(['.env', '.env.local', 'data/', 'node_modules/']);

/** The `.gitignore` that is here already, ready for more lines. */
function ignoredBefore(): { readonly text: string; readonly lines: ReadonlySet<string> } {
  const text = existsSync('.gitignore') ? readFileSync('.gitignore', 'utf8') : '';
  return { text: text === '' || text.endsWith('\n') ? text : `${text}\n`, lines: new Set(text.split('\n').map(bare)) };
}

/** A line of `.gitignore` without the slashes that say where and what: `/data`, `data/` and `data` all hide the folder here. */
function bare(line: string): string {
  return line.trim().replace(/^\/|\/$/g, '');
}
