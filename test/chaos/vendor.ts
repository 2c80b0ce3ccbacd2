import { factsOf } from '../../contract/facts.ts';
import type { ChatRequest } from '../../contract/index.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import type { Mood, Spell } from './plan.ts';
import { between, pick, type Random } from './random.ts';

/** Work of a vendor for one request, to compare with the ledger. */
export interface Served {
  /** Id of the HTTP request that caused it. */
  readonly id: string;
  /** `refused`: no work was done. `silent`: nothing complete was sent. `broken`: the text was interrupted. */
  kind: 'served' | 'refused' | 'silent' | 'broken';
  readonly mood: Mood;
  /** Estimated tokens of the prompt. */
  readonly promptTokens: number;
  /** Bytes of text that were sent. */
  textBytes: number;
  /** Reported usage; undefined if none or not credible. */
  usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined;
}

export interface ChaosVendor {
  readonly port: number;
  readonly served: readonly Served[];
  readonly openConnections: number;
  /** Changes the mode; a dead vendor refuses new connections and cuts open ones. */
  become(mood: Mood): Promise<void>;
  close(): Promise<void>;
}

/** Delay of a live vendor before its text, and between words. */
const THINKS_MS = [20, 250] as const;
const BETWEEN_MS = [5, 80] as const;
const STATUSES = [500, 502, 503, 529] as const;
const LONGEST_RETRY_AFTER_S = 3;

/** Id that a client wrote into its prompt. */
export const CALL_ID = /c-\d{7}-\d/;

interface Context {
  readonly wire: Wire;
  readonly note: Served;
  readonly random: Random;
  readonly spell: Spell;
  readonly nowMs: number;
  readonly isStream: boolean;
}

/** Starts a vendor on its own port that follows the plan. */
export async function startChaosVendor(spell: () => Spell, clock: () => number, random: Random): Promise<ChaosVendor> {
  const served: Served[] = [];
  const script = async (wire: Wire): Promise<void> => {
    const request = wire.request.json() as ChatRequest;
    const id = CALL_ID.exec(wire.request.body.toString())?.[0] ?? 'unknown';
    const promptTokens = factsOf(request).inputTokens;
    const now = spell();
    const note: Served = { id, kind: 'silent', mood: now.mood, promptTokens, textBytes: 0, usage: undefined };
    served.push(note);
    const context = { wire, note, random, spell: now, nowMs: clock(), isStream: request.stream === true };
    await DEEDS[now.mood](context);
  };
  let upstream: ScriptedUpstream | undefined = await startScriptedUpstream(script);
  const { port } = upstream;
  return {
    port,
    served,
    get openConnections() {
      return upstream?.connections.open ?? 0;
    },
    async become(mood) {
      if (mood === 'dead') {
        await upstream?.close();
        upstream = undefined;
      } else upstream ??= await startScriptedUpstream(script, { port });
    },
    close: async () => upstream?.close(),
  };
}

const DEEDS: Readonly<Record<Mood, (context: Context) => unknown>> = Object.freeze({
  live: (context) => serve(context),
  // Requests that arrived before its listener was closed.
  dead: ({ wire }) => wire.reset(),
  hangs: ({ wire }) => wire.hang(),
  limits: limit,
  fails: fail,
  lies: (context) => pick(context.random, LIES)(context),
  cuts: (context) => (context.isStream ? breakOff(context) : serve(context)),
});

function refuse({ wire, note }: Context, status: number, headers: Record<string, string> = {}): Promise<void> {
  note.kind = 'refused';
  return wire.send(respondWith(status, { error: { message: 'not now', type: 'error' } }, headers));
}

function limit(context: Context): Promise<void> {
  const leftS = Math.floor((context.spell.toMs - context.nowMs) / 1000);
  return refuse(context, 429, { 'retry-after': String(Math.min(Math.max(leftS, 1), LONGEST_RETRY_AFTER_S)) });
}

async function fail(context: Context): Promise<void> {
  await context.wire.pause(between(context.random, 1, 60));
  await refuse(context, pick(context.random, STATUSES));
}

/** Responses with status 200 that are invalid, or valid with nonsense in addition. */
const LIES: readonly ((context: Context) => Promise<void>)[] = [
  (context) => serve(context, 'absurd'),
  (context) => serve(context, 'none'),
  async ({ wire }) => wire.send(respondWith(200, '{"id":', { 'content-type': 'application/json' })),
  async ({ wire, note }) => {
    note.kind = 'refused';
    await wire.send(respondWith(200, '<html>nginx</html>', { 'content-type': 'text/html' }));
  },
  async ({ wire, note, isStream }) => {
    note.kind = 'refused';
    const error = { error: { message: 'overloaded', type: 'server_error' } };
    await wire.send(respondWith(200, error));
    if (isStream) wire.end();
  },
  cut,
];

/** Ends a response too early: JSON in its middle, a stream mostly before its first delta. */
async function cut({ wire, note, random, isStream }: Context): Promise<void> {
  if (!isStream) {
    await wire.send(head(200, { 'content-type': 'application/json', 'content-length': '1000' }));
    await wire.send('{"id":"c"');
    wire.reset();
    return;
  }
  await wire.send(SSE_HEAD);
  if (random() < 0.2) {
    await say({ wire, note }, 'never ended ');
    await wire.pause(20);
  }
  if (random() < 0.5) wire.reset();
  else await wire.send(LAST_CHUNK);
}

/** Starts a valid stream, and ends it after some words. */
async function breakOff({ wire, note, random }: Context): Promise<void> {
  await wire.pause(between(random, ...THINKS_MS));
  await wire.send(SSE_HEAD);
  for (const word of ['never ', 'ended ']) {
    await say({ wire, note }, word);
    await wire.pause(between(random, ...BETWEEN_MS));
  }
  if (random() < 0.5) wire.reset();
  else await wire.send(LAST_CHUNK);
}

async function say({ wire, note }: Pick<Context, 'wire' | 'note'>, text: string): Promise<void> {
  if (wire.isGone) return;
  note.textBytes += Buffer.byteLength(text);
  note.kind = 'broken';
  await wire.send(chunk(`data: ${delta(text)}\n\n`));
}

/** Sends a valid response. Its text contains the call's id, which exposes a response to the wrong caller. */
async function serve({ wire, note, random, isStream }: Context, counts: 'real' | 'none' | 'absurd' = 'real') {
  const words = ['Here ', 'is ', 'what ', note.id, ' asked.'];
  const reported = { prompt_tokens: Math.floor(between(random, 50, 150)), completion_tokens: 10, total_tokens: 0 };
  reported.total_tokens = reported.prompt_tokens + reported.completion_tokens;
  const absurd = { prompt_tokens: -5, completion_tokens: 1e308, total_tokens: 'many' };
  const usage =
    counts === 'real' ? { usage: reported } : counts === 'absurd' ? { usage: absurd } : { usage: undefined };
  await wire.pause(between(random, ...THINKS_MS));
  if (wire.isGone) return;
  const end = (): void => {
    note.kind = 'served';
    if (counts === 'real') note.usage = reported;
  };
  if (!isStream) {
    note.textBytes = Buffer.byteLength(words.join(''));
    end();
    await wire.send(respondWith(200, completion(words.join(''), usage)));
    return;
  }
  await wire.send(SSE_HEAD);
  for (const word of words) {
    await say({ wire, note }, word);
    await wire.pause(between(random, ...BETWEEN_MS));
  }
  if (wire.isGone) return;
  end();
  await wire.send(chunk(`data: ${delta('', 'stop', usage)}\n\ndata: [DONE]\n\n`));
  await wire.send(LAST_CHUNK);
}
