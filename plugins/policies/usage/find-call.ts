import { setImmediate } from 'node:timers/promises';
import { type CallFilter, type CallRow, GatewayError, type Ledger } from '../../../contract/index.ts';

const MINUTE_MS = 60_000;

/** How long after its beginning a call is looked for, step by step: nearly all are settled within the first. */
const STEPS_MS: readonly number[] = Object.freeze([MINUTE_MS, 15 * MINUTE_MS, 120 * MINUTE_MS, 1440 * MINUTE_MS]);

/** Clocks of nodes that share a store may differ by this much. */
const SKEW_MS = 5000;

const PAGE = 1000;

/** How many records one look goes through at most. */
const MAX_PAGES = 200;

/** When a call with this id began: ids are ordered by time. Undefined for what is no id of a call. */
function timeOfId(id: string): number | undefined {
  const [, digits] = /^call_([0-9a-z]{10})[\w-]{12}$/.exec(id) ?? [];
  return digits === undefined ? undefined : Math.floor(Number.parseInt(digits, 36) / 1024);
}

/** The record of a call, of those that a filter lets through; throws `not_found` where there is none (any more). */
export async function findCall(ledger: Pick<Ledger, 'calls'>, id: string, filter: CallFilter = {}): Promise<CallRow> {
  const began = timeOfId(id);
  if (began === undefined)
    throw new GatewayError('not_found', 'Invalid call id. Use "call_" and 22 characters, as in the list of calls.', {
      param: 'id',
    });
  let pages = 0;
  let from = began - SKEW_MS;
  for (const step of STEPS_MS) {
    const to = began + step;
    let after: string | undefined;
    do {
      const found = await ledger.calls({ ...filter, from, to, limit: PAGE, ...(after !== undefined && { after }) });
      const call = found.calls.find((each) => each.id === id);
      if (call) return call;
      after = found.next;
      pages += 1;
      await setImmediate();
    } while (after !== undefined && pages < MAX_PAGES);
    from = to;
  }
  throw new GatewayError('not_found', 'Call not found. It is not settled yet, or its record has expired.', {
    param: 'id',
  });
}
