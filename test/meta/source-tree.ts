/** The project's own source files, for tests about the tree. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

export interface SourceFile {
  /** Relative to the project, with slashes: `core/app.ts`. */
  readonly name: string;
  readonly text: string;
  /** The text without comments; strings stay. */
  readonly code: string;
  readonly imports: readonly SourceImport[];
}

export interface SourceImport {
  /** As written. */
  readonly specifier: string;
  /** Relative to the project when it is a file of it. */
  readonly file?: string;
}

/** All TypeScript files below these folders, pages in TSX among them. */
export function readSources(...folders: readonly string[]): readonly SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(path.join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => readSource(`${folder}/${name.replaceAll(path.sep, '/')}`)),
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

/** Good enough for our own formatting: block comments, and `//` at the start of a line or after code and a space. */
function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/ .*$/gm, '$1');
}
