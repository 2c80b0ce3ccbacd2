/** Proxies configured in `deploy/`, run with the ports and the certificate of a test. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';
import { findProgram } from './server-process.ts';

interface Ports {
  readonly own: number;
  readonly gateways: readonly number[];
}

export interface ExampleProxy {
  /** Undefined if it is not installed. */
  readonly program: string | undefined;
  readonly args: readonly string[];
  /** Text of `proxy.conf`. The folder contains the certificate, `tls.crt` and `tls.key`. */
  config(ports: Ports, folder: string): string;
}

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, 'deploy', file), 'utf8');

/** Replaces a text that the file must contain. */
function replace(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`the file has no ${from}`);
  return text.replaceAll(from, to);
}

function nginxConfig({ own, gateways }: Ports, folder: string): string {
  const shipped = read('nginx/tollgate.conf');
  const [line = ''] = /^ *server 127\.0\.0\.1:8787.*\n/m.exec(shipped) ?? [];
  let site = replace(shipped, line, gateways.map((port) => line.replace('8787', String(port))).join(''));
  site = replace(site, 'listen 443 ssl', `listen 127.0.0.1:${own} ssl`);
  site = replace(site, '/etc/nginx/tls/gateway.crt', path.join(folder, 'tls.crt'));
  site = replace(site, '/etc/nginx/tls/gateway.key', path.join(folder, 'tls.key'));
  site = replace(site, '/var/log/nginx/', `${folder}/`);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path tmp;`);
  return [
    'daemon off; pid nginx.pid; user root; worker_processes 2; events {}',
    `http { access_log off; ${temporary.join(' ')}`,
    site,
    '}',
  ].join('\n');
}

function caddyConfig({ own, gateways }: Ports, folder: string): string {
  const tls = `tls ${folder}/tls.crt ${folder}/tls.key`;
  const upstreams = gateways.map((port) => `127.0.0.1:${port}`).join(' ');
  let site = read('caddy/Caddyfile');
  site = replace(site, '{$TOLLGATE_DOMAIN:localhost} {', `https://localhost:${own} {\n\t${tls}`);
  site = replace(site, '{$TOLLGATE_UPSTREAM:127.0.0.1:8787}', upstreams);
  return site.replace(/^\{\n/m, '{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n');
}

export const EXAMPLE_PROXIES: Readonly<Record<'nginx' | 'Caddy', ExampleProxy>> = Object.freeze({
  nginx: {
    program: findProgram('nginx', ['/usr/sbin', '/usr/local/sbin']),
    args: ['-p', '.', '-e', 'stderr', '-c', 'proxy.conf'],
    config: nginxConfig,
  },
  Caddy: {
    program: findProgram('caddy', ['/usr/bin', '/usr/local/bin']),
    args: ['run', '--adapter', 'caddyfile', '--config', 'proxy.conf'],
    config: caddyConfig,
  },
});
