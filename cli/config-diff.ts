import type { GatewayConfig } from '../config/core-schema.ts';
import { firstCertificate, type TlsConfig } from '../config/tls.ts';
import type { ConfigChange } from '../contract/config-changes.ts';
import { isObject } from '../contract/json.ts';
import { childPointer, formatPath } from '../contract/pointers.ts';

/** Settings that belong to the process and change only with a restart. */
const FIXED = /^\/(?:store|logging|server\/(?:host|port|workers|watch|basePath))(?:\/|$)/;

/** Lists all differences of the new configuration, defaults included, in the order of the files. */
export function diffConfigs(before: GatewayConfig, after: GatewayConfig): readonly ConfigChange[] {
  const [old, fresh] = [leavesOf(before.plain()), leavesOf(after.plain())];
  const [oldShown, freshShown] = [leavesOf(before.printable()), leavesOf(after.printable())];
  const pointers = [...new Set([...old.keys(), ...fresh.keys()])];
  const changes = pointers
    .filter(
      (pointer) => old.get(pointer) !== fresh.get(pointer) && !hasBelow(old, pointer) && !hasBelow(fresh, pointer),
    )
    .map((pointer) => {
      const [was, is] = [oldShown.get(pointer), freshShown.get(pointer)];
      return {
        path: formatPath(pointer),
        ...(was !== undefined && { before: was }),
        ...(is !== undefined && { after: is }),
        needsRestart: FIXED.test(pointer) || isFixedTls(pointer, before.server.tls, after.server.tls),
      };
    });
  return [...changes, ...diffFiles(before, after)];
}

/**
 * Changes of TLS that need a restart: switching it on or off, and starting or stopping to request client certificates.
 */
function isFixedTls(pointer: string, before: TlsConfig | undefined, after: TlsConfig | undefined): boolean {
  if (!pointer.startsWith('/server/tls')) return false;
  if (before === undefined || after === undefined || pointer === '/server/tls/clientAuth') return true;
  return pointer === '/server/tls/clientCa' && (before.clientCa === undefined || after.clientCa === undefined);
}

/** Compares the content of TLS files that keep their name; certificates are shown by number and end. */
function diffFiles(
  { server: { tls: before } }: GatewayConfig,
  { server: { tls: after } }: GatewayConfig,
): readonly ConfigChange[] {
  const names = ['cert', 'key', 'clientCa'] as const;
  return names.flatMap((name) => {
    const [was, is] = [before?.[name], after?.[name]];
    if (was === undefined || is === undefined || was === is) return [];
    const [old, fresh] = name === 'key' ? ['"****"', '"****"'] : [describe(was), describe(is)];
    return [{ path: `server.tls.${name} (the file)`, before: old, after: fresh, needsRestart: false }];
  });
}

/** Describes a certificate by serial number and end. */
function describe(pem: string): string {
  const { serialNumber, validTo } = firstCertificate(pem);
  return JSON.stringify(`number ${serialNumber.slice(0, 16)}, until ${new Date(validTo).toISOString().slice(0, 10)}`);
}

/** `~ providers.openai.apiKey: "****" → "****"`. An added or removed value is shown alone. */
export function formatChange({ path, before, after, needsRestart }: ConfigChange): string {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  const values = before === after ? 'changed secret' : [before, after].filter((text) => text !== undefined).join(' → ');
  return `${sign} ${path}: ${values}${needsRestart ? '  (after a restart)' : ''}`;
}

/** True if values exist below a pointer; the former empty value is then not shown. */
function hasBelow(leaves: ReadonlyMap<string, string>, pointer: string): boolean {
  return [...leaves.keys()].some((each) => each.startsWith(`${pointer}/`));
}

/** Collects every scalar, empty list and empty map as JSON by pointer. */
function leavesOf(value: unknown, pointer = '', leaves = new Map<string, string>()): ReadonlyMap<string, string> {
  const entries = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  if (entries.length === 0 && value !== undefined) leaves.set(pointer, JSON.stringify(value));
  for (const [key, child] of entries) leavesOf(child, childPointer(pointer, key), leaves);
  return leaves;
}
