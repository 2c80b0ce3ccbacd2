import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { inspectConfig } from '../../../cli/check-config.ts';
import { createReloader } from '../../../cli/reload.ts';
import { loadConfig } from '../../../config/load-config.ts';
import { createSilentLog } from '../log.ts';
import { startGateway, type TestGateway } from './gateway.ts';

/** Gateway whose configuration is a file that drafts are written to. */
export interface DraftsRig {
  readonly gateway: TestGateway;
  /** Path of the present file. */
  file(): string;
  text(): Promise<string>;
  /** Lets the gateway go on with a file of this name and text, in a folder of its own. */
  begin(
    text: string,
    options?: { readonly name?: string; readonly files?: Readonly<Record<string, string>> },
  ): Promise<void>;
  /** Makes the next reloads fail after the configuration was checked; `meanwhile` runs before each. */
  failReloads(error: Error | undefined, meanwhile?: () => Promise<void>): void;
  /** Headers of a key with these scopes, or of an admin. */
  operator(...scopes: readonly string[]): Promise<Record<string, string>>;
  request(
    method: string,
    where: string,
    options: { readonly as: Record<string, string>; readonly body?: unknown; readonly etag?: string },
  ): Promise<{
    readonly status: number;
    readonly etag: string;
    // biome-ignore lint/suspicious/noExplicitAny: of every shape
    readonly body: any;
  }>;
  stop(): Promise<void>;
}

/** Starts the gateway, on a store of its own in memory or on the given one. */
export async function startDraftsRig(store?: string): Promise<DraftsRig> {
  const gateway = await startGateway(store === undefined ? {} : { store });
  let file = '';
  let runs = 0;
  let failure: Error | undefined;
  let meanwhile: (() => Promise<void>) | undefined;
  return {
    gateway,
    file: () => file,
    text: () => readFile(file, 'utf8'),
    async begin(text, { name = 'tollgate.yaml', files = {} } = {}) {
      runs += 1;
      failure = undefined;
      meanwhile = undefined;
      const cwd = path.join(gateway.folder, String(runs));
      await mkdir(cwd);
      file = path.join(cwd, name);
      for (const [each, content] of Object.entries({ ...files, [name]: text }))
        await writeFile(path.join(cwd, each), content);
      const read = (content?: string) => loadConfig({ cwd, env: { RPM: '60' }, configPath: file, text: content });
      const loaded = await read();
      await gateway.use(loaded);
      const swap: typeof gateway.use = async (next) => {
        await meanwhile?.();
        if (failure) throw failure;
        await gateway.use(next);
      };
      const { recordReload: note, audit } = gateway;
      const log = createSilentLog();
      gateway.reloadBy(createReloader({ loaded, log, read, inspect: inspectConfig, swap, note, audit }));
    },
    failReloads(error, run) {
      failure = error;
      meanwhile = run;
    },
    async operator(...scopes) {
      const rights = scopes.length === 0 ? ['--admin'] : ['--scope', scopes.join(',')];
      const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann', ...rights);
      return { authorization: `Bearer ${key}` };
    },
    async request(method, where, { as, body, etag }) {
      const response = await fetch(`${gateway.url}/api/core/admin${where}`, {
        method,
        headers: { ...as, 'content-type': 'application/json', ...(etag !== undefined && { 'if-match': etag }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, etag: response.headers.get('etag') ?? '', body: await response.json() };
    },
    stop: () => gateway.stop(),
  };
}

/** Changes the file as another person would. */
export async function editFile(file: string, change: (text: string) => string): Promise<void> {
  await writeFile(file, change(await readFile(file, 'utf8')));
}
