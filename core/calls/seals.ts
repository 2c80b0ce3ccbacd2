import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ChatRequest, ReasoningDetail } from '../../contract/chat.ts';
import { factsOf } from '../../contract/facts.ts';
import type { Offer, Provider } from '../../contract/provider.ts';
import type { Sets } from '../../contract/store.ts';

/** Content of a sealed text. */
interface Opened {
  /** Provider instance, or its group, whose vendor can read it. */
  readonly deployment: string;
  readonly data: string;
}

/**
 * Seals data that a vendor encrypted: `tg1.<deployment>.<tag>.<data>`. It is accepted only from the same account, and
 * sent only to the deployment that can read it. The key belongs to the gateway, and all nodes of its store share it.
 */
export interface Seals {
  /** Reads the keys once, before any other method is used. */
  ready(): Promise<void>;
  seal(account: string, deployment: string, data: string): string;
  /** Returns undefined for data that this gateway did not seal for this account. */
  open(account: string, sealed: string): Opened | undefined;
  /** Returns a text that replaces `text` in this account only. It is always the same. */
  scope(account: string, text: string): string;
}

const SET = 'core.seal-keys';
const MAX_KEYS = 64;
const PREFIX = 'tg1';

/**
 * Creates seals whose keys are members of one set. Nodes that start at the same time may each add a key: the first one
 * seals, and any of them opens.
 */
export function createSeals(sets: () => Sets): Seals {
  let keys: readonly string[] = [];
  let reading: Promise<void> | undefined;
  const list = async (): Promise<void> => {
    keys = await sets().list(SET, { limit: MAX_KEYS });
  };
  const read = async (): Promise<void> => {
    await list();
    if (keys.length > 0) return;
    await sets().add(SET, randomBytes(32).toString('base64url'), MAX_KEYS);
    await list();
  };
  const tag = (key: string, parts: readonly string[]): string =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url').slice(0, 32);
  const own = (): string => {
    const [first] = keys;
    if (first === undefined) throw new TypeError('the keys of seals are not read yet');
    return first;
  };
  return {
    ready() {
      if (reading) return reading;
      reading = read().catch((error: unknown) => {
        reading = undefined;
        throw error;
      });
      // Chat does not wait for the keys. It seldom seals anything, so it continues if the store is down.
      reading.catch(() => undefined);
      return reading;
    },
    seal(account, deployment, data) {
      const place = encodeURIComponent(deployment).replaceAll('.', '%2E');
      return [PREFIX, place, tag(own(), ['seal', account, deployment, data]), data].join('.');
    },
    open(account, sealed) {
      const [prefix, place, mark, ...rest] = sealed.split('.');
      if (prefix !== PREFIX || place === undefined || mark === undefined || !/^[\w%!'()*~-]+$/.test(place))
        return undefined;
      const data = rest.join('.');
      const deployment = decode(place);
      if (deployment === undefined) return undefined;
      const isOurs = keys.some((key) => isEqual(tag(key, ['seal', account, deployment, data]), mark));
      return isOurs ? { deployment, data } : undefined;
    },
    scope: (account, text) => tag(own(), ['scope', account, text]),
  };
}

function decode(place: string): string | undefined {
  try {
    return decodeURIComponent(place);
  } catch {
    return undefined;
  }
}

function isEqual(a: string, b: string): boolean {
  const [one, two] = [Buffer.from(a), Buffer.from(b)];
  return one.length === two.length && timingSafeEqual(one, two);
}

/**
 * Deployment that can read a provider's encrypted data: the instance, or the group that shares the vendor's account.
 */
export function deploymentOf(offer: Offer | Provider | undefined, instance: string): string {
  return (offer && 'affinity' in offer ? offer.affinity : undefined) ?? instance;
}

/** Opens data that this gateway sealed for an account, if a provider instance can read it. */
export function openFor(
  seals: Pick<Seals, 'open'>,
  account: string,
  offer: Offer | Provider,
  instance: string,
  sealed: string,
): string | undefined {
  const opened = seals.open(account, sealed);
  return opened?.deployment === deploymentOf(offer, instance) ? opened.data : undefined;
}

/** Returns whether a text has the form of a seal, which may be forged. */
function isSealed(text: string | undefined): text is string {
  return text?.startsWith(`${PREFIX}.`) === true;
}

/** Deployments of the sealed reasoning in a request, the newest first. */
export function sealedDeployments(seals: Seals, account: string, request: ChatRequest): readonly string[] {
  const found = factsOf(request).reasoning.flatMap((data) =>
    isSealed(data) ? (seals.open(account, data)?.deployment ?? []) : [],
  );
  return [...new Set(found.reverse())];
}

/**
 * Opens the sealed reasoning that one deployment can read, and removes that of others. `isOmitted`: some was removed.
 */
export function openReasoning(
  request: ChatRequest,
  open: (sealed: string) => string | undefined,
): { readonly request: ChatRequest; readonly isOmitted: boolean } {
  if (!factsOf(request).reasoning.some(isSealed)) return { request, isOmitted: false };
  let isOmitted = false;
  const messages = request.messages.map((message) => {
    const { reasoning_details: details } = message;
    if (!details?.some(({ data }) => isSealed(data))) return message;
    const opened = details.flatMap((detail): readonly ReasoningDetail[] => {
      if (!isSealed(detail.data)) return [detail];
      const data = open(detail.data);
      // In visible reasoning the sealed part is the vendor's signature.
      if (data !== undefined) return [{ ...detail, data, ...(detail.kind === 'text' && { signature: data }) }];
      isOmitted = true;
      return [];
    });
    // The order refers to details by their index, which changes once one is removed.
    const { order: _order, ...rest } = message;
    return { ...(opened.length === details.length ? message : rest), reasoning_details: opened };
  });
  return { request: { ...request, messages }, isOmitted };
}
