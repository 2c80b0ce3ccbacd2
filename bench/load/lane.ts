import net from 'node:net';

/** Keep-alive connection with one request at a time, over a plain socket: a client library would be measured too. */
export interface Lane {
  send(): void;
  close(): void;
}

export interface LaneEvents {
  /** Called with bytes of a response, including headers in the first read. */
  onBytes(bytes: Buffer): void;
  onDone(status: number): void;
  onBroken(error: Error): void;
}

const CHUNKED_END = Buffer.from('\r\n0\r\n\r\n');

export function openLane(port: number, request: Buffer, events: LaneEvents): Lane {
  let head: Buffer = Buffer.alloc(0);
  let inBody = false;
  let left = 0;
  let isChunked = false;
  let status = 0;
  let tail: Buffer = Buffer.alloc(0);
  let closed = false;
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });

  function done(): void {
    inBody = false;
    head = Buffer.alloc(0);
    tail = Buffer.alloc(0);
    events.onDone(status);
  }

  function readBody(bytes: Buffer): void {
    if (!isChunked) {
      left -= bytes.length;
      if (left <= 0) done();
      return;
    }
    // Reads may split the end marker at any byte, so the last seven bytes are stored.
    const end = bytes.length >= 7 ? bytes.subarray(-7) : Buffer.concat([tail, bytes]).subarray(-7);
    if (end.equals(CHUNKED_END)) done();
    else tail = Buffer.from(end);
  }

  socket.on('data', (bytes: Buffer) => {
    events.onBytes(bytes);
    if (inBody) return readBody(bytes);
    head = head.length === 0 ? bytes : Buffer.concat([head, bytes]);
    const at = head.indexOf('\r\n\r\n');
    if (at < 0) return;
    const text = head.toString('latin1', 0, at).toLowerCase();
    status = Number(text.slice(9, 12));
    isChunked = text.includes('transfer-encoding: chunked');
    left = Number(/content-length: (\d+)/.exec(text)?.[1] ?? 0);
    inBody = true;
    tail = Buffer.from('\r\n');
    const rest = head.subarray(at + 4);
    if (rest.length > 0 || (!isChunked && left === 0)) readBody(rest);
  });
  const broken = (error: Error) => {
    if (closed) return;
    closed = true;
    events.onBroken(error);
  };
  socket.on('error', broken);
  socket.on('close', () => broken(new Error('the gateway closed the connection')));
  return {
    send: () => void socket.write(request),
    close() {
      closed = true;
      socket.destroy();
    },
  };
}
