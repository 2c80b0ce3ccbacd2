import { createHash } from 'node:crypto';
import { type Principal, parseDuration } from '../../../contract/index.ts';

/** Whether what was answered is kept for requests that continue it: not at all, for an hour, or for `retention`. */
export type StoreMode = 'off' | 'short' | 'on';

const SHORT_MS = 3_600_000;

/** The ids that can be kept. */
export const KEPT_ID = /^[\w-]{1,128}$/;

/** The options `store` and `retention` of a dialect that keeps what it answers. `one` and `many` are its words for that. */
export function keepOptions(one: string, many: string) {
  return {
    store: {
      type: 'string',
      enum: ['off', 'short', 'on'],
      default: 'short',
      description: `Whether ${many} are kept for requests that continue them: not at all, for an hour, or for \`retention\`. Their owners read and delete them.`,
    },
    retention: {
      type: 'string',
      format: 'duration',
      default: '720h',
      description: `How long \`store: on\` keeps ${one}.`,
    },
  } as const;
}

/** How long those options keep it, in milliseconds. */
export function keptForMs(mode: StoreMode, retention: string): number {
  return mode === 'on' ? parseDuration(retention) : SHORT_MS;
}

/** The place of what is kept: another one for each account and user, so that nobody finds what is somebody else's. */
export function keptPlace(kind: string, { account, userId }: Principal, id: string): string {
  return `${kind}.${shortHash(JSON.stringify([account, userId]))}.${id}`;
}

/** 22 characters of a hash, fit for ids. */
export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
