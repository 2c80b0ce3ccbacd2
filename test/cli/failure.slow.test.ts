import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { Writable } from 'node:stream';
import { expect } from 'chai';
import pc from 'picocolors';
import { reportFailure } from '../../cli/io.ts';
import { createProgramLog } from '../../cli/program-log.ts';
import { GatewayError } from '../../contract/errors.ts';
import { createGateway } from '../../core/app.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSilentLog } from '../support/log.ts';
import { runCli, startCli } from '../support/processes/cli.ts';

const CONFIG = "store: 'memory:'\nproviders: { echo: {} }\n";

/** Message and exit code of a gateway that fails to start at this address. */
async function startAt(
  host: string,
  port: number,
  cwd = makeFolder({ 'tollgate.config.yaml': CONFIG }),
): Promise<string> {
  let text = '';
  const err = new Writable({
    write(bytes, _encoding, done) {
      text += String(bytes);
      done();
    },
  });
  const failure: unknown = await createGateway({ cwd, env: {}, host, port, log: createSilentLog() }).then(
    (gateway) => gateway.close(),
    (error: unknown) => error,
  );
  const code = reportFailure(failure, { out: err, err, isTty: false, colors: pc.createColors(false) }, false);
  return `${code} ${text}`;
}

describe('a start that fails', () => {
  afterEach(removeFolders);

  const STORES: readonly (readonly [
    title: string,
    files: Readonly<Record<string, string>>,
    store: string,
    says: RegExp,
  ])[] = [
    [
      'a folder that cannot be made',
      { data: '' },
      'sqlite:./data/deeper',
      /because: ENOTDIR: .*, mkdir '\/.*\/data\/deeper'/,
    ],
    [
      'a file of another program',
      { 'tollgate.db': 'x'.repeat(4096) },
      'sqlite:.',
      /because: \/.*\/tollgate\.db: file is not a database \(SQLITE_26\)/,
    ],
  ];
  for (const [title, files, store, says] of STORES)
    it(`D47 names path and errno of ${title}, and exits with 69`, async () => {
      const cwd = makeFolder({ ...files, 'tollgate.config.yaml': `store: '${store}'\nproviders: { echo: {} }\n` });
      const text = await startAt('127.0.0.1', 0, cwd);
      expect(text).to.match(/^69 /).and.match(says);
    });

  it('D47 names the addresses without a responding server, once each', () => {
    let text = '';
    const err = new Writable({
      write(bytes, _encoding, done) {
        text += String(bytes);
        done();
      },
    });
    const refused = ['::1:1', '127.0.0.1:1'].map((address) => new Error(`connect ECONNREFUSED ${address}`));
    const cause = Object.assign(new AggregateError(refused), { code: 'ECONNREFUSED' });
    const error = new GatewayError('store_unavailable', 'The store does not answer.', { cause });
    expect(reportFailure(error, { out: err, err, isTty: false, colors: pc.createColors(false) }, false)).to.equal(69);
    expect(text).to.include('because: connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1');
  });

  it('reports a port in use, and exits with 69', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const text = await startAt('127.0.0.1', port);
    other.close();
    expect(text).to.match(/^69 .*EADDRINUSE[\s\S]*Set another one with --port/);
  });

  it('reports an address of another machine, and exits with 69', async () => {
    expect(await startAt('203.0.113.7', 0)).to.match(/^69 .*EADDRNOTAVAIL[\s\S]*does not have that address/);
  });
});

describe('a command that changes a store', () => {
  afterEach(removeFolders);

  it('refuses one that ends with the process, instead of creating a useless key', async () => {
    const { code, stdout, stderr } = await runCli(
      ['keys', 'create', '--user', 'u'],
      makeFolder({ 'tollgate.config.yaml': CONFIG }),
    );
    expect(stdout).to.equal('');
    expect(stderr).to.match(/ends with this command[\s\S]*bootstrap: true/);
    expect(code).to.equal(3);
  });
});

describe('a command whose output is not read', () => {
  afterEach(removeFolders);

  it('exits silently when its reader stops', async () => {
    const running = startCli(['openapi'], makeFolder({ 'tollgate.config.yaml': CONFIG }));
    running.child.stdout?.destroy();
    const { code, stderr } = await running.finished;
    expect(stderr).to.equal('');
    expect(code).to.equal(0);
  });

  it('reports a full disk, and exits with 1', async function () {
    if (!existsSync('/dev/full')) this.skip();
    const cwd = makeFolder({ 'tollgate.config.yaml': CONFIG });
    const { code, stderr } = await startCli(['openapi'], cwd, {}, 'exec >/dev/full').finished;
    expect(stderr).to.match(/^error {2}ENOSPC/);
    expect(code).to.equal(1);
  });

  it('does not stop a gateway whose output is not read', async () => {
    const cwd = makeFolder({ 'tollgate.config.yaml': `${CONFIG}server: { port: 0 }\n` });
    const running = startCli(['start'], cwd);
    const [, url = ''] = await running.seen(/listens on (http:\S+)/);
    running.child.stderr?.destroy();
    expect((await fetch(`${url}/readyz`)).status).to.equal(200);
    running.child.kill('SIGTERM');
    expect((await running.finished).code).to.equal(0);
  });
});

describe('the log on a terminal', () => {
  it('shows no characters that move the cursor', () => {
    let text = '';
    const destination = {
      write(line: string) {
        text += line;
      },
    };
    const log = createProgramLog({ level: 'info', format: 'pretty', isTerminal: true, destination });
    log.info({ model: 'echo\u001b[2J\u0007\u202e' }, 'request');
    expect(text).to.include('model=echo?[2J??');
  });
});
