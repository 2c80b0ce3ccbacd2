import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject, OptionError } from '../../contract/index.ts';

/** Packages of the MCP SDK, which the operator installs. They speak protocol 2026-07-28 and those before it. */
export interface Sdk {
  readonly client: typeof import('@modelcontextprotocol/client');
  readonly stdio: typeof import('@modelcontextprotocol/client/stdio');
  readonly server: typeof import('@modelcontextprotocol/server');
}

const CLIENT = '@modelcontextprotocol/client';
const STDIO = '@modelcontextprotocol/client/stdio';
const SERVER = '@modelcontextprotocol/server';

/** Throws an {@link OptionError} if a package is missing. Imports nothing. */
export function assertInstalled(baseDir: string): void {
  for (const name of [CLIENT, SERVER]) locate(name, baseDir);
}

/** Imports the packages from the folder of the configuration, or from that of Tollgate. */
export async function importSdk(baseDir: string): Promise<Sdk> {
  const [client, stdio, server] = await Promise.all([
    importFrom<Sdk['client']>(CLIENT, baseDir),
    importFrom<Sdk['stdio']>(STDIO, baseDir),
    importFrom<Sdk['server']>(SERVER, baseDir),
  ]);
  return { client, stdio, server };
}

async function importFrom<Module>(name: string, baseDir: string): Promise<Module> {
  const module = (await import(pathToFileURL(locate(name, baseDir)).href)) as Readonly<Record<string, unknown>>;
  // A CommonJS module may have its exports in `default` alone.
  return { ...(isObject(module['default']) ? module['default'] : {}), ...module } as Module;
}

function locate(name: string, baseDir: string): string {
  for (const from of [path.join(baseDir, 'tollgate.js'), import.meta.url])
    try {
      return createRequire(from).resolve(name);
    } catch {
      // The next place may have it.
    }
  throw new OptionError(
    '',
    'needs the MCP SDK, which is not installed',
    `Run in the folder of the configuration: npm install ${CLIENT} ${SERVER}`,
  );
}
