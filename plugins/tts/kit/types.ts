import type {
  CodecCall,
  HttpRequest,
  ModelInfo,
  Offer,
  ResponseHeaders,
  StreamProgress,
} from '../../../contract/index.ts';

/** `pcm` is 16-bit little-endian mono at 24 kHz without a header; `opus` is in an Ogg container. */
export type SpeechFormat = 'mp3' | 'wav' | 'opus' | 'pcm' | 'aac' | 'flac';

/** Body of `POST /{vendor}/tts`. */
export interface SpeechRequest {
  readonly text: string;
  readonly voice?: string;
  /** 0.25 to 4.0; 1 is the vendor's normal speed. */
  readonly speed?: number;
  readonly format?: SpeechFormat;
  readonly model?: string;
  /** BCP 47 tag, such as `en` or `de-AT`. */
  readonly language?: string;
  /**
   * False waits for the complete sound: exact sizes in a WAV header, a `content-length`, and an error response for
   * every error.
   */
  readonly stream?: boolean;
  /** Splits a text over the vendor's limit at sentence borders and joins the sound. */
  readonly split?: boolean;
  /** Vendor fields from the list that its plugin allows. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Response of the operation `speech`. */
export interface SpeechResponse {
  readonly contentType: string;
  readonly format: string;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  /** Can be read once. Leaving early ends the vendor's work. */
  readonly audio: AsyncIterable<Uint8Array>;
}

/** Decodes a vendor's audio response into plain audio bytes. Created per attempt. */
export interface AudioDecoder {
  push(bytes: Uint8Array): readonly Uint8Array[];
  /** Throws `StreamFailure` if the response was interrupted or empty. */
  end(): readonly Uint8Array[];
  /** Tokens that the vendor reported; known after `end`. */
  usage?(): SpeechTokens | undefined;
  /** Progress of sound in events, as of a `StreamDecoder`; undefined if the last bytes completed no event. */
  progress?(): StreamProgress | undefined;
}

export interface SpeechTokens {
  readonly input: number;
  readonly output: number;
}

export interface Voice {
  readonly id: string;
  readonly name: string;
  readonly language?: string;
}

/** Request validated for its vendor, with defaults for missing fields. The model is the call's. */
export type ResolvedSpeech = Omit<SpeechRequest, 'voice' | 'format' | 'speed'> & {
  readonly voice: string;
  readonly format: SpeechFormat;
  readonly speed: number;
};

/** Translates speech. Every method is pure and called again for every attempt and every piece of a split text. */
export interface SpeechCodec {
  /** May throw `GatewayError('invalid_request', …, { param })` for unsupported values. */
  request(input: ResolvedSpeech, call: CodecCall): HttpRequest;
  /** Called once the response headers are known. */
  decode(input: ResolvedSpeech, headers: ResponseHeaders, call: CodecCall): AudioDecoder;
}

/**
 * Vendor of speech; a plugin of kind `tts` registers it with `api.offer('speech', …)`. It becomes `POST
 * /{instance}/tts`.
 */
export interface SpeechProvider extends Offer {
  /** The first one is the default. */
  readonly models: readonly ModelInfo[];
  /** The first one is the default. */
  readonly formats: readonly SpeechFormat[];
  readonly defaultVoice: string;
  /**
   * Known voices, or a function that finds them on this machine. Absent if only the vendor knows them, or it accepts
   * any id.
   */
  readonly voices?: readonly Voice[] | (() => Promise<readonly Voice[]>);
  /** Returns true for a valid id outside the known voices; without it, such ids are rejected. */
  acceptsVoice?(id: string): boolean;
  /** Default voice for a language; `defaultVoice` without one. */
  voiceFor?(language: string): string | undefined;
  /**
   * Requests the voices from the vendor, with the operator's key; created by {@link createVoiceLister}. The result is
   * cached for five minutes.
   */
  readonly listVoices?: () => Promise<readonly Voice[]>;
  /** Maximum text length in characters. */
  readonly maxCharacters: number;
  /** Range of the vendor; a speed outside it is rejected. */
  readonly speed: { readonly min: number; readonly max: number };
  readonly codec: SpeechCodec;
}

declare module '../../../contract/call.ts' {
  interface Operations {
    readonly speech: {
      readonly request: SpeechRequest;
      readonly response: SpeechResponse;
      readonly offer: SpeechProvider;
    };
  }
}
