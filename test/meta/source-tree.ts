/** Source files of the project, for tests about the tree. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

export interface SourceFile {
  /** Path relative to the project, with slashes: `core/app.ts`. */
  readonly name: string;
  readonly text: string;
  /** Text without comments; strings stay. */
  readonly code: string;
  readonly imports: readonly SourceImport[];
}

export interface SourceImport {
  /** Specifier in the source. */
  readonly specifier: string;
  /** Path relative to the project, if it is one of its files. */
  readonly file?: string;
}

/** All TypeScript and JavaScript modules below these folders, including pages in TSX. */
export function readSources(...folders: readonly string[]): readonly SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(path.join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:tsx?|mjs)$/.test(name))
      .map((name) => readSource(`${folder.replace(/\/$/, '')}/${name.replaceAll(path.sep, '/')}`)),
  );
}

function readSource(name: string): SourceFile {
  const text = readFileSync(path.join(PACKAGE_ROOT, name), 'utf8');
  const code = withoutComments(text);
  const found = code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g);
  const imports = [...found].map(([, specifier = '']) =>
    specifier.startsWith('.')
      ? { specifier, file: path.posix.join(path.posix.dirname(name), specifier) }
      : { specifier },
  );
  return { name, text, code, imports };
}

/**
 * Removes block comments, and `//` at the start of a line or after code and a space. Sufficient for our own formatting.
 */
function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/ .*$/gm, '$1');
}
