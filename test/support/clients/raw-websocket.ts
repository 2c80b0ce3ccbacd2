/** Websocket client that sends arbitrary bytes, including frames that a correct library never sends. */
import { once } from 'node:events';
import net from 'node:net';
import { until } from '../wait.ts';

/** Operation codes of frames. Source: RFC 6455, section 5.2 */
export const OPCODE = Object.freeze({ continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 });

export interface FrameOptions {
  readonly opcode?: number;
  /** True for the last fragment. */
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  /** Announced length, if it differs from that of the payload. */
  readonly announced?: bigint;
  /** Reserved bits of the frame, three in number. */
  readonly reserved?: number;
}

const MASK = Buffer.from([0x12, 0x34, 0x56, 0x78]);

/** Bytes of one frame. */
export function frameOf(payload: string | Buffer, options: FrameOptions = {}): Buffer {
  const { opcode = OPCODE.text, isFinal = true, isMasked = true, reserved = 0 } = options;
  const data = Buffer.from(payload);
  const length = options.announced ?? BigInt(data.length);
  const first = Buffer.from([(isFinal ? 0x80 : 0) | (reserved << 4) | opcode]);
  const size = sizeOf(length, isMasked ? 0x80 : 0);
  if (!isMasked) return Buffer.concat([first, size, data]);
  const masked = data.map((byte, at) => byte ^ (MASK[at % 4] ?? 0));
  return Buffer.concat([first, size, MASK, masked]);
}

/** Length of a frame in 7, 16 or 64 bits. */
function sizeOf(length: bigint, bit: number): Buffer {
  if (length < 126n) return Buffer.from([bit | Number(length)]);
  const size = Buffer.alloc(length < 65_536n ? 3 : 9, bit | (length < 65_536n ? 126 : 127));
  if (size.length === 3) size.writeUInt16BE(Number(length), 1);
  else size.writeBigUInt64BE(length, 1);
  return size;
}

/** Connection after its handshake. */
export class RawWebSocket {
  readonly socket: net.Socket;
  #received = Buffer.alloc(0);
  isClosed = false;

  private constructor(socket: net.Socket) {
    this.socket = socket;
    socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
    });
  }

  /** Opens a websocket; `url` is the gateway's. */
  static async open(url: string, path: string, key: string): Promise<RawWebSocket> {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    const one = new RawWebSocket(socket);
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
        'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    await until('the handshake is over', () => one.#received.includes('\r\n\r\n'));
    const head = one.#received.subarray(0, one.#received.indexOf('\r\n\r\n') + 4);
    if (!head.toString().startsWith('HTTP/1.1 101')) throw new Error(head.toString());
    one.#received = one.#received.subarray(head.length);
    return one;
  }

  send(payload: string | Buffer, options?: FrameOptions): boolean {
    return this.socket.write(frameOf(payload, options));
  }

  /** Complete text frames so far. */
  texts(): readonly string[] {
    return this.#frames().flatMap(({ opcode, data }) => (opcode === OPCODE.text ? [data.toString('utf8')] : []));
  }

  /** Code of the received close frame; 1006 if the connection ended without one. */
  async closeCode(withinMs?: number): Promise<number> {
    await until('it is closed', () => this.isClosed || this.#closeFrame() !== undefined, withinMs);
    return this.#closeFrame()?.readUInt16BE(0) ?? 1006;
  }

  #closeFrame(): Buffer | undefined {
    return this.#frames().find(({ opcode }) => opcode === OPCODE.close)?.data;
  }

  #frames(): readonly { readonly opcode: number; readonly data: Buffer }[] {
    const frames: { opcode: number; data: Buffer }[] = [];
    const bytes = this.#received;
    for (let at = 0; at + 2 <= bytes.length; ) {
      const short = (bytes[at + 1] ?? 0) & 0x7f;
      const [length, head] =
        short < 126
          ? [short, 2]
          : short === 126
            ? [bytes.readUInt16BE(at + 2), 4]
            : [Number(bytes.readBigUInt64BE(at + 2)), 10];
      if (at + head + length > bytes.length) break;
      frames.push({ opcode: (bytes[at] ?? 0) & 0x0f, data: bytes.subarray(at + head, at + head + length) });
      at += head + length;
    }
    return frames;
  }
}
