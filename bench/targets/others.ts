import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { findProgram, forkProgram, freePort, GATEWAY_CORES, startProgram } from '../programs.ts';
import { RESPONSE } from '../wires.ts';
import { type BenchRequest, post, type Running, type Target, type Upstreams } from './target.ts';

const plainRequest = ({ kind, body }: BenchRequest): string =>
  post(`/${kind}/v1/chat/completions`, { authorization: `Bearer ${SECRET}` }, body);

const SECRET = 'bench';

function forked(name: string, label: string, file: string, nodeFlags: readonly string[] = []): Target {
  return {
    name,
    label,
    async start({ json, stream, folder }) {
      const began = performance.now();
      const own = mkdtempSync(path.join(folder, `${name}-`));
      const program = await forkProgram<number>(file, [json, stream, own, SECRET], { cores: GATEWAY_CORES, nodeFlags });
      const bootMs = performance.now() - began;
      return { port: program.ready, pid: program.pid, bootMs, request: plainRequest, stop: () => program.stop() };
    },
  };
}

export const PLAIN = plain('plain', 'the yardstick');
export const BARE = forked('bare', 'bare Node, undici proxy', './targets/bare.js');
export const KOA = forked('koa', 'Koa + undici, nothing on', './targets/koa.js');

/** The yardstick, with Node options. */
export function plain(name: string, label: string, nodeFlags: readonly string[] = []): Target {
  return forked(name, label, './targets/plain.js', nodeFlags);
}

/** No gateway: the cost of upstream and load alone. */
export const DIRECT: Target = {
  name: 'direct',
  label: 'no gateway',
  async start({ json, stream }) {
    const port = (kind: BenchRequest['kind']) => Number(new URL(kind === 'json' ? json : stream).port);
    return { port: port('json'), pid: process.pid, bootMs: 0, request: plainRequest, stop: async () => {} };
  },
};

const NGINX_PROGRAM = findProgram('nginx');

export const NGINX: Target | undefined = NGINX_PROGRAM ? nginxProxy() : undefined;

function nginxProxy(): Target {
  return {
    name: 'nginx',
    label: 'nginx as proxy',
    async start({ json, stream, folder }) {
      const host = (url: string) => new URL(url).host;
      const upstreams = [
        `upstream json { server ${host(json)}; keepalive 512; keepalive_requests 1000000000; }`,
        `upstream stream { server ${host(stream)}; keepalive 512; keepalive_requests 1000000000; }`,
      ];
      const locations = ['json', 'stream'].map(
        (name) =>
          `location /${name}/ { proxy_pass http://${name}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering ${name === 'json' ? 'on' : 'off'}; }`,
      );
      return startNginx(folder, 'proxy', GATEWAY_CORES, upstreams.join('\n'), locations.join('\n'));
    },
  };
}

/** Starts an nginx that responds with one JSON text, faster than Node; undefined if nginx is not installed. */
export function startNginxUpstream(folder: string, cores: string): Promise<Running> | undefined {
  if (!NGINX_PROGRAM) return undefined;
  return startNginx(
    folder,
    'upstream',
    cores,
    '',
    `location / { default_type application/json; return 200 '${RESPONSE}'; }`,
  );
}

async function startNginx(
  folder: string,
  name: string,
  cores: string,
  upstreams: string,
  locations: string,
): Promise<Running> {
  const port = await freePort();
  const prefix = path.join(folder, `nginx-${name}-`);
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (what) => `${what}_temp_path ${prefix}${what};`,
  );
  writeFileSync(
    `${prefix}conf`,
    `daemon off; master_process off; worker_rlimit_nofile 20000; pid ${prefix}pid; error_log ${prefix}log;
events { worker_connections 16000; }
http { access_log off; ${temp.join(' ')} ${upstreams}
server { listen 127.0.0.1:${port} backlog=4096; keepalive_requests 1000000000; keepalive_timeout 600s;
client_max_body_size 0; client_body_buffer_size 1m; ${locations} } }\n`,
  );
  const began = performance.now();
  const program = await startProgram(
    NGINX_PROGRAM ?? 'nginx',
    ['-c', `${prefix}conf`, '-e', `${prefix}log`],
    { cores },
    () => accepts(port),
  );
  return {
    port,
    pid: program.pid,
    bootMs: performance.now() - began,
    request: plainRequest,
    stop: () => program.stop(),
  };
}

/** Portkey's gateway, if installed here or at `BENCH_PORTKEY`. */
export const PORTKEY: Target | undefined = portkey();

export function portkeyFolder(): string | undefined {
  const given = process.env['BENCH_PORTKEY'];
  if (given) return existsSync(path.join(given, 'build', 'start-server.js')) ? given : undefined;
  try {
    const entry = createRequire(import.meta.url).resolve('@portkey-ai/gateway/package.json');
    return path.dirname(entry);
  } catch {
    return undefined;
  }
}

function portkey(): Target | undefined {
  const folder = portkeyFolder();
  if (!folder) return undefined;
  return {
    name: 'portkey',
    label: 'Portkey gateway',
    async start(upstreams: Upstreams) {
      const port = await freePort();
      const began = performance.now();
      const program = await startProgram(
        process.execPath,
        [path.join(folder, 'build', 'start-server.js'), '--headless', `--port=${port}`],
        {
          cores: GATEWAY_CORES,
          cwd: upstreams.folder,
          env: { ...process.env, NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1' },
        },
        () => accepts(port),
      );
      const request = ({ kind, body }: BenchRequest): string =>
        post(
          '/v1/chat/completions',
          {
            authorization: 'Bearer bench',
            'x-portkey-provider': 'openai',
            'x-portkey-custom-host': `${upstreams[kind]}/v1`,
          },
          body,
        );
      return { port, pid: program.pid, bootMs: performance.now() - began, request, stop: () => program.stop() };
    },
  };
}

function accepts(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(undefined));
  });
}
