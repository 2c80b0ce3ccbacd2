import zlib from 'node:zlib';
import { GatewayError } from '../../contract/errors.ts';

/** Decompressor of Node; its input is one body. */
type Decompressor = zlib.BrotliDecompress | zlib.Gunzip | zlib.Inflate | zlib.InflateRaw;

type ZstdModule = typeof zlib & {
  /** Since Node 22.15; the types are those of Node 20. */
  readonly createZstdDecompress?: () => Decompressor;
};

export interface DecompressOptions {
  readonly maxBytes: number;
  /** Throws if there is no memory for so many more bytes. */
  grow(bytes: number): void;
  tooLarge(): GatewayError;
}

/** Supported values of `content-encoding`. */
const ENCODINGS = 'gzip, deflate, br, zstd';

/** Opens the decompressor of a body by its first byte. */
export type OpenDecompressor = (firstByte: number | undefined) => Decompressor;

/** Returns the decompressor of a `content-encoding`; undefined for none. Throws `unsupported_media_type` for an unknown one. */
export function decompressorOf(encoding: string): OpenDecompressor | undefined {
  switch (encoding) {
    case '':
    case 'identity':
      return undefined;
    case 'gzip':
    case 'x-gzip':
      return () => zlib.createGunzip();
    case 'br':
      return () => zlib.createBrotliDecompress();
    case 'deflate':
      // The standard requires the format of zlib, and some clients send raw data.
      return (firstByte = 0) => ((firstByte & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw());
    case 'zstd': {
      const { createZstdDecompress } = zlib as ZstdModule;
      if (createZstdDecompress) return createZstdDecompress;
      throw unsupported(
        'The Node.js version of this gateway has no zstd, which needs 22.15 or later. Send the body without a content-encoding; in Codex, set enable_request_compression = false under [features] of config.toml.',
      );
    }
    default:
      throw unsupported(
        `The content-encoding "${encoding.slice(0, 40)}" is not supported. Use one of ${ENCODINGS}, or send the body uncompressed.`,
      );
  }
}

/** Decompresses a body. Memory and size are checked while it grows, so that a small body cannot become an unbounded one. */
export function decompress(
  bytes: Uint8Array,
  open: OpenDecompressor,
  { maxBytes, grow, tooLarge }: DecompressOptions,
): Promise<Buffer> {
  const stream = open(bytes[0]);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const fail = (error: unknown): void => {
      stream.destroy();
      reject(error);
    };
    stream.on('error', () =>
      fail(
        new GatewayError(
          'invalid_request',
          'The body does not match its content-encoding, or is incomplete. Compress it again, or send it uncompressed.',
        ),
      ),
    );
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > maxBytes) throw tooLarge();
        grow(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        fail(error);
      }
    });
    stream.on('end', () => resolve(Buffer.concat(chunks, size)));
    stream.end(bytes);
  });
}

function unsupported(message: string): GatewayError {
  return new GatewayError('unsupported_media_type', message);
}
