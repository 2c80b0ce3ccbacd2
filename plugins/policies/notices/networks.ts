import { isIPv4, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Call, PluginApi } from '../../../contract/index.ts';
import { maxEntries, networkOf } from '../kit/index.ts';
import type { OperatorNotice } from '../kit/notices.ts';

/** Set of the networks that the keys of a user were used from: `<key id> <network>`. */
const setOf = (userId: string): string => `networks.${userId}`;

/** Maximum number of networks of a user's keys. Further ones cause no notice. */
const MAX_NETWORKS = 500;
/** Longer than keys change their networks; a network is reported once in this time. */
const REMEMBER_MS = 400 * 86_400_000;
const PAGE = 100;

/**
 * Returns the network of an address: the first 24 bits of IPv4, the first 48 of IPv6, which an office or a provider's
 * customer shares. Undefined for an invalid address.
 */
export function wideNetworkOf(address: string): string | undefined {
  const narrow = networkOf(address);
  if (isIPv4(narrow)) return narrow.replace(/\.\d+$/, '.0/24');
  const [groups = ''] = narrow.split('::/');
  return isIPv6(`${groups}::`) ? `${groups.split(':').slice(0, 3).join(':')}::/48` : undefined;
}

/**
 * Reports a key that is used from a network for the first time, except its first network. Costs a look-up of the key's
 * last address per call.
 */
export function watchNetworks(api: PluginApi, tell: (notice: OperatorNotice) => Promise<void>): void {
  const last = api.keep('networks', () => new LRUCache<string, string>(maxEntries(20_000)));
  const { sets } = api.stores;
  const record = async (keyId: string, userId: string, network: string): Promise<void> => {
    const member = `${keyId} ${network}`;
    const set = setOf(userId);
    const [before] = await sets.list(set, { limit: 1, after: `${keyId} ` });
    if ((await sets.add(set, member, MAX_NETWORKS)) !== 'added' || !before?.startsWith(`${keyId} `)) return;
    await tell({
      type: 'key.new_network',
      text: `Key tg_${keyId} of ${userId} is used from a new network, ${network}`,
      facts: { key: `tg_${keyId}`, user: userId, network },
      cause: `key.new_network ${member}`,
      rememberMs: REMEMBER_MS,
    });
  };
  api.hook('finish', ({ principal: { keyId, userId }, trace: { origin } }: Call) => {
    if (keyId === undefined || !origin || last.get(keyId) === origin.ip) return;
    last.set(keyId, origin.ip);
    const network = wideNetworkOf(origin.ip);
    if (network === undefined) return;
    return record(keyId, userId, network).catch((error: unknown) => {
      // The next call tries again.
      last.delete(keyId);
      throw error;
    });
  });
}

/** Registers the networks of a user's keys as personal data. */
export function registerNetworks({ stores }: Pick<PluginApi, 'stores'>): void {
  stores.personalData({
    name: 'networks_of_keys',
    count: ({ userId }) => stores.sets.size(setOf(userId)),
    async erase({ userId }) {
      const set = setOf(userId);
      for (let erased = 0; ; ) {
        const members = await stores.sets.list(set, { limit: PAGE });
        for (const member of members) await stores.sets.remove(set, member);
        erased += members.length;
        if (members.length < PAGE) return erased;
      }
    },
  });
}
