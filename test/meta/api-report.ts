/**
 * `npm run api`: writes the exports of the package's entries as text files under git. A change of the public surface is
 * thus visible in `test/meta/api/`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

/** `public` is stable across versions, `beta` may change in any version: docs/plugins/14-versions.md. */
export type Stability = 'public' | 'beta';

export interface Entry {
  /** Import name in plugins, such as `tollgate/codec`. */
  readonly name: string;
  /** Module, relative to the root of the package. */
  readonly source: string;
  readonly stability: Stability;
}

const FOLDER = path.join(PACKAGE_ROOT, 'test/meta/api');

/** Entries of `package.json`. Throws for an entry whose first comment has neither tag. */
export function listEntries(): readonly Entry[] {
  const { exports } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  return Object.entries(exports).flatMap(([key, target]) => {
    if (typeof target === 'string') return [];
    const source = target.default.replace('./dist/', '').replace(/\.js$/, '.ts');
    const name = `tollgate${key.slice(1)}`;
    const [, tag] = /@(public|beta)\b/.exec(readFileSync(path.join(PACKAGE_ROOT, source), 'utf8').slice(0, 2000)) ?? [];
    if (tag === undefined) throw new Error(`${source}: the comment at its head says neither @public nor @beta`);
    return [{ name, source, stability: tag as Stability }];
  });
}

export function reportFile({ name }: Entry): string {
  return path.join(FOLDER, `${name.replace('/', '-')}.api.md`);
}

/** Reports of all entries, from the declarations that the compiler emits. */
export function writeReports(): ReadonlyMap<string, string> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-api-'));
  try {
    const tsc = path.join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc');
    execFileSync(
      process.execPath,
      [tsc, '-p', 'tsconfig.build.json', '--declaration', '--emitDeclarationOnly', '--outDir', folder],
      { cwd: PACKAGE_ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    return new Map(listEntries().map((entry) => [reportFile(entry), describeEntry(entry, folder)]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function describeEntry(entry: Entry, folder: string): string {
  const found = exportsOf(path.join(folder, entry.source.replace(/\.ts$/, '.d.ts')));
  const texts = [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, text]) => text);
  return `# ${entry.name} (@${entry.stability})

Written by \`npm run api\`; a test holds it to the declarations.

\`\`\`ts
${texts.join('\n\n')}
\`\`\`
`;
}

/** Exports of each file that was read: an entry takes hundreds of names from the same ones. */
const known = new Map<string, ReadonlyMap<string, string>>();

function exportsOf(file: string): ReadonlyMap<string, string> {
  const before = known.get(file);
  if (before) return before;
  const found = readExports(file);
  known.set(file, found);
  return found;
}

/** Exports of a declaration file, by name. */
function readExports(file: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const statements = splitStatements(readFileSync(file, 'utf8'));
  const imported = new Map<string, readonly [name: string, from: string]>();
  for (const statement of statements)
    for (const [name, local, from] of namesOf(/^import (?:type )?\{([^}]*)\} from '([^']+)'/.exec(statement)))
      imported.set(local, [name, from]);
  const resolve = (from: string): string => path.resolve(path.dirname(file), from.replace(/\.[jt]s$/, '.d.ts'));
  const take = (name: string, exported: string, from: string): void => {
    const text = from.startsWith('.') ? exportsOf(resolve(from)).get(name) : undefined;
    found.set(exported, text ?? `export { ${name}${name === exported ? '' : ` as ${exported}`} } from '${from}';`);
  };
  for (const statement of statements) {
    const [, isType, star] = /^export (type )?\* from '([^']+)'/.exec(statement) ?? [];
    if (star !== undefined)
      // A type-only export cannot be called or read.
      for (const [name, text] of exportsOf(resolve(star)))
        if (!found.has(name) && !(isType !== undefined && /^export declare (?:const|function) /.test(text)))
          found.set(name, text);
    for (const [name, exported, from] of namesOf(/^export (?:type )?\{([^}]*)\}(?: from '([^']+)')?/.exec(statement))) {
      const source = from === '' ? imported.get(name) : undefined;
      const own = statements.find((each) => nameOf(each.replace(/^(?:declare )?/, 'export declare ')) === name);
      if (from !== '') take(name, exported, from);
      else if (source) take(source[0], exported, source[1]);
      else if (own !== undefined) found.set(exported, own);
    }
    const name = nameOf(statement);
    // Overloads of a function and merged interfaces have several declarations.
    if (name !== undefined) found.set(name, [found.get(name) ?? [], statement].flat().join('\n'));
  }
  return found;
}

/** Parses `a, type b as c` with its source. */
function namesOf(match: RegExpExecArray | null): readonly (readonly [name: string, exported: string, from: string])[] {
  const [, names = '', from = ''] = match ?? [];
  return names.split(',').flatMap((each) => {
    const [, name, exported = name] = /^\s*(?:type )?([\w$]+)(?: as ([\w$]+))?\s*$/.exec(each) ?? [];
    return name === undefined || exported === undefined ? [] : [[name, exported, from] as const];
  });
}

function nameOf(statement: string): string | undefined {
  if (/^export default /.test(statement)) return 'default';
  return /^export (?:declare )?(?:abstract )?(?:const|let|function|class|interface|type|enum) ([\w$]+)/.exec(
    statement,
  )?.[1];
}

/** Splits a declaration file into statements: each ends at its semicolon, or at its closing brace. */
function splitStatements(text: string): readonly string[] {
  const statements: string[] = [];
  let [from, depth] = [0, 0];
  let quote = '';
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (quote !== '') {
      if (char === '\\') at += 1;
      else if (char === quote) quote = '';
      continue;
    }
    if (char === "'" || char === '"' || char === '`') quote = char;
    else if ('{[('.includes(char)) depth += 1;
    else if ('}])'.includes(char)) depth -= 1;
    if (depth !== 0 || !(char === ';' || (char === '}' && isBlock(text.slice(from, at))))) continue;
    statements.push(text.slice(from, at + 1).trim());
    from = at + 1;
  }
  return statements.filter((statement) => statement !== '' && statement !== ';');
}

function isBlock(statement: string): boolean {
  const head = statement.trimStart().slice(0, 100);
  return /^(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:interface|class|module|namespace|enum|global)\b/.test(
    head,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [file, text] of writeReports())
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
