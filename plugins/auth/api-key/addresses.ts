import { BlockList, isIP } from 'node:net';
import { GatewayError } from '../../../contract/index.ts';

/** Address or network in CIDR notation: `203.0.113.7`, `10.0.0.0/8`, `2001:db8::/32`. */
interface Network {
  readonly address: string;
  readonly family: 'ipv4' | 'ipv6';
  readonly prefix: number;
}

const NETWORK = /^([0-9a-f.:]{2,45})(?:\/(\d{1,3}))?$/;

function parseNetwork(text: string): Network | undefined {
  const [, address = '', prefix] = NETWORK.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return undefined;
  const bits = version === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  return length > bits ? undefined : { address, family: version === 4 ? 'ipv4' : 'ipv6', prefix: length };
}

/** Normalises addresses and networks of a key; throws `invalid_request` for an invalid entry. */
export function readAddresses(entries: readonly string[]): readonly string[] {
  return entries.map((entry, at) => {
    const text = entry.trim().toLowerCase();
    if (parseNetwork(text)) return text;
    const shown = entry.replace(/[\p{Cc}\p{Cf}]/gu, '?').slice(0, 60);
    throw new GatewayError(
      'invalid_request',
      `"${shown}" is not an IP address or network. Use 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32; host names are not supported.`,
      { param: `addresses[${at}]` },
    );
  });
}

/**
 * Returns a test for addresses that equal an entry or belong to one of these networks. IPv4 written as IPv6 counts as
 * IPv4; an unreadable address does not match.
 */
export function createAddressCheck(entries: readonly string[]): (address: string) => boolean {
  const allowed = new BlockList();
  for (const { address, family, prefix } of entries.flatMap((entry) => parseNetwork(entry) ?? []))
    allowed.addSubnet(address, prefix, family);
  return (address) => {
    const plain = address.replace(/^\[|\]$|%.*$/g, '').replace(/^::ffff:(?=\d+\.)/i, '');
    const version = isIP(plain);
    return version !== 0 && allowed.check(plain, version === 4 ? 'ipv4' : 'ipv6');
  };
}
