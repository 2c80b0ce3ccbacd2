import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import { EXIT } from '../../cli/io.ts';
import { COMMANDS } from '../../cli/program.ts';
import { type LoadedConfig, loadConfig } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { adviseOn, makeClient } from '../../plugins/stores/redis/connection.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { findProgram, freePort, startServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, sendToRedis } from '../support/stores/redis-server.ts';

// Docker, systemd and the proxies do not run here. Their files are compared with each other and with the gateway.

const run = promisify(execFile);
const DEPLOY = path.join(PACKAGE_ROOT, 'deploy');
const read = (file: string): string => readFileSync(path.join(DEPLOY, file), 'utf8');
const ENV = {
  STORE_URL: 'postgres://tollgate:0a1b@postgres:5432/tollgate',
  TOLLGATE_PEPPER: randomBytes(32).toString('hex'),
  OPENAI_API_KEY: 'k',
  ANTHROPIC_API_KEY: 'k',
};
const load = (text: string): Promise<LoadedConfig> =>
  loadConfig({ cwd: makeFolder({ 'tollgate.config.yaml': text }), env: ENV });

/** Seconds in a text such as `45s` or `15m`. */
const seconds = (text: string): number => Number.parseInt(text, 10) * (text.endsWith('m') ? 60 : 1);

after(removeFolders);

describe('the sample configurations of deploy/', () => {
  for (const file of ['compose/tollgate.config.yaml', 'systemd/tollgate.config.yaml'])
    it(`${file} is accepted by tollgate check, behind one proxy`, async () => {
      const { config } = await load(read(file));
      expect(config.server.trustProxy).to.equal(1);
      // The proxies hold idle connections for 60 s; the gateway must not close a connection that they are about to use.
      expect(config.server.keepAliveMs).to.be.above(60_000);
    });
});

describe('deploy/Dockerfile', () => {
  const text = read('Dockerfile');

  it('builds from one exact version, and copies existing files', () => {
    expect(text).to.match(/^ARG NODE=node:\d+\.\d+\.\d+-bookworm-slim@sha256:[\da-f]{64}$/m);
    for (const [, from] of text.matchAll(/^FROM (\S+)/gm)) expect(from).to.match(/^(?:\$\{NODE\}|base)$/);
    const copied = [...text.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, files = '']) => files.split(' '));
    for (const file of copied) expect(existsSync(path.join(PACKAGE_ROOT, file)), file).to.equal(true);
  });

  it('does not run as root, in any executed stage', () => {
    for (const stage of ['speech', 'tollgate']) {
      const [, body = ''] = text.split(`FROM base AS ${stage}\n`);
      expect([...(body.split('\nFROM ')[0] ?? '').matchAll(/^USER (.+)$/gm)].at(-1)?.[1]).to.equal('1000:1000');
    }
  });

  it('has tollgate on PATH, the file that the package runs', () => {
    const { bin } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
      bin: { tollgate: string };
    };
    expect(text).to.include(`ln -s /app/${bin.tollgate} /usr/local/bin/tollgate`);
    expect(text).to.include(`chmod 0755 ${bin.tollgate}`);
    expect(text).to.include('ENTRYPOINT ["tollgate"]');
    const [, words = ''] = /^CMD (\[.*\])$/m.exec(text) ?? [];
    const [command] = JSON.parse(words) as string[];
    expect(COMMANDS.map(({ name }) => name)).to.include(command);
  });

  it('uses an existing path for its health check', async () => {
    const [, program = ''] = /^ {2}CMD \["node", "-e", "(.+)"\]$/m.exec(text) ?? [];
    const check = (url: string): Promise<string> =>
      run(process.execPath, ['-e', program.replace('http://127.0.0.1:8787', url)]).then(
        () => 'healthy',
        () => 'unhealthy',
      );
    const gateway = await startGateway();
    expect(await check(gateway.url).finally(() => gateway.stop())).to.equal('healthy');
    expect(await check(gateway.url)).to.equal('unhealthy');
  });
});

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly restart?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly stop_grace_period?: string;
}

