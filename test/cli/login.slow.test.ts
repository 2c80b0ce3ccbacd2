import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { decideOnProgram, type SignInRig, startSignInRig } from '../support/gateways/sign-in-rig.ts';
import { runCli, startCli } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';

const FILE = '.config/tollgate/sign-ins.json';

/** Stored sign-ins of a home folder. */
const storedIn = (home: string) =>
  JSON.parse(readFileSync(path.join(home, FILE), 'utf8')) as {
    readonly last?: string;
    readonly signIns: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };

/** Sets the times of a stored sign-in. */
function age(home: string, url: string, times: { readonly renewAt: number; readonly endsAt?: number }): void {
  const { signIns, ...rest } = storedIn(home);
  const next = { ...rest, signIns: { ...signIns, [url]: { ...signIns[url], ...times } } };
  writeFileSync(path.join(home, FILE), JSON.stringify(next));
}

describe('signing in with `tollgate login`', function () {
  this.timeout(240_000);
  let rig: SignInRig;
  let home: string;
  before(async () => {
    rig = await startSignInRig({ models: { fast: 'echo/echo' } });
  });
  after(() => rig.stop());
  afterEach(removeFolders);
  beforeEach(() => {
    home = makeFolder();
  });

  const login = async (decision: 'approve' | 'refuse' = 'approve', ...more: string[]) => {
    const running = startCli(['login', `${rig.origin}/`, ...more], home);
    const [, link = ''] = await running.seen(/^Open (\S+)$/m);
    await running.seen(/shows the code [A-Z]{4}-[A-Z]{4}\. The code expires in 10 minutes/);
    await decideOnProgram(link, decision);
    return running.finished;
  };
  const chat = (token: string) =>
    rig.gateway.post(
      '/v1/chat/completions',
      { model: 'fast', messages: [{ role: 'user', content: 'Hi' }] },
      { authorization: `Bearer ${token}` },
    );

  it('stores a token that calls models as the person, for that user only, until the logout', async () => {
    const done = await login();
    expect(done).to.include({ code: 0, stdout: `signed in at ${rig.origin} as ann@acme.example\n` });
    expect(statSync(path.join(home, FILE)).mode & 0o777).to.equal(0o600);
    expect(statSync(path.join(home, '.config/tollgate')).mode & 0o777).to.equal(0o700);
    const { code, stdout, stderr } = await runCli(['token'], home);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/^tg-access-[\w-]{43}\n$/);
    expect((await chat(stdout.trim())).status).to.equal(200);
    const out = await runCli(['logout'], home);
    expect(out).to.include({ code: 0, stdout: `signed out at ${rig.origin}\n` });
    expect((await chat(stdout.trim())).status).to.equal(401);
    const after = await runCli(['token'], home);
    expect(after.code).to.equal(77);
    expect(after.stderr).to.include('not signed in').and.to.include('tollgate users login');
  });

  it('renews a token before it ends, once for two terminals', async () => {
    await login();
    const first = (await runCli(['token', rig.origin], home)).stdout;
    age(home, rig.origin, { renewAt: 1 });
    const both = await Promise.all([runCli(['token'], home), runCli(['token', '--json'], home)]);
    expect(both.map(({ code }) => code)).to.deep.equal([0, 0]);
    const { data } = JSON.parse(both[1].stdout) as { data: { access_token: string; expires_at: string } };
    expect(both[0].stdout.trim()).to.equal(data.access_token).and.not.to.equal(first.trim());
    expect((await chat(data.access_token)).status).to.equal(200);
  });

  it('continues after a process was killed while it had the lock', async () => {
    await login();
    age(home, rig.origin, { renewAt: 1 });
    const killed = startCli(['--version'], home);
    await killed.finished;
    writeFileSync(path.join(home, `${FILE}.lock`), `${os.hostname()} ${killed.child.pid}`);
    expect((await runCli(['token'], home)).code).to.equal(0);
  });

  it('reports an ended sign-in, and deletes it', async () => {
    await login();
    age(home, rig.origin, { renewAt: 1 });
    const { data } = await rig.gateway.command<{ data: readonly { id: string }[] }>(
      'sign-ins',
      'list',
      '--user',
      'ann',
    );
    for (const { id } of data) await rig.gateway.command('sign-ins', 'revoke', id);
    const ended = await runCli(['token'], home);
    expect(ended).to.include({ code: 77, stdout: '' });
    expect(ended.stderr).to.include('has ended').and.to.include(`tollgate users login ${rig.origin}`);
    expect(storedIn(home).signIns).to.deep.equal({});
  });

  it('reports the person’s refusal, and stores nothing', async () => {
    const refused = await login('refuse', '--json');
    expect(refused.code).to.equal(77);
    expect(JSON.parse(refused.stdout)).to.deep.include({ ok: false });
    expect(refused.stdout).to.include('denied on the page');
    expect((await runCli(['token'], home)).code).to.equal(77);
  });

  it('ends the previous sign-in', async () => {
    await login();
    const first = (await runCli(['token'], home)).stdout.trim();
    await login();
    expect((await chat(first)).status).to.equal(401);
  });

  it('reports the problem of a URL', async () => {
    const cases: readonly (readonly [string, number, string])[] = [
      ['http://gateway.example', 2, 'tokens are not sent over http:// to another machine'],
      ['https://ann:secret@gateway.example', 2, 'not a valid gateway URL'],
      [`http://127.0.0.1:${await freePort()}`, 69, 'does not respond (ECONNREFUSED)'],
      [`${rig.origin}/v1`, 2, 'sign-in is not available at'],
      [rig.origin.replace('127.0.0.1', 'localhost'), 2, `tollgate users login ${rig.origin}`],
    ];
    for (const [url, code, words] of cases) {
      const failed = await runCli(['login', url], home);
      expect(failed.stderr, url).to.include(words).and.not.to.include('secret');
      expect(failed, url).to.include({ code, stdout: '' });
    }
  });
});

