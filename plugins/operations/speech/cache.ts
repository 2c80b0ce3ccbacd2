import { createHash } from 'node:crypto';
import type Keyv from 'keyv';
import { parseDuration, parseSize } from '../../../contract/index.ts';
import { mendWav, type SpeechResponse } from '../../tts/kit/index.ts';
import type { CheckedSpeech } from './check.ts';

/** Slot of the cache. */
export interface CachedSound {
  readonly key: string;
  readonly contentType: string;
  readonly format: string;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  readonly base64: string;
}

/** Limits of the cache. */
export interface SpeechCacheOptions {
  /** Separate namespace. */
  readonly keyv: Keyv<CachedSound>;
  /** Maximum size in the store, in bytes. */
  readonly maxBytes: number;
  /** Maximum size of a cached sound, in bytes. */
  readonly maxSoundBytes: number;
  readonly ttlMs: number;
}

/** Section `speechCache` of the configuration: sizes as `256mb` or bytes, a duration as `7d`. */
export interface SpeechCacheConfig {
  readonly maxSize?: string | number;
  readonly maxSound?: string | number;
  readonly ttl?: string;
}

/** Options of the cache, for a plugin's `configSchema`. */
export const SPEECH_CACHE = Object.freeze({
  type: ['object', 'null'],
  additionalProperties: false,
  description: 'Stores audio and returns it again to the same account free of charge. Default: off.',
  properties: {
    maxSize: {
      type: ['string', 'integer'],
      format: 'size',
      default: '256mb',
      description: 'Maximum total size in the store, such as `256mb`, or bytes.',
    },
    maxSound: {
      type: ['string', 'integer'],
      format: 'size',
      default: '1mb',
      description: 'Maximum size of one audio: 1mb is two minutes of mp3 or twenty seconds of WAV.',
    },
    ttl: { type: 'string', format: 'duration', default: '7d', description: 'Storage time of an audio.' },
  },
} as const);

/** Creates the cache from its configuration. */
export function cacheOf(config: SpeechCacheConfig, keyv: Keyv<CachedSound>): SpeechCache {
  const { maxSize, maxSound, ttl } = SPEECH_CACHE.properties;
  return createSpeechCache({
    keyv,
    maxBytes: parseSize(config.maxSize ?? maxSize.default),
    maxSoundBytes: parseSize(config.maxSound ?? maxSound.default),
    ttlMs: parseDuration(config.ttl ?? ttl.default),
  });
}

export interface SpeechCache {
  /** Cached sound of a key; undefined also if the store is unavailable, which must not fail a call. */
  find(key: string): Promise<SpeechResponse | undefined>;
  /** Returns the same response, whose sound is cached once it is complete. An interrupted one is not. */
  keep<A extends SpeechResponse>(key: string, spoken: A): A;
}

/**
 * Hash of all properties of a sound. It includes the account, so that response times do not reveal other accounts'
 * requests; the text is only in the hash.
 */
export function speechCacheKey(account: string, vendor: string, { input, model, pieces }: CheckedSpeech): string {
  const { voice, format, speed, language = '', options = {} } = input;
  const sorted = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  const facts = [account, vendor, model, voice, format, speed, language, sorted, pieces];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

/**
 * Creates a cache of fixed size: a number of slots for one sound each, selected by the key's hash. A new sound
 * replaces the old one. There is no index, and so no update that two nodes could lose.
 */
export function createSpeechCache({ keyv, maxBytes, maxSoundBytes, ttlMs }: SpeechCacheOptions): SpeechCache {
  // Base64 takes four bytes for three, and a slot about a hundred more.
  const places = Math.max(1, Math.floor(maxBytes / (Math.ceil(maxSoundBytes / 3) * 4 + 512)));
  const placeOf = (key: string) => `place-${Number.parseInt(key.slice(0, 8), 16) % places}`;
  return {
    async find(key) {
      const stored = await keyv.get(placeOf(key)).catch(() => undefined);
      if (stored?.key !== key) return undefined;
      const { contentType, format, model, voice, characters, base64 } = stored;
      return { contentType, format, model, voice, characters, audio: once(Buffer.from(base64, 'base64')) };
    },
    keep(key, spoken) {
      const { contentType, format, model, voice, characters } = spoken;
      const store = async (sound: Buffer): Promise<void> => {
        // A sound streamed with an unknown size in its header now gets its true size.
        const base64 = (format === 'wav' ? mendWav(sound) : sound).toString('base64');
        const stored: CachedSound = { key, contentType, format, model, voice, characters, base64 };
        // The caller has the sound; if the store is unavailable, the next request calls the vendor.
        await keyv.set(placeOf(key), stored, ttlMs).catch(() => {});
      };
      return { ...spoken, audio: keeping(spoken.audio, maxSoundBytes, store) };
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
