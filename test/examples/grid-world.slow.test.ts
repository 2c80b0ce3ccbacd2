import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { createGateway, type Gateway } from '../../core/app.ts';
import { createSilentLog } from '../support/log.ts';

const run = promisify(execFile);
const fileOf = (name: string) => fileURLToPath(new URL(`../../examples/grid-world/${name}`, import.meta.url));

describe('examples/grid-world', () => {
  let gateway: Gateway;

  before(async () => {
    const configPath = fileOf('tollgate.config.yaml');
    const env = { PATH: process.env['PATH'], PORT: '0' };
    gateway = await createGateway({ cwd: fileOf('.'), env, configPath, log: createSilentLog() as never });
  });
  after(() => gateway.close());

  const play = (env: Record<string, string>) =>
    run(process.execPath, [fileOf('play.mjs')], {
      env: { PATH: process.env['PATH'], TOLLGATE_URL: gateway.url, ...env },
      timeout: 14_000,
    });
  const key = () => gateway.announcements.find(({ use }) => use === 'key')?.value ?? '';

  it('walks to the goal by the shortest way, without a network', async () => {
    const { stdout } = await play({ TOLLGATE_KEY: key() });
    expect(stdout).to.match(/The goal is reached after 10 moves and \d+ tokens\.\n$/);
    expect(stdout).to.include('perception').and.include('navigation').and.include('writer');
  });

  it('says what is wrong when the key is', async () => {
    const failure = await play({ TOLLGATE_KEY: 'tg_wrong' }).catch((error: { stderr: string }) => error);
    expect(failure.stderr).to.include('401 invalid_api_key');
  });
});
