/** `pcm` is 16-bit little-endian mono at 24 kHz without a header, `opus` comes in an Ogg container. */
export type SpeechFormat = 'mp3' | 'wav' | 'opus' | 'pcm' | 'aac' | 'flac';

/** What `POST /{vendor}/tts` takes (contract section 6). */
export interface SpeechRequest {
  readonly text: string;
  readonly voice?: string;
  /** 0.25 to 4.0; 1 is the vendor's normal speed. */
  readonly speed?: number;
  readonly format?: SpeechFormat;
  readonly model?: string;
  /** BCP 47, such as `en` or `de-AT`. */
  readonly language?: string;
  /** False waits for the whole sound: exact sizes in a WAV header, a `content-length`, and every fault an error answer. */
  readonly stream?: boolean;
  /** Splits a text over the vendor's limit at sentence borders and joins the sound. */
  readonly split?: boolean;
  /** Fields of the vendor's own, from the list its plugin allows. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** The bounds of the cache, as `speechCache:` of the configuration sets them. */
export interface SpeechCacheBounds {
  /** What the store may hold for it, in bytes. */
  readonly maxBytes: number;
  /** The longest sound that is kept, in bytes. */
  readonly maxSoundBytes: number;
  readonly ttlMs: number;
}

export interface SpeechAnswer {
  readonly contentType: string;
  readonly format: string;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  readonly audio: AsyncIterable<Uint8Array>;
}
