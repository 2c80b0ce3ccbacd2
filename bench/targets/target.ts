import type { WireName } from '../wires.ts';

/** A chat request that every gateway is sent. */
export interface BenchRequest {
  /** The format that the upstream speaks. */
  readonly wire: WireName;
  /** Whether the upstream responds with a stream or as a whole. */
  readonly kind: 'json' | 'stream';
  readonly body: string;
  /** The path of a gateway that serves other formats than chat; the body's model names the provider then. */
  readonly path?: string;
}

/** A gateway that runs. */
export interface Running {
  readonly port: number;
  readonly pid: number;
  /** From being started to accepting requests, in milliseconds. */
  readonly bootMs: number;
  /** The whole HTTP request that brings this to the upstream. */
  request(request: BenchRequest): string;
  stop(): Promise<void>;
}

/** Where gateways find the upstream. */
export interface Upstreams {
  readonly json: string;
  readonly stream: string;
  /** A folder for what a target writes; removed at the end. */
  readonly folder: string;
}

/** One column of a comparison. */
export interface Target {
  readonly name: string;
  readonly label: string;
  start(upstreams: Upstreams): Promise<Running>;
}

/** A POST of JSON, as bytes on the wire. */
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
