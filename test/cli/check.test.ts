import { expect } from 'chai';
import { trySetUp } from '../../cli/check-config.ts';
import { describeError } from '../../cli/io.ts';
import { loadConfig } from '../../config/load-config.ts';
import { createGateway } from '../../core/app.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSilentLog } from '../support/log.ts';
import { WRONG_SETTINGS } from './wrong-settings.ts';

/** Messages of `tollgate check` and of a start for the files in a folder; undefined if they succeed. */
async function tellBoth(
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<readonly (string | undefined)[]> {
  const input = { cwd: folder, env: { HOME: folder, ...env } };
  const log = createSilentLog();
  const said = (error: unknown): string => describeError(error).join('\n').replaceAll('tollgate.config.yaml:', '');
  const checked = await loadConfig(input)
    .then((loaded) => trySetUp(loaded, log))
    .then(() => undefined, said);
  const started = await createGateway({ ...input, log, port: 0 }).then((gateway) => gateway.close(), said);
  return [checked, started ?? undefined];
}

describe('a check of the configuration', () => {
  afterEach(removeFolders);

  for (const { title, text, files = {}, env = {}, says } of WRONG_SETTINGS)
    it(`reports ${title}, with the message of a start`, async () => {
      const folder = makeFolder({ 'tollgate.config.yaml': text, ...files });
      const [checked, started] = await tellBoth(folder, env);
      expect(checked)
        .to.be.a('string')
        .that.satisfies((words: string) => words.startsWith(says), `${says}\n${checked}`);
      // The program starts workers, not the gateway.
      if (!says.startsWith('server.workers')) expect(started).to.equal(checked);
    });

  it('accepts the shipped configuration, without side effects', async () => {
    const folder = makeFolder({});
    const input = { cwd: folder, env: { HOME: folder } };
    await trySetUp(await loadConfig(input), createSilentLog());
    const { readdirSync } = await import('node:fs');
    expect(readdirSync(folder)).to.deep.equal([]);
  });
});
