import type { WireName } from '../wires.ts';

/** Chat request sent to every gateway. */
export interface BenchRequest {
  /** Format of the upstream. */
  readonly wire: WireName;
  /** Response of the upstream: whole or a stream. */
  readonly kind: 'json' | 'stream';
  readonly body: string;
  /** Path of a gateway for formats other than chat; the body's model then names the provider. */
  readonly path?: string;
}

/** Running gateway. */
export interface Running {
  readonly port: number;
  readonly pid: number;
  /** Time from start to accepting requests, in milliseconds. */
  readonly bootMs: number;
  /** Complete HTTP request that reaches the upstream. */
  request(request: BenchRequest): string;
  stop(): Promise<void>;
}

/** Addresses of the upstream for gateways. */
export interface Upstreams {
  readonly json: string;
  readonly stream: string;
  /** Folder for files of a target; removed at the end. */
  readonly folder: string;
}

/** Column of a comparison. */
export interface Target {
  readonly name: string;
  readonly label: string;
  start(upstreams: Upstreams): Promise<Running>;
}

/** POST of JSON, as bytes on the wire. */
export function post(path: string, headers: Readonly<Record<string, string>>, body: string): string {
  const all = {
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}
