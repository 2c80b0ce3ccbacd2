import { spawn } from 'node:child_process';
import { expect } from 'chai';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { shellLineOf, startCli } from '../support/processes/cli.ts';
import { eventually } from '../support/wait.ts';

const LINK = /http:\/\/127\.0\.0\.1:\d+\/console#sign-in=([\w-]{43})/;

const CONFIG = {
  server: { port: 0, workers: 2, drainTimeout: '1s' },
  store: 'sqlite:./data',
  providers: { echo: {} },
  auth: { 'api-key': {} },
};

describe('the link to the console that a start prints', function () {
  this.timeout(900_000);
  let folder: string;

  beforeEach(() => {
    folder = makeFolder({ 'tollgate.config.json': JSON.stringify(CONFIG) });
  });
  afterEach(removeFolders);

  it('is printed on a terminal, and signs in once across all workers', async () => {
    const node = `exec ${shellLineOf('start')}`;
    const child = spawn('script', ['-qefc', node, '/dev/null'], {
      cwd: folder,
      env: { ...process.env, NO_COLOR: '1' },
    });
    let text = '';
    child.stdout.on('data', (bytes) => {
      text += String(bytes);
    });
    const closed = new Promise((resolve) => child.once('close', resolve));
    try {
      await eventually(async () => expect(text).to.match(LINK));
      const [link = '', token] = LINK.exec(text) ?? [];
      const { origin } = new URL(link);
      const sign = async (): Promise<number> => {
        // A new connection each, to any worker.
        const headers = { origin, 'content-type': 'application/json', connection: 'close' };
        const body = JSON.stringify({ token });
        return (await fetch(`${origin}/api/core/admin/console/link`, { method: 'POST', headers, body })).status;
      };
      const statuses = await Promise.all([sign(), sign(), sign(), sign()]);
      expect(statuses.sort()).to.deep.equal([204, 401, 401, 401]);
    } finally {
      child.kill('SIGTERM');
      await closed;
    }
  });

  it('is not printed without a terminal, because output ends up in a log', async () => {
    const { child, seen, stderr, stdout, finished } = startCli(['start'], folder);
    try {
      await seen(/listens on (http:\S+)/);
      expect(`${stderr()}${stdout()}`).not.to.include('sign-in');
    } finally {
      child.kill('SIGTERM');
      await finished;
    }
  });
});
