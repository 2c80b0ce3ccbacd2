import type {
  CodecCall,
  HttpRequest,
  ModelInfo,
  Offer,
  ResponseHeaders,
  StreamProgress,
} from '../../../contract/index.ts';

/** `pcm` is 16-bit little-endian mono at 24 kHz without a header, `opus` comes in an Ogg container. */
export type SpeechFormat = 'mp3' | 'wav' | 'opus' | 'pcm' | 'aac' | 'flac';

/** What `POST /{vendor}/tts` takes. */
export interface SpeechRequest {
  readonly text: string;
  readonly voice?: string;
  /** 0.25 to 4.0; 1 is the vendor's normal speed. */
  readonly speed?: number;
  readonly format?: SpeechFormat;
  readonly model?: string;
  /** BCP 47, such as `en` or `de-AT`. */
  readonly language?: string;
  /** False waits for all of the sound: exact sizes in a WAV header, a `content-length`, and every error an error response. */
  readonly stream?: boolean;
  /** Splits a text over the vendor's limit at sentence borders and joins the sound. */
  readonly split?: boolean;
  /** Fields of the vendor's own, from the list its plugin allows. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** The response of the operation `speech`. */
export interface SpeechResponse {
  readonly contentType: string;
  readonly format: string;
  readonly model: string;
  readonly voice: string;
  readonly characters: number;
  /** Read once. Breaking off ends the vendor's work. */
  readonly audio: AsyncIterable<Uint8Array>;
}

/** Decodes a vendor's audio response into plain audio bytes. Made per attempt. */
export interface AudioDecoder {
  push(bytes: Uint8Array): readonly Uint8Array[];
  /** Throws `StreamFailure` when the response broke off or was empty. */
  end(): readonly Uint8Array[];
  /** Tokens that the vendor reported; known after `end`. */
  usage?(): SpeechTokens | undefined;
  /** Progress of sound that comes in events, as of a `StreamDecoder`; undefined when the last bytes completed no event. */
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

/** A request that was checked against its vendor: what the caller left out is filled in. The model is the call's. */
export type ResolvedSpeech = Omit<SpeechRequest, 'voice' | 'format' | 'speed'> & {
  readonly voice: string;
  readonly format: SpeechFormat;
  readonly speed: number;
};

/** Translates speech; every method is pure and called anew for every attempt and every piece of a split text. */
export interface SpeechCodec {
  /** May throw `GatewayError('invalid_request', …, { param })` for what the vendor cannot do. */
  request(input: ResolvedSpeech, call: CodecCall): HttpRequest;
  /** Chosen after the response's headers are known. */
  decode(input: ResolvedSpeech, headers: ResponseHeaders, call: CodecCall): AudioDecoder;
}

/** A vendor of speech, as a plugin of kind `tts` registers it with `api.offer('speech', …)`; it becomes `POST /{instance}/tts`. */
export interface SpeechProvider extends Offer {
  /** The first is used when the request names none. */
  readonly models: readonly ModelInfo[];
  /** The first is used when the request names none. */
  readonly formats: readonly SpeechFormat[];
  readonly defaultVoice: string;
  /** Known voices, or what finds them on this machine; absent when only the vendor knows them, or it takes any id. */
  readonly voices?: readonly Voice[] | (() => Promise<readonly Voice[]>);
  /** Whether an id outside the known voices is fine too; absent refuses it. */
  acceptsVoice?(id: string): boolean;
  /** The voice for a language when the request names none; `defaultVoice` when it is absent or has none. */
  voiceFor?(language: string): string | undefined;
  /** Asks the vendor for its voices, with the operator's key ({@link createVoiceLister} makes it). Its result is kept for five minutes. */
  readonly listVoices?: () => Promise<readonly Voice[]>;
  /** The longest text in characters. */
  readonly maxCharacters: number;
  /** The vendor's own range; a speed outside it is refused. */
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
