import { type CallFilter, GatewayError, type Principal } from '../../../core/index.ts';

/** Holds a filter to what a caller may see: a key what it used itself, a token all of its account. */
export function ownCalls({ credential, keyId, account }: Principal, filter: CallFilter): CallFilter {
  if (credential !== 'key' || keyId === undefined) return { ...filter, account };
  if (filter.key !== undefined && filter.key !== keyId)
    throw new GatewayError('invalid_request', '"key" can only be the key that asks; a token sees all of its account.', {
      param: 'key',
    });
  return { ...filter, account, key: keyId };
}
