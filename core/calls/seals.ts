import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ChatRequest, ReasoningDetail } from '../../contract/chat.ts';
import { factsOf } from '../../contract/facts.ts';
import type { Offer, Provider } from '../../contract/provider.ts';
import type { Sets } from '../../contract/store.ts';

/** What a sealed text turned out to be. */
interface Opened {
  /** The provider instance, or its group, whose vendor can read it. */
  readonly deployment: string;
  readonly data: string;
}

/**
 * Seals what a vendor encrypted, so that it comes back only from the account that it was given to and goes only to the deployment
 * that can read it: `tg1.<deployment>.<tag>.<data>`. The key is the gateway's own, shared by all nodes of its store.
 */
export interface Seals {
  /** Reads the keys once; everything else needs it. */
  ready(): Promise<void>;
  seal(account: string, deployment: string, data: string): string;
  /** Undefined for what this gateway did not seal for this account. */
  open(account: string, sealed: string): Opened | undefined;
  /** A text that stands for `text` in this account only; always the same. */
  scope(account: string, text: string): string;
}

const SET = 'core.seal-keys';
const MAX_KEYS = 64;
const PREFIX = 'tg1';

/**
 * The keys are members of one set: nodes that start at the same time may each add one, so the first one seals and any of them opens.
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
      // For chat, which does not wait for it: it seldom seals anything, so it goes on where the store is down.
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

/** What can read what a provider's vendor encrypted: the instance, or the group that shares the vendor's account. */
export function deploymentOf(offer: Offer | Provider | undefined, instance: string): string {
  return (offer && 'affinity' in offer ? offer.affinity : undefined) ?? instance;
}

/** Opens what this gateway sealed for an account, where a provider instance can read it. */
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

/** Whether a text has the form of a seal; it may be a forged one. */
function isSealed(text: string | undefined): text is string {
  return text?.startsWith(`${PREFIX}.`) === true;
}

/** The deployments that a request holds sealed reasoning of, the newest first. */
export function sealedDeployments(seals: Seals, account: string, request: ChatRequest): readonly string[] {
  const found = factsOf(request).reasoning.flatMap((data) =>
    isSealed(data) ? (seals.open(account, data)?.deployment ?? []) : [],
  );
  return [...new Set(found.reverse())];
}

/**
 * A request as one deployment may read it: its own sealed reasoning opened, that of others left out. `leftOut` tells whether
 * something was.
 */
export function openReasoning(
  request: ChatRequest,
  open: (sealed: string) => string | undefined,
): { readonly request: ChatRequest; readonly leftOut: boolean } {
  if (!factsOf(request).reasoning.some(isSealed)) return { request, leftOut: false };
  let leftOut = false;
  const messages = request.messages.map((message) => {
    const { reasoning_details: details } = message;
    if (!details?.some(({ data }) => isSealed(data))) return message;
    const opened = details.flatMap((detail): readonly ReasoningDetail[] => {
      if (!isSealed(detail.data)) return [detail];
      const data = open(detail.data);
      // Of shown thinking what is sealed is its maker's signature.
      if (data !== undefined) return [{ ...detail, data, ...(detail.kind === 'text' && { signature: data }) }];
      leftOut = true;
      return [];
    });
    // The order names details by their index, which is no longer theirs once one is gone.
    const { order: _order, ...rest } = message;
    return { ...(opened.length === details.length ? message : rest), reasoning_details: opened };
  });
  return { request: { ...request, messages }, leftOut };
}
