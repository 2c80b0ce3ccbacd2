/** TypeScript of users, checked against the sources of this package as if it were installed. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const run = promisify(execFile);
const at = (file: string): string[] => [path.join(PACKAGE_ROOT, file)];

const COMPILER_OPTIONS = {
  paths: {
    tollgate: at('contract/index.ts'),
    'tollgate/gateway': at('core/gateway.ts'),
    'tollgate/operators': at('plugins/policies/kit/index.ts'),
    'tollgate/guardrails': at('plugins/guardrails/kit/index.ts'),
    'tollgate/codec': at('plugins/providers/kit/index.ts'),
    'tollgate/speech': at('plugins/tts/kit/index.ts'),
    'tollgate/stores': at('plugins/stores/kit/index.ts'),
    'tollgate/openai-compatible': at('plugins/providers/openai-compatible.ts'),
    'tollgate/conformance': at('test/conformance/index.ts'),
    openai: at('node_modules/openai/index.d.mts'),
  },
  typeRoots: at('node_modules/@types'),
  // Examples for readers need not pass our own lint.
  noUnusedLocals: false,
  noUnusedParameters: false,
  types: ['node'],
  lib: ['es2023'],
};

/** Output of tsc for the matching files of a folder; empty if there are no errors. */
export async function checkTypes(folder: string, files: string): Promise<string> {
  const extended = path.join(PACKAGE_ROOT, 'tsconfig.json');
  const project = { extends: extended, compilerOptions: COMPILER_OPTIONS, include: [files], exclude: [] };
  // A separate file for each call, so that concurrent calls do not conflict.
  const file = path.join(folder, `${files.replaceAll(/\W/g, '-')}.json`);
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(file, JSON.stringify(project));
  const tsc = path.join(PACKAGE_ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', file]).catch((error: { stdout: string }) => error);
  return stdout.trim();
}
