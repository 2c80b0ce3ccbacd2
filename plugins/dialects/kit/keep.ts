import { createHash } from 'node:crypto';
import { type Principal, parseDuration } from '../../../contract/index.ts';

/** Storage of responses for requests that continue them: none, for an hour, or for `retention`. */
export type StoreMode = 'off' | 'short' | 'on';

const SHORT_MS = 3_600_000;

/** Valid ids of stored responses. */
export const KEPT_ID = /^[\w-]{1,128}$/;

/** Options `store` and `retention` of a dialect that stores its responses. `one` and `many` are its words for them. */
export function keepOptions(one: string, many: string) {
  return {
    store: {
      type: 'string',
      enum: ['off', 'short', 'on'],
      default: 'short',
      description: `Storage of ${many} for requests that continue them: \`off\`, \`short\` (one hour) or \`on\` (for \`retention\`). Their owners can read and delete them.`,
    },
    retention: {
      type: 'string',
      format: 'duration',
      default: '720h',
      description: `Storage time of ${one} with \`store: on\`.`,
    },
  } as const;
}

/** Storage time by these options, in milliseconds. */
export function storedForMs(mode: StoreMode, retention: string): number {
  return mode === 'on' ? parseDuration(retention) : SHORT_MS;
}

/** Storage key: separate for each account and user, so that no one finds another's responses. */
export function storageKey(kind: string, { account, userId }: Principal, id: string): string {
  return `${kind}.${shortHash(JSON.stringify([account, userId]))}.${id}`;
}

/** Hash of 22 characters, valid in ids. */
export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
