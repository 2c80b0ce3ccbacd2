import type { SpeechFormat } from '../types.ts';

interface FormatRow {
  readonly contentType: string;
  /** True if clips can be concatenated, so that a long text may be spoken in pieces. */
  readonly joinable: boolean;
}

/** Every audio format of the gateway. Opus is Ogg Opus, AAC is ADTS. */
export const AUDIO_FORMATS: Readonly<Record<SpeechFormat, FormatRow>> = Object.freeze({
  mp3: { contentType: 'audio/mpeg', joinable: true },
  wav: { contentType: 'audio/wav', joinable: true },
  opus: { contentType: 'audio/ogg', joinable: false },
  pcm: { contentType: 'audio/pcm', joinable: true },
  aac: { contentType: 'audio/aac', joinable: true },
  flac: { contentType: 'audio/flac', joinable: false },
});

/** Rate of `pcm` everywhere: 16-bit little-endian, one channel, 24,000 samples a second, no header. */
export const PCM_RATE = 24_000;
