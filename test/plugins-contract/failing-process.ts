import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { type Running, startCli } from '../support/processes/cli.ts';

type Line = Readonly<Record<string, unknown>>;

/** Starts a gateway process with one plugin, `failing`, from a file. */
export async function startFailingProcess(
  folder: string,
  setup: string,
  config: object = {},
): Promise<{ readonly url: string; readonly running: Running; logs(): readonly Line[] }> {
  writeFileSync(path.join(folder, 'failing.mjs'), pluginFile({ name: 'failing', setup }));
  const base = {
    ...{
      server: { port: 0, drainTimeout: '1s', drainDelay: '0s' },
      store: 'memory:',
      providers: { echo: {} },
      auth: { 'api-key': { bootstrap: true } },
    },
    policies: { overload: false, failing: { plugin: './failing.mjs' } },
  };
  writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify({ ...base, ...config }));
  const running = startCli(['start'], folder);
  const [, url = ''] = await running.seen(/listens on (http:\S+)/);
  const logs = () =>
    running
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line);
  return { url, running, logs };
}