describe('`tollgate login` at a gateway that misbehaves', function () {
  this.timeout(120_000);
  let server: Server;
  let origin: string;
  let home: string;
  /** Responses by path. */
  let responses: Record<string, readonly (readonly [status: number, body: object])[]>;
  before(async () => {
    server = createServer((request, response) => {
      const path = (request.url ?? '').split('?', 1)[0] ?? '';
      const [next, ...rest] = responses[path] ?? [];
      if (rest.length > 0) responses[path] = rest;
      const [status, body] = next ?? [404, {}];
      request.resume();
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  afterEach(removeFolders);
  const METADATA = '/.well-known/oauth-authorization-server';
  beforeEach(() => {
    home = makeFolder();
    responses = {
      [METADATA]: [
        [
          200,
          {
            ...{ issuer: origin, device_authorization_endpoint: `${origin}/d`, token_endpoint: `${origin}/t` },
            revocation_endpoint: `${origin}/r`,
          },
        ],
      ],
      '/d': [
        [
          200,
          { device_code: 'd', user_code: 'ABCD', verification_uri: `${origin}/page`, expires_in: 60, interval: 0.01 },
        ],
      ],
      '/t': [
        [400, { error: 'authorization_pending' }],
        [200, { access_token: 'one', refresh_token: 'two', expires_in: 3600 }],
      ],
    };
  });

  it('polls until a decision, and accepts a page without the code in it', async () => {
    const done = await runCli(['login', origin], home);
    expect(done).to.include({ code: 0, stdout: `signed in at ${origin}\n` });
    expect(done.stderr).to.include(`Open ${origin}/page\n`).and.to.include('shows the code ABCD.');
    expect((await runCli(['token'], home)).stdout).to.equal('one\n');
  });

  it('refuses invalid responses, pages and endpoints on other hosts, and expired codes', async () => {
    const code = {
      device_code: 'd',
      user_code: 'ABCD',
      verification_uri: `${origin}/page`,
      expires_in: 60,
      interval: 0.01,
    };
    const cases: readonly (readonly [Record<string, readonly (readonly [number, object])[]>, number, string])[] = [
      [
        {
          [METADATA]: [
            [
              200,
              {
                issuer: origin,
                device_authorization_endpoint: 'https://evil.example/d',
                token_endpoint: `${origin}/t`,
              },
            ],
          ],
        },
        1,
        'another host',
      ],
      [{ [METADATA]: [[502, {}]] }, 69, 'status 502'],
      [{ '/d': [[200, { ...code, verification_uri: 'https://evil.example/' }]] }, 1, 'another host'],
      [{ '/d': [[200, { ...code, user_code: 'A\u001b[2J' }]] }, 69, 'returned no valid code'],
      [
        { '/d': [[429, { error: 'slow_down', error_description: 'Too many.\u001b[2J' }]] },
        69,
        'rejected the request: Too many.?[2J',
      ],
      [{ '/d': [[200, { ...code, expires_in: 0.005 }]] }, 77, 'the code has expired'],
      [{ '/t': [[400, { error: 'expired_token' }]] }, 77, 'the code has expired'],
      [{ '/t': [[401, { error: 'invalid_client', error_description: 'Unknown program.' }]] }, 77, 'Unknown program.'],
      [{ '/t': [[200, { access_token: 'a\nb', refresh_token: 'c', expires_in: 9 }]] }, 69, 'returned no valid token'],
    ];
    const usual = responses;
    for (const [other, exit, words] of cases) {
      responses = { ...usual, ...other };
      const failed = await runCli(['login', origin], home);
      expect(failed.stderr, words).to.include(words).and.not.to.include('\u001b');
      expect(failed, words).to.include({ code: exit, stdout: '' });
    }
  });

  it('returns a valid token when it cannot be renewed, and reports its expiry afterwards', async () => {
    await runCli(['login', origin], home);
    responses = { '/t': [[503, { error: 'temporarily_unavailable', error_description: 'Later.' }]] };
    age(home, origin, { renewAt: 1 });
    const good = await runCli(['token'], home);
    expect(good).to.include({ code: 0, stdout: 'one\n' });
    expect(good.stderr).to.include('could not be renewed');
    age(home, origin, { renewAt: 1, endsAt: 2 });
    const over = await runCli(['token'], home);
    expect(over).to.include({ code: 69, stdout: '' });
    expect(over.stderr).to.include('rejected the request: Later.');
  });

  it('signs out locally when the gateway does not respond, and reports the remaining session there', async () => {
    await runCli(['login', origin], home);
    const out = await runCli(['logout'], home);
    expect(out).to.include({ code: 0, stdout: `signed out at ${origin}\n` });
    expect(out.stderr).to.include('did not respond');
    expect(storedIn(home).signIns).to.deep.equal({});
  });

  it('reports the problem of its file', async () => {
    await runCli(['login', origin], home);
    writeFileSync(path.join(home, FILE), '{"signIns":{"https://a.example":{"accessToken":1}}}');
    const failed = await runCli(['token'], home);
    expect(failed.code).to.equal(1);
    expect(failed.stderr).to.include('is not a valid file of sign-ins').and.to.include('Remove it');
  });

  it('refuses an invalid proxy in the environment, without showing it', async () => {
    const failed = await runCli(['login', origin], home, { env: { HTTP_PROXY: 'socks5://u:secret@proxy.example' } });
    expect(failed.code).to.equal(2);
    expect(failed.stderr).to.include('HTTP_PROXY').and.to.include('SOCKS').and.not.to.include('secret');
  });
});
