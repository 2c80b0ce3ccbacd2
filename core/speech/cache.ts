import { createHash } from 'node:crypto';
import type Keyv from 'keyv';
import { mendWav } from '../audio/wav.ts';
import type { SpeechAnswer } from '../contract/plugin.ts';
import type { SpeechCacheBounds } from '../contract/speech.ts';
import type { CheckedSpeech } from './check.ts';

/** One place of the cache. */
export interface CachedSound {
  readonly key: string;
  readonly contentType: string;
  readonly format: string;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  readonly base64: string;
}

export interface SpeechCacheOptions extends SpeechCacheBounds {
  /** A namespace of its own. */
  readonly keyv: Keyv<CachedSound>;
}

export interface SpeechCache {
  /** The sound kept under a key; undefined also when the store does not answer, which is no reason to fail a call. */
  find(key: string): Promise<SpeechAnswer | undefined>;
  /** The same answer, kept once its sound has come to a good end. A cut or abandoned one is not. */
  keep<A extends SpeechAnswer>(key: string, answer: A): A;
}

/**
 * What makes two requests the same sound. The account is part of it, so that nobody hears from the answer's speed what
 * others have asked for; the text is only in the hash.
 */
export function speechCacheKey(account: string, vendor: string, { input, model, pieces }: CheckedSpeech): string {
  const { voice, format, speed, language = '', options = {} } = input;
  const sorted = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  const facts = [account, vendor, model, voice, format, speed, language, sorted, pieces];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

/**
 * A cache that cannot grow: a fixed number of places, each for one sound of bounded size, found by the key's hash; a
 * new sound takes the place of the old. It needs no index, and so no update that two nodes could lose.
 */
export function createSpeechCache({ keyv, maxBytes, maxSoundBytes, ttlMs }: SpeechCacheOptions): SpeechCache {
  // Base64 takes four bytes for three, and a place some hundred more.
  const places = Math.max(1, Math.floor(maxBytes / (Math.ceil(maxSoundBytes / 3) * 4 + 512)));
  const placeOf = (key: string) => `place-${Number.parseInt(key.slice(0, 8), 16) % places}`;
  return {
    async find(key) {
      const kept = await keyv.get(placeOf(key)).catch(() => undefined);
      if (kept?.key !== key) return undefined;
      const { contentType, format, model, voice, characters, base64 } = kept;
      return { contentType, format, model, voice, characters, audio: once(Buffer.from(base64, 'base64')) };
    },
    keep(key, answer) {
      const { contentType, format, model, voice, characters } = answer;
      const store = async (sound: Buffer): Promise<void> => {
        // What was streamed under a header of unknown size can tell its size now.
        const base64 = (format === 'wav' ? mendWav(sound) : sound).toString('base64');
        const kept: CachedSound = { key, contentType, format, model, voice, characters, base64 };
        // The caller has the sound; a store that is away costs the next one a call to the vendor.
        await keyv.set(placeOf(key), kept, ttlMs).catch(() => {});
      };
      return { ...answer, audio: keeping(answer.audio, maxSoundBytes, store) };
    },
  };
}

async function* once(sound: Buffer): AsyncGenerator<Uint8Array> {
  yield sound;
}

async function* keeping(
  audio: AsyncIterable<Uint8Array>,
  maxBytes: number,
  store: (sound: Buffer) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] | undefined = [];
  let length = 0;
  for await (const bytes of audio) {
    length += bytes.length;
    if (length > maxBytes) pieces = undefined;
    pieces?.push(bytes);
    yield bytes;
  }
  if (pieces) await store(Buffer.concat(pieces));
}
