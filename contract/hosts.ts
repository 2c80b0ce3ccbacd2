import { BlockList, isIP, isIPv6 } from 'node:net';

/** Returns whether a URL is `https:` at a public host, without a credential. */
export function isPublicHttps(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return protocol === 'https:' && username === '' && password === '' && isPublicHost(hostname);
}

/** Returns whether a URL's host is public: no private or loopback address, and no name of an internal network. */
export function isPublicHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  const family = isIP(host);
  if (family === 4) return !PRIVATE_V4.check(host);
  if (family === 6) return !PRIVATE_V6.check(host, 'ipv6');
  return host.includes('.') && !PRIVATE_NAME.test(host);
}

/**
 * Returns whether a host, with or without brackets, is this machine. Traffic to it cannot be intercepted. Names other than
 * `localhost` are never loopback.
 */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/^::ffff:(?=\d+\.)/i, '');
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Names of internal networks, by convention or by RFC 6761, 6762 and 8375. */
const PRIVATE_NAME =
  /(?:^|\.)(?:localhost|local|internal|intranet|localdomain|lan|corp|home|private|home\.arpa|test|invalid)$/;

/** Ranges outside the public internet, from IANA's special-purpose registries. */
const PRIVATE_V4 = blockList('ipv4', [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
]);

/** Non-public ranges, including those that contain an IPv4 address. */
const PRIVATE_V6 = blockList('ipv6', [
  ...['::/16', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '2001::/32', '2001:db8::/32', '2002::/16', 'fc00::/7'],
  ...['fe80::/10', 'fec0::/10', 'ff00::/8'],
]);

function blockList(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', bits] = range.split('/');
    list.addSubnet(network, Number(bits), family);
  }
  return list;
}

/** Returns the network within which one caller can choose addresses: the first 64 bits of IPv6, the whole address of IPv4. */
export function networkOf(address: string): string {
  const host = address.replace(/^\[|\]$/g, '').toLowerCase();
  if (!isIPv6(host)) return host;
  const [before = '', after] = host.split('::');
  const groups = (text: string | undefined): readonly string[] => (text ? text.split(':') : []);
  const [head, tail] = [groups(before), groups(after)];
  const last = tail.at(-1) ?? head.at(-1) ?? '';
  const isMapped = last.includes('.') && tail.length === 2 && tail[0] === 'ffff' && head.length === 0;
  if (isMapped) return last;
  const missing = after === undefined ? 0 : 8 - head.length - tail.length - (last.includes('.') ? 1 : 0);
  const all = [...head, ...new Array<string>(missing).fill('0'), ...tail];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
