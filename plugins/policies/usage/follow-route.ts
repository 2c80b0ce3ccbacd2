import {
  createSseWriter,
  GatewayError,
  type PluginApi,
  type RouteContext,
  toGatewayError,
} from '../../../core/index.ts';
import { tellCall } from './call-shapes.ts';
import { readCallsQuery } from './calls-query.ts';
import { eventId, type Followed, followCalls } from './follow-calls.ts';
import { type Words, wrongWord } from './words.ts';

/** After this a reader is asked to come back: a reader of many days would keep a replaced configuration alive. */
const LONGEST_MS = 600_000;

/** How many may follow one process at once: each asks the store every second. */
const MAX_FOLLOWERS = 20;

/** Who follows this process now. */
export interface Followers {
  count: number;
}

/** Sends each call as it is settled, as an event `call`, until the reader leaves. */
export async function respondFollowing(
  ctx: RouteContext,
  { ledger }: Pick<PluginApi, 'ledger'>,
  words: Words,
  followers: Followers,
): Promise<void> {
  const wrong = ['from', 'to', 'last', 'period', 'tz', 'after', 'request'].find((word) => words[word] !== undefined);
  if (wrong !== undefined) throw wrongWord(wrong, 'has no meaning with follow=true, which tells calls from now on.');
  const { filter, limit } = readCallsQuery(words, Date.now());
  const recent = words['limit'] === undefined ? 0 : limit;
  if (followers.count >= MAX_FOLLOWERS)
    throw new GatewayError('overloaded', `${MAX_FOLLOWERS} readers follow the calls already. End one of them.`, {
      retryAfterMs: 10_000,
    });
  followers.count += 1;
  try {
    await follow(ctx, ledger, { filter, recent, lastId: ctx.get('last-event-id') || undefined });
  } finally {
    followers.count -= 1;
  }
}

async function follow(
  ctx: RouteContext,
  ledger: PluginApi['ledger'],
  options: Pick<Parameters<typeof followCalls>[1], 'filter' | 'recent' | 'lastId'>,
): Promise<void> {
  const signal = AbortSignal.any([ctx.state.signal, AbortSignal.timeout(LONGEST_MS)]);
  const looks = followCalls(ledger, { ...options, signal });
  // Until the first look an error has a status of its own.
  const first = await looks.next();
  ctx.status = 200;
  ctx.respond = false;
  const writer = createSseWriter(ctx.res, { signal: ctx.state.signal });
  writer.start();
  try {
    if (!first.done) writer.write(framesOf(first.value));
    for await (const look of looks) {
      writer.write(framesOf(look));
      await writer.drained();
      if (writer.closed) return;
    }
    writer.end();
  } catch (error) {
    writer.fail(toGatewayError(error).toBody());
  }
}

/** `: skipped` and an event tell a reader that came too late for some calls that the list has them. */
function framesOf({ calls, isCut }: Followed): string {
  const frames = calls.map((call) => `id: ${eventId(call)}\nevent: call\ndata: ${JSON.stringify(tellCall(call))}\n\n`);
  return (isCut ? 'event: skipped\ndata: {}\n\n' : '') + frames.join('');
}
