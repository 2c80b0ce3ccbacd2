import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { listBuiltins } from '../config/import-plugin.ts';
import { PACKAGE_ROOT, VERSION } from '../config/package-root.ts';
import { nearest } from '../contract/nearest.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, EXIT } from './io.ts';

/** Template repositories, one per kind; the name in them is replaced. `common` is part of all of them. */
const TEMPLATES = path.join(PACKAGE_ROOT, 'examples', 'plugins');
const COMMON = 'common';

/** Placeholder for the plugin's name in templates. */
const TEMPLATE_NAME = 'my-plugin';

/** The name becomes a package name, a configuration key, a path, and part of variable names. */
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const MAX_NAME = 30;

/** Names of template files whose real name has a meaning within a package: npm drops a `.gitignore`. */
const NAMED: Readonly<Record<string, string>> = Object.freeze({
  gitignore: '.gitignore',
  'package.template.json': 'package.json',
});

/** Kinds of plugins with a template; a guardrail is a policy that checks texts. */
export function templateKinds(): readonly string[] {
  return readdirSync(TEMPLATES).filter((name) => name !== COMMON);
}

/** `tollgate plugins new`: writes the repository of a plugin that passes its own tests. */
export async function runNew({ terminal, globals, args, options }: CommandContext): Promise<void> {
  const kind = readKind(options['kind']);
  const name = readName(args[0] ?? '', kind);
  const folder = `tollgate-plugin-${name}`;
  if (existsSync(folder))
    throw new CliError(
      `${folder} already exists`,
      EXIT.usage,
      'Use another name, or run the command in another folder.',
    );
  const files = [COMMON, kind].flatMap((template) => readTemplate(template, name));
  try {
    for (const { file, text } of files) {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      writeFileSync(path.join(folder, file), text);
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      `${folder} cannot be written: ${reason}`,
      EXIT.unexpected,
      'Run this in a folder that you can write to.',
    );
  }
  createIo(terminal, globals.json === true).result(
    { folder, kind, written: files.map(({ file }) => file) },
    `wrote ${folder}: ${files.map(({ file }) => file).join(', ')}\nNext: cd ${folder} && npm install && npm test, then: npm run dev`,
  );
}

function readKind(given: unknown): string {
  const kinds = templateKinds();
  const all = `Use one of ${kinds.join(', ')}.`;
  if (typeof given !== 'string')
    throw new CliError('the kind of the plugin is missing', EXIT.usage, `Add --kind. ${all}`);
  if (kinds.includes(given)) return given;
  const near = nearest(given, kinds)[0];
  throw new CliError(
    `"${given}" is not a kind of plugin`,
    EXIT.usage,
    near === undefined ? all : `Did you mean ${near}? ${all}`,
  );
}

function readName(given: string, kind: string): string {
  const short = given.replace(/^(@[^/]*\/)?(tollgate-plugin-)?/, '');
  if (short !== given && NAME.test(short))
    throw new CliError(
      `"${given}" is the name of a package`,
      EXIT.usage,
      `Use the plugin name: ${short}. Its package is tollgate-plugin-${short}; you can change that in package.json.`,
    );
  if (!NAME.test(given) || given.length > MAX_NAME)
    throw new CliError(
      `"${given}" is not a valid plugin name`,
      EXIT.usage,
      `Use 1 to ${MAX_NAME} of a-z and 0-9, words joined by "-", such as my-vendor.`,
    );
  const kindOf = kind === 'guardrail' ? 'policy' : kind;
  if (listBuiltins().some((builtin) => builtin.kind === kindOf && builtin.name === given))
    throw new CliError(`a built-in ${kind} "${given}" exists`, EXIT.usage, 'Use another name.');
  return given;
}

/** Reads the files of a template and replaces the plugin's name. */
function readTemplate(template: string, name: string): readonly { readonly file: string; readonly text: string }[] {
  const root = path.join(TEMPLATES, template);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const file = path.relative(root, path.join(entry.parentPath, entry.name));
      const text = readFileSync(path.join(root, file), 'utf8')
        .replaceAll(TEMPLATE_NAME, name)
        .replaceAll(variableOf(TEMPLATE_NAME), variableOf(name))
        .replaceAll('^0.0.0', `^${VERSION}`);
      return { file: NAMED[file] ?? file, text };
    })
    .sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** Converts a name to the form of environment variables. */
function variableOf(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}
