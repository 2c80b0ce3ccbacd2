import { failureToError } from '../calls/failures.ts';
import { GatewayError } from '../contract/errors.ts';
import type { HttpRequest } from '../contract/provider.ts';
import { parseJson } from '../contract/read-json.ts';
import type { SpeechProvider, Voice } from '../contract/speech-provider.ts';
import { localVoices } from './run-speech.ts';

/** How long a vendor's answer is good for: voices change seldom, and the operator's key pays for asking. */
const KEEP_MS = 300_000;
const LIST_TIMEOUT_MS = 20_000;
const LONGEST_LIST_BYTES = 4 * 1024 * 1024;

interface ListAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readAll(maxBytes?: number): Promise<Buffer>;
}

type Ask = (vendor: SpeechProvider, request: HttpRequest, signal: AbortSignal) => Promise<ListAnswer>;

/**
 * Lists a vendor's voices by instance name: asked of the vendor where it can be and the operator has a key, else those
 * that are known here. An answer is kept for five minutes, and callers at once share one question. Throws what upstream
 * throws, and an error by the vendor's own class.
 */
export function createVoiceList(vendors: ReadonlyMap<string, SpeechProvider>, ask: Ask, now: () => number = Date.now) {
  const kept = new Map<string, { readonly voices: Promise<readonly Voice[]>; readonly at: number }>();
  return async (instance: string): Promise<readonly Voice[]> => {
    const vendor = vendors.get(instance);
    if (!vendor) throw new GatewayError('unsupported_provider', 'There is no speech vendor of this name.');
    const { listVoices, credential } = vendor;
    const askable = typeof listVoices === 'object' && (!credential?.required || credential.value !== undefined);
    if (!askable) return (await localVoices(vendor)) ?? [];
    const known = kept.get(instance);
    if (known && now() - known.at < KEEP_MS) return await known.voices;
    const voices = askVendor(instance, vendor, listVoices, ask);
    kept.set(instance, { voices, at: now() });
    // A failure is not kept: the next caller asks again.
    voices.catch(() => kept.delete(instance));
    return await voices;
  };
}

async function askVendor(
  instance: string,
  vendor: SpeechProvider,
  { request, response }: Exclude<SpeechProvider['listVoices'], (() => unknown) | undefined>,
  ask: Ask,
): Promise<readonly Voice[]> {
  // Not the caller's signal: others wait for the same answer.
  const answer = await ask(vendor, request(), AbortSignal.timeout(LIST_TIMEOUT_MS));
  const text = (await answer.readAll(LONGEST_LIST_BYTES)).toString('utf8');
  if (answer.status >= 400)
    throw failureToError(vendor.error(answer.status, parseJson(text), answer.headers), instance);
  const body = parseJson(text);
  if (body === undefined) {
    throw new GatewayError(
      'provider_invalid_response',
      `${instance} answered with something that is no list of voices.`,
    );
  }
  return response(body);
}
