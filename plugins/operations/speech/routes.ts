import { callContext, type PluginApi, type Route, type RouteContext, type Schema } from '../../../contract/index.ts';
import { FOR_OPERATORS, listOf, sendList } from '../../policies/kit/index.ts';
import type { SpeechProvider, SpeechRequest, SpeechResponse, Voice } from '../../tts/kit/index.ts';
import { collectSound } from './collect-sound.ts';
import { SPEECH_BODY, SPEECH_JSON, VOICES_JSON } from './schemas.ts';
import { sendSound, setHeaders } from './send-sound.ts';
import type { Speak } from './speak.ts';

/** Dependencies of the routes. */
export interface SpeechRoutesNeed {
  /** Vendors by instance name. */
  vendors(): ReadonlyMap<string, SpeechProvider>;
  readonly speak: Speak;
  /** Voices of a vendor, from the vendor itself if necessary. */
  voices(vendor: string): Promise<readonly Voice[]>;
  /** Targets of an alias in the configuration. */
  readonly alias: PluginApi['models']['alias'];
}

/** `POST /{vendor}/tts`. */
export function ttsRoute({ speak }: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'POST',
    path: '/:vendor/tts',
    summary: 'Convert text to speech with one provider',
    description: 'Streams the audio; with `Accept: application/json` (and no audio type), returns base64 in JSON.',
    auth: ['key'],
    isIdempotent: true,
    body: SPEECH_BODY,
    responses: {
      200: { description: 'Audio, or JSON that contains it.', contentType: 'audio/*', schema: SPEECH_JSON },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const vendor = ctx.params['vendor'] ?? '';
      const request = ctx.state.body as SpeechRequest;
      const json = wantsJson(ctx.get('accept'));
      // HTTP/1.0 cannot distinguish a truncated stream from a complete one.
      const whole = json || request.stream === false || ctx.req.httpVersion === '1.0';
      const spoken = await speak(vendor, { ...request, stream: !whole }, callContext(ctx.state));
      setHeaders(ctx, vendor, spoken);
      if (json) ctx.body = await toJsonResponse(spoken);
      else await sendSound(ctx, spoken, whole);
    },
  };
}

/** `GET /{vendor}/tts/voices`. */
export function voicesRoute({ voices }: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/:vendor/tts/voices',
    summary: 'List the voices of one provider',
    auth: ['key'],
    responses: { 200: { description: 'The voices.', schema: VOICES_JSON } },
    async handler(ctx) {
      ctx.body = { voices: await voices(ctx.params['vendor'] ?? '') };
    },
  };
}

const SPEECH_VENDOR = {
  type: 'object',
  required: ['vendor', 'is_callable', 'models', 'formats', 'default_voice', 'speed'],
  properties: {
    vendor: { type: 'string', description: 'Name in the configuration.' },
    is_callable: { type: 'boolean', description: 'False if a required key is missing.' },
    models: { type: 'array', items: { type: 'string' }, description: 'The first one is the default.' },
    formats: { type: 'array', items: { type: 'string' }, description: 'The first one is the default.' },
    default_voice: { type: 'string' },
    speed: { type: 'object', properties: { min: { type: 'number' }, max: { type: 'number' } } },
  },
} as const;

const OPERATORS_SPEECH = '/api/core/admin/speech';

/**
 * Speech for a person who signed in at the console, in the ledger under the person's name, with the permissions of
 * the session.
 */
export function operatorsRoutes({ vendors, voices, speak }: SpeechRoutesNeed): readonly Route<Schema>[] {
  const open = { ...FOR_OPERATORS, scope: 'models:call' } as const;
  return [
    {
      ...open,
      method: 'GET',
      path: OPERATORS_SPEECH,
      summary: 'List speech providers',
      responses: { 200: { description: 'Providers with their capabilities.', schema: listOf(SPEECH_VENDOR) } },
      handler(ctx) {
        const rows = [...vendors()].map(([vendor, { models, formats, defaultVoice, speed, credential }]) => ({
          vendor,
          is_callable: !credential?.required || credential.value !== undefined,
          models: models.map(({ id }) => id),
          formats,
          default_voice: defaultVoice,
          speed,
        }));
        sendList(ctx as RouteContext, rows, undefined);
      },
    },
    {
      ...open,
      method: 'GET',
      path: `${OPERATORS_SPEECH}/:vendor/voices`,
      summary: 'List the voices of a speech provider',
      responses: { 200: { description: 'The voices.', schema: VOICES_JSON } },
      async handler(ctx) {
        ctx.set('cache-control', 'no-store');
        ctx.body = { voices: await voices(ctx.params['vendor'] ?? '') };
      },
    },
    {
      ...open,
      method: 'POST',
      path: `${OPERATORS_SPEECH}/:vendor`,
      summary: 'Convert text to speech, charged to the signed-in person',
      description:
        'Accepts the body of `/{vendor}/tts`. Returns the whole audio, with its cost in `x-tollgate-cost-usd`.',
      body: SPEECH_BODY,
      responses: { 200: { description: 'Audio.', contentType: 'audio/*' } },
      async handler(context) {
        const ctx = context as RouteContext;
        const vendor = ctx.params['vendor'] ?? '';
        const request = ctx.state.body as SpeechRequest;
        const call = { ...callContext(ctx.state), session: 'console' };
        const spoken = await speak(vendor, { ...request, stream: false }, call);
        setHeaders(ctx, vendor, spoken);
        ctx.set('cache-control', 'no-store');
        await sendSound(ctx, spoken, true);
      },
    },
  ];
}

/** Returns true for callers that accept JSON and no audio; axios and others accept both, and expect the sound. */
export function wantsJson(accept: string): boolean {
  const types = accept
    .toLowerCase()
    .split(',')
    .map((part) => part.split(';')[0]?.trim() ?? '');
  const audio = types.some(
    (type) => type === '*/*' || type.startsWith('audio/') || type === 'application/octet-stream',
  );
  return !audio && types.some((type) => type === 'application/json' || type === 'application/*');
}

async function toJsonResponse(spoken: SpeechResponse): Promise<object> {
  const { format, contentType, characters, model, voice } = spoken;
  const sound = await collectSound(spoken);
  return { audio: sound.toString('base64'), format, content_type: contentType, characters, model, voice };
}
