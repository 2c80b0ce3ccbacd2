import type { SpeechProvider, Voice } from '../../tts/kit/index.ts';
import { localVoices } from './check.ts';
import { findVendor } from './speak.ts';

/** How long a vendor's list is good for: voices change seldom, and the operator's key pays for asking. */
const KEEP_MS = 300_000;

/**
 * Lists a vendor's voices by instance name: asked of the vendor where it can be and the operator has a key, else those
 * that are known here. A list is kept for five minutes, and callers at once share one question. Throws what the vendor's
 * `listVoices` throws.
 */
export function createVoiceList(
  offers: () => ReadonlyMap<string, SpeechProvider>,
  now: () => number = Date.now,
): (instance: string) => Promise<readonly Voice[]> {
  const kept = new Map<string, { readonly voices: Promise<readonly Voice[]>; readonly at: number }>();
  return async (instance) => {
    const vendor = findVendor(offers(), instance);
    const { listVoices, credential } = vendor;
    const hasKey = !credential?.required || credential.value !== undefined;
    if (!listVoices || !hasKey) return (await localVoices(vendor)) ?? [];
    const known = kept.get(instance);
    if (known && now() - known.at < KEEP_MS) return await known.voices;
    const voices = listVoices();
    kept.set(instance, { voices, at: now() });
    // A failure is not kept: the next caller asks again.
    voices.catch(() => kept.delete(instance));
    return await voices;
  };
}
