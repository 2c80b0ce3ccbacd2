import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { requestTls } from '../support/clients/tls-client.ts';
import { useTempFolder } from '../support/folders.ts';
import { type Certificate, createSelfSigned } from '../support/identity/self-signed.ts';
import { type Running, runCli, startCli } from '../support/processes/cli.ts';
import { eventually } from '../support/wait.ts';

const [first, second, expired] = [
  createSelfSigned({ subject: 'first' }),
  createSelfSigned({ subject: 'second' }),
  createSelfSigned({ subject: 'expired', expired: true }),
];
const trust = { ca: [first.cert, second.cert], servername: 'localhost' };
const serialOf = ({ cert }: Certificate): string => new X509Certificate(cert).serialNumber;

describe('the program with server.tls', function () {
  this.timeout(900_000);
  const folder = useTempFolder('tls');
  let own = '';
  let runs = 0;
  let running: Running | undefined;
  let url = '';

  const put = async ({ cert, key }: Certificate): Promise<void> => {
    await writeFile(path.join(own, 'tls.crt'), cert);
    await writeFile(path.join(own, 'tls.key'), key);
  };
  const configure = (server: string): Promise<void> =>
    writeFile(
      path.join(own, 'tollgate.config.yaml'),
      `server:\n  port: 0\n${server}providers: { echo: {} }\nauth: { api-key: { bootstrap: true } }\npolicies: { overload: false }\n`,
    );
  const TLS = '  tls:\n    cert: tls.crt\n    key: tls.key\n';
  const start = async (words: readonly string[] = []): Promise<Running> => {
    const started = startCli(['start', ...words], own, {}, '', true);
    running = started;
    [, url = ''] = await started.seen(/listens on (https?:\S+)/);
    await started.seen(/Try it:\n.*\n/);
    return started;
  };
  const lines = (msg: string): readonly string[] =>
    (running?.stdout() ?? '').split('\n').filter((line) => line.includes(msg));
  /** Certificates on new connections; enough connections to reach every worker. */
  const shown = async (): Promise<readonly string[]> => {
    const responses = await Promise.all(Array.from({ length: 12 }, () => requestTls(url, '/readyz', trust)));
    return [...new Set(responses.map(({ serial }) => serial))];
  };

  beforeEach(async () => {
    runs += 1;
    own = path.join(folder, String(runs));
    await mkdir(own, { recursive: true });
    await put(first);
  });
  afterEach(async () => {
    running?.child.kill('SIGKILL');
    await running?.finished;
    running = undefined;
  });

  it('shows https in the banner and in the line to try, and stops on SIGTERM', async () => {
    await configure(TLS);
    const { stderr, child, finished } = await start();
    expect(url).to.match(/^https:/);
    expect(stderr()).to.include(`curl ${url}/v1/chat/completions`);
    expect((await requestTls(url, '/livez', trust)).status).to.equal(200);
    child.kill('SIGTERM');
    expect((await finished).code).to.equal(0);
  });

  it('refuses a key of another certificate, in check and start with the same message', async () => {
    await configure(TLS);
    await writeFile(path.join(own, 'tls.key'), second.key);
    const [checked, started] = [await runCli(['check'], own), await runCli(['start'], own)];
    for (const { code, stderr } of [checked, started]) {
      expect(code).to.equal(3);
      expect(stderr).to.include('tollgate.config.yaml:5:10 server.tls.key: does not belong to the certificate');
    }
  });

  it('starts with an expired certificate and warns of it, and check does too', async () => {
    await configure(TLS);
    await put(expired);
    const checked = await runCli(['check'], own);
    expect(checked.code).to.equal(0);
    expect(checked.stderr).to.match(
      /warning: tollgate\.config\.yaml:4:11 server\.tls\.cert: is a certificate that expired on/,
    );
    await start();
    await eventually(async () => expect(lines('is a certificate that expired on')).to.have.lengthOf(1));
  });

  it('warns once if it listens beyond this machine without TLS or a trusted proxy', async () => {
    await configure('  workers: 2\n');
    await start(['--host', '0.0.0.0']);
    const reported = () => lines('server.host listens on 0.0.0.0 without TLS');
    // A reload waits for all workers.
    running?.child.kill('SIGHUP');
    await eventually(async () => expect(lines('the configuration was reloaded')).to.have.lengthOf(1));
    expect(reported()).to.have.lengthOf(1);
    running?.child.kill('SIGKILL');
    await running?.finished;
    await configure('  trustProxy: true\n');
    await start(['--host', '0.0.0.0']);
    running?.child.kill('SIGTERM');
    await running?.finished;
    expect(lines('without TLS')).to.deep.equal([]);
  });

  it('replaces the certificate in all workers by SIGHUP; a broken one changes nothing, also for a worker that is replaced', async () => {
    await configure(`  workers: 2\n${TLS}`);
    const { child } = await start();
    await eventually(async () => expect(await shown()).to.deep.equal([serialOf(first)]));
    await put(second);
    child.kill('SIGHUP');
    await eventually(async () => expect(lines('the configuration was reloaded')).to.have.lengthOf(1));
    expect(lines('the configuration was reloaded').join()).to.include('server.tls.cert (the file)');
    expect(await shown()).to.deep.equal([serialOf(second)]);

    await writeFile(path.join(own, 'tls.key'), 'half a ke');
    child.kill('SIGHUP');
    await eventually(async () => expect(lines('was not reloaded').join()).to.include('server.tls.key'));
    expect(await shown()).to.deep.equal([serialOf(second)]);
    await eventually(async () =>
      expect((await requestTls(url, '/readyz', trust)).body).to.include(
        'server.tls.key: is a file without a private key',
      ),
    );

    const { stdout } = await promisify(execFile)('pgrep', ['-P', String(child.pid)]);
    process.kill(Number(stdout.split('\n')[0]), 'SIGKILL');
    await eventually(async () => expect(lines('worker exited; starting a new one')).to.have.lengthOf(1));
    await eventually(async () => expect(await shown()).to.deep.equal([serialOf(second)]));
  });

  it('watches the files of the certificate with server.watch', async () => {
    await configure(`  watch: true\n${TLS}`);
    await start();
    expect(await shown()).to.deep.equal([serialOf(first)]);
    await put(second);
    await eventually(async () => expect(await shown()).to.deep.equal([serialOf(second)]));
  });
});
