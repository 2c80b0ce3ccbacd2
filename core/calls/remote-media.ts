import { isIP } from 'node:net';
import type { ChatRequest } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import { isObject, readString } from '../contract/json.ts';

/** Fields of a part that hold an address to be fetched by the vendor. */
const PLACES = Object.freeze([
  ['image_url', 'url'],
  ['video_url', 'url'],
  ['audio_url', 'url'],
  ['file', 'file_url'],
] as const);

/** Every place of a request that names media by an address instead of carrying it. */
export function* remoteMedia(request: ChatRequest): Generator<{ readonly url: string; readonly param: string }> {
  for (const [at, { content }] of request.messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [index, part] of content.entries())
      for (const [field, name] of PLACES) {
        const holder: unknown = isObject(part) ? part[field] : undefined;
        const url = isObject(holder) ? readString(holder[name]) : readString(holder);
        if (url !== undefined && !/^data:/i.test(url))
          yield { url, param: `messages[${at}].content[${index}].${field}.${name}` };
      }
  }
}

/**
 * Refuses addresses of media that a vendor must not be sent to fetch: only `https:` at a public host. The gateway fetches none
 * itself; a vendor on the operator's own network would.
 */
export function assertPublicMedia(request: ChatRequest): void {
  for (const { url, param } of remoteMedia(request)) {
    if (isPublicHttps(url)) continue;
    throw new GatewayError(
      'invalid_request',
      `\`${param}\` must be a data URL, or an https URL of a public host. Other addresses are not passed on.`,
      { param },
    );
  }
}

function isPublicHttps(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return protocol === 'https:' && username === '' && password === '' && isPublicHost(hostname);
}

/** Whether a host, as a URL has it, is neither an address of a private or loopback range nor a name for an inner network. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (isIP(host) === 4) return !PRIVATE_V4.test(host);
  if (isIP(host) === 6) return !PRIVATE_V6.test(host);
  return host.includes('.') && !/(^|\.)(localhost|local|internal|localdomain|home\.arpa|test|invalid)$/.test(host);
}

/** This network, private, loopback, link-local, shared (100.64/10), multicast and reserved. */
const PRIVATE_V4 =
  /^(?:0|10|127|22[4-9]|23\d|24\d|25\d)\.|^169\.254\.|^172\.(?:1[6-9]|2\d|3[01])\.|^192\.168\.|^100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./;

/** Unspecified and loopback, unique local, link-local, multicast, and IPv4 inside IPv6. */
const PRIVATE_V6 = /^::|^f[cd]|^fe[89ab]|^ff|^64:ff9b:/;