describe('deploy/compose', () => {
  const text = read('compose/compose.yaml');
  const { services, volumes, networks } = parse(text, { merge: true }) as {
    services: Readonly<Record<string, Service>>;
    volumes: object;
    networks: object;
  };

  it('requires every secret and contains no password', () => {
    const example = read('compose/.env.example');
    const wanted = [...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name ?? '');
    expect(wanted).to.include.members(['POSTGRES_PASSWORD', 'REDIS_PASSWORD', 'STORE_URL', 'TOLLGATE_PEPPER']);
    for (const name of wanted) expect(example, name).to.match(new RegExp(`^${name}=$`, 'm'));
    const optional = [...text.matchAll(/\$\{(\w+)(:-[^}]*)?\}/g)].map(([, name, fallback]) => [name, fallback]);
    expect(optional.filter(([, fallback]) => fallback !== ':-')).to.deep.equal([]);
    for (const [, name = '', value = ''] of text.matchAll(/^\s*(\w*(?:PASSWORD|PEPPER|AUTH)\w*): (.*)$/gm))
      expect(value, name).to.match(/^\$\{\w+:\?/);
  });

  it('restarts and checks every service, from images of exact versions', () => {
    for (const [name, { restart, image, healthcheck }] of Object.entries(services)) {
      expect(restart, name).to.equal('unless-stopped');
      expect(image, name).to.match(/^[\w/]+:\d+\.\d+(\.\d+)?(-\w+)?(@sha256:[\da-f]{64})?$/);
      expect(image.includes('@'), `${name} by its digest`).to.equal(name !== 'tollgate');
      if (name !== 'tollgate') expect(healthcheck?.test.length, name).to.be.above(1);
    }
  });

  it('mounts existing files and volumes that it declares', () => {
    for (const mount of Object.values(services).flatMap((service) => service.volumes ?? [])) {
      const [source = ''] = mount.split(':');
      if (source.startsWith('.')) expect(existsSync(path.join(DEPLOY, 'compose', source)), mount).to.equal(true);
      else expect(volumes).to.have.property(source);
    }
    for (const { networks: own = [], depends_on: needs = {} } of Object.values(services)) {
      for (const network of own) expect(networks).to.have.property(network);
      for (const [name, { condition }] of Object.entries(needs)) {
        expect(services).to.have.property(name);
        expect(condition).to.equal('service_healthy');
      }
    }
  });

  (REDIS_SERVER === undefined ? it.skip : it)(
    'starts a redis that evicts nothing, writes everything to disk and has a memory limit',
    async () => {
      const [, , shell = ''] = services['redis']?.command ?? [];
      const [program, ...flags] = shell.replaceAll('$$', '$').split(' ').slice(1);
      expect(program).to.equal('redis-server');
      const folder = makeFolder({});
      const port = await freePort();
      const args = flags.map((word) => (word === '"$REDISCLI_AUTH"' ? 'sesame' : word));
      const server = await startServer(
        `redis://:sesame@127.0.0.1:${port}`,
        port,
        () => ({
          program: REDIS_SERVER ?? '',
          args: [...args, '--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
          isReady: async () => (await sendToRedis(port, 'PING')).startsWith('-NOAUTH'),
        }),
        () => undefined,
      );
      const client = makeClient({ url: server.url });
      try {
        await client.connect();
        const info = 'info' in client ? await client.info() : '';
        expect(info)
          .to.match(/^maxmemory_policy:noeviction\r?$/m)
          .and.match(/^maxmemory:1073741824\r?$/m);
        expect(info).to.match(/^aof_enabled:1\r?$/m);
        expect(adviseOn(info), 'what the gateway would warn of').to.deep.equal([]);
      } finally {
        client.destroy();
        await server.close();
      }
    },
  );

  it('exposes only Caddy, gives responses time to end, and passes the gateway the variables of its configuration', async () => {
    expect(Object.keys(services).filter((name) => services[name]?.ports)).to.deep.equal(['caddy']);
    const config = read('compose/tollgate.config.yaml');
    const { server } = (await load(config)).config;
    const grace = seconds(services['tollgate']?.stop_grace_period ?? '') * 1000;
    expect(grace).to.be.above(server.drainDelayMs + server.drainTimeoutMs + 15_000);
    for (const [, name = ''] of config.matchAll(/\$\{(\w+)/g))
      expect(text, name).to.match(new RegExp(`^ {6}${name}: `, 'm'));
  });
});

describe('deploy/systemd', () => {
  const unit = read('systemd/tollgate.service');
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  it('runs existing commands, and does not retry an invalid configuration', () => {
    const used = [...unit.matchAll(/^Exec\w+=\/usr\/local\/bin\/tollgate (\w+)/gm)].map(([, name]) => name);
    expect(used).to.deep.equal(['start', 'check']);
    expect(COMMANDS.map(({ name }) => name)).to.include.members(used);
    expect(value('RestartPreventExitStatus')).to.equal(`${EXIT.usage} ${EXIT.config}`);
  });

  it('waits for the drain, and creates the store’s folder of its configuration', async () => {
    const { config } = await load(read('systemd/tollgate.config.yaml'));
    const { drainDelayMs, drainTimeoutMs } = config.server;
    expect(seconds(value('TimeoutStopSec')) * 1000).to.be.above(drainDelayMs + drainTimeoutMs + 15_000);
    expect(config.store.config['folder']).to.equal(`/var/lib/${value('StateDirectory')}`);
    expect(unit).to.include('/etc/tollgate/tollgate.config.yaml');
  });

  const analyze = findProgram('systemd-analyze', ['/usr/bin']);
  (analyze === undefined ? it.skip : it)('is a unit that systemd-analyze verifies and rates as well protected', () => {
    const folder = makeFolder({ 'tollgate.service': unit.replaceAll('/usr/local/bin/tollgate', '/bin/true') });
    const file = path.join(folder, 'tollgate.service');
    const curl = (...words: readonly string[]): string =>
      execFileSync(analyze ?? '', words, { encoding: 'utf8', stdio: 'pipe' });
    expect(curl('verify', file)).to.equal('');
    expect(curl('security', '--offline=yes', '--threshold=20', file)).to.include('OK');
  });
});

describe('the examples of proxies in deploy/', () => {
  for (const [name, file, waits, body] of [
    ['nginx', 'nginx/tollgate.conf', /proxy_read_timeout\s+(\w+);/, /client_max_body_size\s+(\w+);/],
    ['Caddy', 'caddy/Caddyfile', /read_timeout (\w+)/, /max_size (\w+)/],
  ] as const)
    it(`wait longer than the longest call, do not buffer, and accept the same body sizes as the gateway: ${name}`, async () => {
      const text = read(file);
      // Maximum duration of one attempt: ten minutes (docs/security.md).
      expect(seconds(waits.exec(text)?.[1] ?? '')).to.be.above(600);
      expect(text).to.match(name === 'nginx' ? /proxy_buffering off;/ : /flush_interval -1/);
      const { config } = await load('providers: { echo: {} }\n');
      expect(Number.parseInt(body.exec(text)?.[1] ?? '', 10) * 1024 * 1024).to.equal(config.server.bodyLimitBytes);
      expect(text).to.include('/metrics').and.include('127.0.0.1:8787');
    });

  it('support several gateways: an unreachable one is skipped, a call is retried only if that is safe, a console has its port (G40)', async () => {
    const nginx = read('nginx/tollgate.conf');
    expect(nginx)
      .to.match(/^ {4}zone tollgate \w+;$/m)
      .and.match(/^ {4}least_conn;$/m)
      .and.match(/^ {4}server 127\.0\.0\.1:8787 max_fails=1 fail_timeout=5s;$/m)
      .and.match(/^ {4}proxy_next_upstream error timeout;$/m)
      .and.match(/^ {4}proxy_set_header Host +\$http_host;$/m);
    const caddy = read('caddy/Caddyfile');
    const value = (name: string): string => new RegExp(`^\\s*${name} (\\S+)$`, 'm').exec(caddy)?.[1] ?? '';
    expect(value('lb_policy')).to.equal('least_conn');
    expect(value('health_uri')).to.equal('/readyz');
    // Either directive would repeat a call, or skip a gateway, because of a client's error.
    expect(caddy).to.not.match(/^\s*(lb_retry_match|fail_duration)/m);
    // The proxy detects a stopping gateway before it closes its port, with the default and in the samples.
    for (const text of ['providers: { echo: {} }\n', read('compose/tollgate.config.yaml')]) {
      const { server } = (await load(text)).config;
      expect(seconds(value('health_interval')) * 1000).to.be.below(server.drainDelayMs);
    }
  });

  it('limit connections and addresses; Caddy, which cannot limit addresses, has a note', () => {
    expect(read('nginx/tollgate.conf'))
      .to.match(/^\s*limit_conn\s+tollgate_address 256;/m)
      .and.match(/client_header_timeout 10s;/);
    expect(read('caddy/Caddyfile'))
      .to.match(/timeouts \{\s+read_header 10s/)
      .and.match(/bounds no connections by address/);
  });
});
