import { createServer } from 'node:http';

const RATE = 24_000;

/** A second of silence as WAV: 16 bits, one channel. */
export function silence(): Buffer {
  const sound = Buffer.alloc(RATE * 2);
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + sound.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE, 24);
  head.writeUInt32LE(RATE * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(sound.length, 40);
  return Buffer.concat([head, sound]);
}

/** Stands in for the vendor: says nothing, for a second. `node dist/test/vendor.js` runs it on port 4100. */
export const vendor = createServer((request, response) => {
  request.resume();
  response.setHeader('content-type', 'audio/wav');
  response.end(silence());
});

if (import.meta.filename === process.argv[1]) vendor.listen(4100, '127.0.0.1');
