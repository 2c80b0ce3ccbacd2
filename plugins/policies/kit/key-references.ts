import {
  type AuthRequest,
  GatewayError,
  type GatewayView,
  type PluginApi,
  type Principal,
} from '../../../contract/index.ts';

/**
 * Checks an API key by its id, as its owner does for a request with the key itself: revoked, blocked, expired, address.
 * Returns the caller with its current rights. For credentials that were derived from a key, such as a session.
 */
export type AdmitKey = (keyId: string, request: Pick<AuthRequest, 'now' | 'address'>) => Promise<Principal>;

/** Owners of keys by the gateway that instances share. */
const OWNERS = new WeakMap<GatewayView, AdmitKey>();

interface KeyApi {
  readonly operators: Pick<PluginApi['operators'], 'gateway'>;
}

/** Offers the check of keys to other instances of the gateway. */
export function offerKeys({ operators: { gateway } }: KeyApi, admit: AdmitKey): void {
  OWNERS.set(gateway, admit);
}

/** Checks the key of a derived credential at its use. */
export async function admitKey(
  { operators: { gateway } }: KeyApi,
  keyId: string,
  request: Parameters<AdmitKey>[1],
): Promise<Principal> {
  const admit = OWNERS.get(gateway);
  if (admit) return admit(keyId, request);
  throw new GatewayError('invalid_token', 'API keys are disabled on this gateway, so a session of one has ended.');
}
