import type { SpeechFormat } from '../../tts/kit/index.ts';

const FORMATS: readonly SpeechFormat[] = ['mp3', 'wav', 'opus', 'pcm', 'aac', 'flac'];

/** Maximum length of any text, split or not; each model's own limit comes from its vendor. */
const LONGEST_TEXT = 200_000;
const LONGEST_NAME = 256;

const speed = {
  type: 'number',
  minimum: 0.25,
  maximum: 4,
  description: '1 is normal. Providers with a narrower range reject other values; the error names the range.',
} as const;

/** Body of `POST /{vendor}/tts`. */
export const SPEECH_BODY = Object.freeze({
  type: 'object',
  additionalProperties: false,
  required: ['text'],
  properties: {
    text: { type: 'string', maxLength: LONGEST_TEXT, description: 'Text to speak.' },
    voice: {
      type: 'string',
      maxLength: LONGEST_NAME,
      description: 'Voice of this provider. Default: its default voice.',
    },
    speed,
    format: { type: 'string', enum: FORMATS, description: 'Default: the provider’s first format.' },
    model: {
      type: 'string',
      maxLength: LONGEST_NAME,
      description: 'Model of this provider. Default: its first model.',
    },
    language: {
      type: 'string',
      pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$',
      description: 'BCP 47, such as `en` or `de-AT`.',
    },
    stream: {
      type: 'boolean',
      default: true,
      description:
        'False waits for the whole audio, so that the response has its length and every error is an error response.',
    },
    split: {
      type: 'boolean',
      default: false,
      description: 'Splits text over the model’s limit at ends of sentences and joins the audio.',
    },
    options: { type: 'object', description: 'Provider-specific fields, listed in docs/plugins/tts.md.' },
  },
} as const);

/** Body of `POST /v1/audio/speech`, in OpenAI's form. */
export const OPENAI_SPEECH_BODY = Object.freeze({
  type: 'object',
  required: ['model', 'input'],
  properties: {
    model: {
      type: 'string',
      minLength: 1,
      maxLength: LONGEST_NAME,
      description: '`vendor/model`, `vendor` or an alias.',
    },
    input: { type: 'string', maxLength: LONGEST_TEXT },
    voice: {
      anyOf: [
        { type: 'string', maxLength: LONGEST_NAME },
        { type: 'object', required: ['id'], properties: { id: { type: 'string', maxLength: LONGEST_NAME } } },
      ],
    },
    voice_id: { type: ['string', 'null'], maxLength: LONGEST_NAME, description: 'Mistral’s name of `voice`.' },
    response_format: { type: 'string', enum: FORMATS, description: 'Default: mp3 if the provider supports it.' },
    speed,
    instructions: { type: 'string', maxLength: 4096, description: 'Speaking style, for models that support it.' },
    stream_format: { type: 'string', enum: ['audio', 'sse'], default: 'audio' },
  },
} as const);

/** JSON response for `Accept: application/json`. */
export const SPEECH_JSON = Object.freeze({
  type: 'object',
  required: ['audio', 'format', 'content_type', 'characters', 'model', 'voice'],
  properties: {
    audio: { type: 'string', description: 'Base64.' },
    format: { type: 'string' },
    content_type: { type: 'string' },
    characters: { type: 'integer' },
    model: { type: 'string' },
    voice: { type: 'string' },
  },
} as const);

export const VOICES_JSON = Object.freeze({
  type: 'object',
  required: ['voices'],
  properties: {
    voices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'name'],
        properties: { id: { type: 'string' }, name: { type: 'string' }, language: { type: 'string' } },
      },
    },
  },
} as const);
