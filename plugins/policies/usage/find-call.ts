import { setImmediate } from 'node:timers/promises';
import { type CallFilter, type CallRow, GatewayError, type Ledger } from '../../../contract/index.ts';

const MINUTE_MS = 60_000;

/** Search ranges after the start of a call: nearly all calls are settled within the first one. */
const STEPS_MS: readonly number[] = Object.freeze([MINUTE_MS, 15 * MINUTE_MS, 120 * MINUTE_MS, 1440 * MINUTE_MS]);

/** Maximum clock difference of nodes that share a store. */
const SKEW_MS = 5000;

const PAGE = 1000;

/** Maximum pages of records per search. */
const MAX_PAGES = 200;

/** Start time of a call, from its id: ids are ordered by time. Undefined for an invalid id. */
function timeOfId(id: string): number | undefined {
  const [, digits] = /^call_([0-9a-z]{10})[\w-]{12}$/.exec(id) ?? [];
  return digits === undefined ? undefined : Math.floor(Number.parseInt(digits, 36) / 1024);
}

/** Finds the record of a call that matches a filter; throws `not_found` if it does not exist or was deleted. */
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
