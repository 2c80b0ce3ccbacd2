/** What `POST /{vendor}/tts` takes (contract section 6). */
export interface SpeechRequest {
  readonly text: string;
  readonly voice?: string;
  /** 0.25 to 4.0; 1 is the vendor's normal speed. */
  readonly speed?: number;
  readonly format?: 'mp3' | 'wav' | 'opus' | 'pcm';
  readonly model?: string;
  /** BCP 47, such as `en` or `de-AT`. */
  readonly language?: string;
  readonly stream?: boolean;
  /** Splits a text over the vendor's limit at sentence borders and joins the sound. */
  readonly split?: boolean;
  /** Passed to the vendor as it is. */
  readonly options?: Readonly<Record<string, unknown>>;
}
