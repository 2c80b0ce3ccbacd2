import type { CodecCall, Endpoint, HttpRequest, ModelInfo, Price, ResponseHeaders } from './provider.ts';
import type { SpeechFormat, SpeechRequest } from './speech.ts';

/** Decodes a vendor's audio answer into plain audio bytes. Made per attempt. */
export interface AudioDecoder {
  push(bytes: Uint8Array): readonly Uint8Array[];
  /** Throws {@link StreamFailure} when the answer broke off or was empty. */
  end(): readonly Uint8Array[];
  /** Tokens the vendor told it has used; known after `end`. */
  usage?(): SpeechTokens | undefined;
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
  /** Chosen after the answer's headers are known. */
  decode(input: ResolvedSpeech, headers: ResponseHeaders, call: CodecCall): AudioDecoder;
}

/** A text-to-speech vendor; becomes `POST /{instance}/tts`. */
export interface SpeechProvider extends Endpoint {
  readonly specVersion: 1;
  readonly vendor: string;
  /** The first is used when the request names none. */
  readonly models: readonly ModelInfo[];
  /** Added to the models above. */
  readonly addModels?: readonly ModelInfo[];
  /** True accepts every model name (`models: ["*"]`). */
  readonly anyModel?: boolean;
  /** Operator's prices by model prefix or `*`; they win over the models' own. */
  readonly prices?: Readonly<Record<string, Partial<Price>>>;
  /** The first is used when the request names none. */
  readonly formats: readonly SpeechFormat[];
  readonly defaultVoice: string;
  /** Known voices; absent when the vendor lists them only over HTTP or takes any id. */
  readonly voices?: readonly Voice[];
  /** Whether an id outside the known voices is fine too; absent refuses it. */
  acceptsVoice?(id: string): boolean;
  /** The voice for a language when the request names none; `defaultVoice` when it is absent or has none. */
  voiceFor?(language: string): string | undefined;
  readonly listVoices?:
    | { request(): HttpRequest; response(body: unknown): readonly Voice[] }
    | (() => Promise<readonly Voice[]>);
  /** The longest text in characters. */
  readonly maxCharacters: number;
  /** The vendor's own range; a speed outside it is refused. */
  readonly speed: { readonly min: number; readonly max: number };
  readonly codec: SpeechCodec;
}
