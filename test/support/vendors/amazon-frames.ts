import { crc32 } from 'node:zlib';
import { head } from './scripted-upstream.ts';

/** Frame of `application/vnd.amazon.eventstream`. */
export function amazonFrame(headers: Readonly<Record<string, string>>, payload: string | object): Buffer {
  const body = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const sizes = Buffer.alloc(3);
      sizes.writeUInt8(7);
      sizes.writeUInt16BE(Buffer.byteLength(value), 1);
      return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), sizes, Buffer.from(value)]);
    }),
  );
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const message = Buffer.concat([prelude, head, body]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(message));
  return Buffer.concat([message, checksum]);
}

/** Event of Bedrock, as its service sends it. */
export function amazonEvent(type: string, payload: object): Buffer {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' };
  return amazonFrame(headers, payload);
}

/** Exception in a stream. */
export function amazonException(type: string, message: string): Buffer {
  const headers = { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' };
  return amazonFrame(headers, { message });
}

export const AMAZON_HEAD = head(200, {
  'content-type': 'application/vnd.amazon.eventstream',
  'transfer-encoding': 'chunked',
});

/** Converts server-sent events to frames; events with names that end in `Exception` become exceptions. */
export function amazonStream(text: string): Buffer {
  const events = [...text.matchAll(/^event: (.+)\ndata: (.+)$/gm)];
  return Buffer.concat(
    events.map(([, type = '', data = '']) => {
      const kind = type.endsWith('Exception') ? 'exception' : 'event';
      return amazonFrame({ [`:${kind}-type`]: type, ':content-type': 'application/json', ':message-type': kind }, data);
    }),
  );
}
