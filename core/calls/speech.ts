import type { Target } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SpeechAnswer } from '../contract/plugin.ts';
import type { SpeechRequest } from '../contract/speech.ts';
import type { SpeechProvider } from '../contract/speech-provider.ts';
import { speechCacheKey } from '../speech/cache.ts';
import type { CheckedSpeech } from '../speech/check.ts';
import { costOfSpeech, speechPrice } from '../speech/price.ts';
import { resolveSpeech, runSpeech, type SpeechRun, type SpeechUsage } from '../speech/run-speech.ts';
import { countCharacters } from '../speech/split-text.ts';
import { exchange, failedAttempt, noteRefusal } from './attempt.ts';
import type { CallInit, LiveCall } from './live-call.ts';
import { endWithError, finishBeside, type PipelineDeps, runCall, tryTargets } from './run.ts';
import { assertAllowed } from './targets.ts';

export interface SpokenAnswer extends SpeechAnswer {
  readonly headers: Readonly<Record<string, string>>;
}

/** Speech by one vendor; `requested` is the alias it came by. Resolves when the first sound is there; the call ends with the sound, or when its reader leaves. */
export async function speak(
  deps: PipelineDeps,
  vendorName: string,
  request: SpeechRequest,
  init: CallInit,
  requested?: string,
): Promise<SpokenAnswer> {
  const vendor = deps.speech.get(vendorName);
  if (!vendor)
    throw new GatewayError(
      'unsupported_provider',
      `There is no speech vendor "${vendorName}". Configured are: ${[...deps.speech.keys()].join(', ') || 'none'}.`,
    );
  const checked = await resolveSpeech(vendor, request);
  const target: Target = { provider: vendorName, model: checked.model };
  const stream = request.stream !== false;
  const ask = { operation: 'speech', request, stream, targets: [target], ...(requested && { requested }) } as const;
  return runCall(deps, ask, init, async (call) => {
    const speech = call.request === request ? checked : await resolveSpeech(vendor, call.request);
    if (speech.model !== checked.model) {
      // A hook chose another model: the caller's allow-list holds for that one too.
      call.targets = [{ provider: vendorName, model: speech.model }];
      assertAllowed({ find: () => undefined }, call.principal, call.targets);
    }
    const cache = deps.speechCache;
    const key = cache && speechCacheKey(call.principal.account, vendorName, speech);
    const kept = key && (await cache.find(key));
    if (kept) return { ...kept, audio: unmetered(deps, call, kept.audio), headers: { 'x-tollgate-cache': 'hit' } };
    const run = await tryTargets(call, () => start(deps, call, target, vendor, speech));
    const answer = {
      ...run,
      audio: metered(deps, call, target, vendor, speech, run),
      headers: { 'x-tollgate-attempts': String(call.measures.attempts), ...(key && { 'x-tollgate-cache': 'miss' }) },
    };
    return key ? cache.keep(key, answer) : answer;
  });
}

/** A sound that was kept: nothing was sent, so nothing is owed. */
async function* unmetered(
  deps: PipelineDeps,
  call: LiveCall,
  audio: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, undefined> {
  let ended = false;
  try {
    yield* audio;
    ended = true;
  } finally {
    finishBeside(deps, call, ended ? 'ok' : 'aborted');
  }
  return undefined;
}

async function start(
  deps: PipelineDeps,
  call: LiveCall,
  target: Target,
  vendor: SpeechProvider,
  speech: CheckedSpeech,
): Promise<SpeechRun> {
  const run = runSpeech(vendor, speech, {
    send: async (request) => {
      const answer = await exchange(
        { upstream: deps.upstream, hooks: deps.hooks.speech },
        call,
        target,
        vendor,
        request,
      );
      call.measures.firstByteAt ??= call.elapsedMs;
      return answer;
    },
    signal: call.signal,
    id: call.id,
    created: Math.floor(call.startedAt / 1000),
  });
  try {
    return await run;
  } catch (error) {
    noteRefusal(call, error);
    // Sent, and no sound came: the first piece of the text is what the vendor has had.
    const characters = countCharacters(speech.pieces[0] ?? '');
    if (call.measures.unanswered.length > 0) meter(call, vendor, speech, { characters });
    throw error;
  }
}

/** The sound as it comes; at its end, however it ends, the call is metered and finished. */
async function* metered(
  deps: PipelineDeps,
  call: LiveCall,
  target: Target,
  vendor: SpeechProvider,
  speech: CheckedSpeech,
  run: SpeechRun,
): AsyncGenerator<Uint8Array, undefined> {
  let ended = false;
  try {
    yield* run.audio;
    ended = true;
  } catch (thrown) {
    meter(call, vendor, speech, run.usage());
    throw await endWithError(deps, call, call.signal.aborted ? thrown : failedAttempt(thrown, target).error);
  } finally {
    meter(call, vendor, speech, run.usage());
    finishBeside(deps, call, ended ? 'ok' : 'aborted');
  }
  return undefined;
}

function meter(call: LiveCall, vendor: SpeechProvider, speech: CheckedSpeech, usage: SpeechUsage): void {
  const cost = costOfSpeech(usage, speechPrice(vendor, speech.model, speech.info));
  call.measures.characters = usage.characters;
  call.measures.cost = cost?.amount;
  call.measures.estimated = cost?.estimated ?? false;
}
