import type { Log } from '../../core/index.ts';

const nothing = (): void => undefined;

/** A log nobody reads. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silentLog };
