import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';

/** `tollgate init`: the built-in configuration as a file of your own, the variables it reads, and what git should not see. */
export async function run({ terminal, globals, options }: CommandContext): Promise<void> {
  const config = readFileSync(path.join(PACKAGE_ROOT, 'config', 'default.yaml'), 'utf8').replace(
    '$schema=./tollgate.schema.json',
    '$schema=./node_modules/tollgate/config/tollgate.schema.json',
  );
  const variables = [...new Set([...config.matchAll(/\$\{([A-Z][A-Z0-9_]*)(?=[:}])/g)].map(([, name]) => name))];
  const files: Record<string, string> = {
    'tollgate.config.yaml': config,
    '.env.example': `# Copy to .env and fill in what you have; a provider without its key answers 503 until it is set.\n${variables.map((name) => `${name}=`).join('\n')}\n`,
    '.gitignore': '.env\n.env.local\ndata/\nnode_modules/\n',
  };
  const taken = Object.keys(files).filter((name) => name !== '.gitignore' && existsSync(name));
  if (taken.length > 0 && options['force'] !== true)
    throw new CliError(
      `${taken.join(' and ')} exist already`,
      EXIT.usage,
      'Use --force to replace them, or another folder.',
    );
  const written = Object.entries(files).filter(([name]) => name !== '.gitignore' || !existsSync(name));
  for (const [name, text] of written) writeFileSync(name, text);
  const names = written.map(([name]) => name);
  createIo(terminal, globals.json === true).result(
    { written: names },
    `wrote ${names.join(', ')}\nNext: cp .env.example .env, fill in a key, then: tollgate check && tollgate start`,
  );
}
