import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  type Answered,
  type Call,
  type Command,
  type CommandInput,
  callContext,
  definePlugin,
  GatewayError,
  nearest,
  type PluginApi,
  type Principal,
  type Route,
  type RouteContext,
  type Schema,
  sendEvents,
} from '../../../contract/index.ts';
import {
  AUDIO_FORMATS,
  countCharacters,
  type SpeechFormat,
  type SpeechProvider,
  type SpeechRequest,
  type Voice,
} from '../../tts/kit/index.ts';
import { type CachedSound, cacheOf, SPEECH_CACHE, type SpeechCache, speechCacheKey } from './cache.ts';
import { localVoices, resolveSpeech } from './check.ts';
import { collectSound } from './collect-sound.ts';
import { defineSpeech } from './operation.ts';
import { operatorsRoutes, type SpeechRoutesNeed, ttsRoute, voicesRoute, wantsJson } from './routes.ts';
import { OPENAI_SPEECH_BODY, VOICES_JSON } from './schemas.ts';
import { sendSound, setHeaders } from './send-sound.ts';
import { createSpeak, findVendor, type Speak, type SpokenResponse } from './speak.ts';

/** Text length that clients of this route can rely on: for vendors with a lower limit, the text is split. */
const PROMISED_CHARACTERS = 4096;

interface OpenAISpeechBody {
  readonly model: string;
  readonly input: string;
  readonly voice?: string | { readonly id: string };
  /** Mistral's name for the voice. */
  readonly voice_id?: string | null;
  readonly response_format?: SpeechFormat;
  readonly speed?: number;
  readonly instructions?: string;
  readonly stream_format?: 'audio' | 'sse';
}

/** `POST /v1/audio/speech`, for clients of OpenAI, and of Mistral, which accept JSON. */
function openaiSpeechRoute(need: SpeechRoutesNeed): Route<Schema> {
  return {
    method: 'POST',
    path: '/v1/audio/speech',
    summary: 'Convert text to speech; `model` is `vendor/model`',
    auth: ['key'],
    isIdempotent: true,
    body: OPENAI_SPEECH_BODY,
    responses: {
      200: {
        description:
          'Audio. With `stream_format: "sse"`, events with audio; with `Accept: application/json` (and no audio type), `audio_data` in base64.',
        contentType: 'audio/*',
      },
    },
    async handler(context) {
      const ctx = context as RouteContext;
      const body = ctx.state.body as OpenAISpeechBody;
      const target = findTarget(body.model, need);
      // https://docs.mistral.ai/api/endpoint/audio/speech
      const json = body.stream_format !== 'sse' && wantsJson(ctx.get('accept'));
      const whole = json || ctx.req.httpVersion === '1.0';
      const request = { ...readBody(body, target), stream: !whole };
      const speak = async (): Promise<SpokenResponse> => {
        const spoken = await need.speak(target.vendor, request, callContext(ctx.state), target.alias);
        if (!ctx.headerSent) setHeaders(ctx, target.vendor, spoken);
        return spoken;
      };
      // Unlike plain audio, events can report an error after the first byte.
      if (body.stream_format === 'sse') return sendEvents(ctx, async () => speechEvents(await speak()));
      const spoken = await speak();
      if (json) ctx.body = { audio_data: (await collectSound(spoken)).toString('base64') };
      else await sendSound(ctx, spoken, whole);
    },
  };
}

function readBody(body: OpenAISpeechBody, { provider, model }: SpeechTarget): SpeechRequest {
  const { input, voice = body.voice_id ?? undefined, response_format, speed, instructions } = body;
  const format = response_format ?? (provider.formats.includes('mp3') ? 'mp3' : undefined);
  const voiceId = typeof voice === 'object' ? voice.id : voice;
  return {
    text: input,
    ...(countCharacters(input) <= PROMISED_CHARACTERS && { split: true }),
    ...(model !== undefined && { model }),
    ...(voiceId !== undefined && { voice: voiceId }),
    ...(format !== undefined && { format }),
    ...(speed !== undefined && { speed }),
    ...(instructions !== undefined && { options: { instructions } }),
  };
}

interface SpeechTarget {
  readonly vendor: string;
  readonly provider: SpeechProvider;
  readonly model: string | undefined;
  /** Alias of the request. */
  readonly alias?: string;
}

/** Target of `vendor/model`, of a vendor's name alone, or of an alias (its first target). */
function findTarget(name: string, { vendors, alias }: SpeechRoutesNeed): SpeechTarget {
  const [first] = alias(name) ?? [];
  const { vendor, model } = splitName(first ?? name);
  const offers = vendors();
  const provider = offers.get(vendor);
  if (provider) return { vendor, provider, model, ...(first !== undefined && { alias: name }) };
  const known = [...offers].flatMap(([instance, { models }]) => models.map(({ id }) => `${instance}/${id}`));
  const near = nearest(name, known);
  const hint =
    known.length === 0
      ? 'no speech provider is configured; the operator adds one under `tts`'
      : `use vendor/model, such as ${(near.length > 0 ? near : known.slice(0, 3)).join(', ')}`;
  throw new GatewayError('unsupported_model', `model does not support speech: ${hint}.`, { param: 'model' });
}

function splitName(name: string): { readonly vendor: string; readonly model: string | undefined } {
  const slash = name.indexOf('/');
  if (slash < 0) return { vendor: name, model: undefined };
  return { vendor: name.slice(0, slash), model: name.slice(slash + 1) || undefined };
}

/** OpenAI's events. */
async function* speechEvents({ audio, characters }: SpokenResponse): AsyncGenerator<string> {
  for await (const bytes of audio)
    yield frame({ type: 'speech.audio.delta', audio: Buffer.from(bytes).toString('base64') });
  yield frame({ type: 'speech.audio.done', usage: { characters } });
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Principal of the operator at the command line: no key, no allow-list, a separate account in the ledger. */
const OPERATOR: Principal = Object.freeze({ credential: 'key', userId: 'operator', account: 'operator' });

/** For `--help`, before the plugin is set up. */
const SAY = Object.freeze({ name: 'say', summary: 'Convert text to speech; without a text, reads stdin' });

/**
 * `tollgate models say`: sends a text through the pipeline of this configuration. The sound is written to `--output`,
 * atomically, or to stdout if that is not a terminal.
 */
export function createSayCommand(speak: Speak): Command {
  return {
    ...SAY,
    changesStore: false,
    args: [{ name: '[text...]', summary: 'text to speak; "-" or nothing reads stdin' }],
    options: [
      { flags: '--vendor <name>', summary: 'speech provider of the configuration (default: espeak)' },
      { flags: '-o, --output <file>', summary: 'output file (default: stdout, if it is not a terminal)' },
      { flags: '--voice <name>', summary: 'voice of the provider' },
      { flags: '--model <name>', summary: 'model of the provider' },
      { flags: '--format <format>', summary: 'mp3, wav, opus … (default: by the file’s extension)' },
      { flags: '--speed <factor>', summary: '0.25 to 4 (default: 1)' },
      { flags: '--language <code>', summary: 'such as en or de-DE' },
    ],
    run: (input) => say(speak, input),
  };
}

async function say(speak: Speak, { args, options, io, signal }: CommandInput): Promise<void> {
  const output = readText(options['output']);
  if (output === undefined && io.isTerminal)
    throw wrong('A terminal cannot play audio. Set an output file (-o hello.wav) or pipe it to a player.');
  if (output === undefined && io.json)
    throw wrong('With --json, stdout is for the result. Set a file for the audio: -o hello.wav');
  const words = args.join(' ');
  const text = words === '' || words === '-' ? await io.read() : words;
  const vendor = readText(options['vendor']) ?? 'espeak';
  const context = { principal: OPERATOR, requestId: `req_${randomUUID()}`, signal };
  const spoken = await speak(vendor, readRequest(text, options, output), context);
  const sound = await collectSound(spoken);
  if (output === undefined) {
    io.write(sound);
    return;
  }
  await writeWhole(output, sound);
  const { format, model, voice, characters } = spoken;
  io.result({ file: output, bytes: sound.length, format, vendor, model, voice, characters }, output);
}

/** Request for the options; the default format is the file's extension. */
function readRequest(text: string, options: CommandInput['options'], output: string | undefined): SpeechRequest {
  const extension = path
    .extname(output ?? '')
    .slice(1)
    .toLowerCase();
  const format = readText(options['format']) ?? (isFormat(extension) ? extension : undefined);
  if (format !== undefined && !isFormat(format))
    throw wrong(`"${format}" is not a supported format. Use ${Object.keys(AUDIO_FORMATS).join(', ')}.`);
  const speedText = readText(options['speed']);
  const speed = speedText === undefined ? undefined : Number(speedText);
  if (speed !== undefined && !(speed >= 0.25 && speed <= 4))
    throw wrong(`"${speedText}" is not a valid speed. Use 0.25 to 4; 1 is normal.`);
  const voice = readText(options['voice']);
  const model = readText(options['model']);
  const language = readText(options['language']);
  return {
    text,
    stream: false,
    split: true,
    ...(format !== undefined && { format }),
    ...(speed !== undefined && { speed }),
    ...(voice !== undefined && { voice }),
    ...(model !== undefined && { model }),
    ...(language !== undefined && { language }),
  };
}

function wrong(message: string): GatewayError {
  return new GatewayError('invalid_request', message);
}

function isFormat(word: string): word is SpeechFormat {
  return Object.hasOwn(AUDIO_FORMATS, word);
}

function readText(option: string | boolean | undefined): string | undefined {
  return typeof option === 'string' ? option : undefined;
}

/** Writes to a temporary file first, so that no partial clip is ever visible. */
async function writeWhole(file: string, sound: Buffer): Promise<void> {
  const part = `${file}.${process.pid}.part`;
  try {
    await writeFile(part, sound);
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** Cache lifetime of a vendor's voice list: voices change rarely, and requests use the operator's key. */
const KEEP_MS = 300_000;

/**
 * Lists a vendor's voices by instance name, from the vendor if it has a list and the operator has a key. Otherwise
 * lists the local voices. A list is cached for five minutes, and concurrent callers share one request. Throws the
 * errors of the vendor's `listVoices`.
 */
export function createVoiceList(
  offers: () => ReadonlyMap<string, SpeechProvider>,
  now: () => number = Date.now,
): (instance: string) => Promise<readonly Voice[]> {
  const kept = new Map<string, { readonly voices: Promise<readonly Voice[]>; readonly at: number }>();
  return async (instance) => {
    const vendor = findVendor(offers(), instance);
    const { listVoices, credential } = vendor;
    const hasKey = !credential?.required || credential.value !== undefined;
    if (!listVoices || !hasKey) return (await localVoices(vendor)) ?? [];
    const known = kept.get(instance);
    if (known && now() - known.at < KEEP_MS) return await known.voices;
    const voices = listVoices();
    kept.set(instance, { voices, at: now() });
    // Failures are not cached: the next caller tries again.
    voices.catch(() => kept.delete(instance));
    return await voices;
  };
}

/** Text to speech by vendors of kind `tts`: over HTTP, for OpenAI's clients, and as `tollgate models say`. */
export default definePlugin({
  name: 'speech',
  kind: 'operation',
  apiVersion: 1,
  section: 'speechCache',
  configSchema: SPEECH_CACHE,
  commands: [SAY],
  setup(api, settings) {
    // Nothing is cached unless the configuration has this section.
    const cache = settings ? cacheOf(settings, api.keyv<CachedSound>('sounds')) : undefined;
    const vendors = () => api.models.offers('speech');
    const speak = createSpeak(api, cache !== undefined);
    const need = { vendors, speak, voices: createVoiceList(vendors), alias: api.models.alias };
    api.operation(defineSpeech(cache));
    if (cache) api.hook('answer', { operations: ['speech'], handler: createCacheHook(api, cache) });
    for (const route of [ttsRoute, voicesRoute, openaiSpeechRoute, allVoicesRoute, audioModelsRoute])
      api.route(route(need));
    for (const route of operatorsRoutes(need)) api.route(route);
    api.command(createSayCommand(speak));
  },
});

/** Responds to a call with its cached sound: nothing is sent to the vendor, so nothing is charged. */
function createCacheHook(api: Pick<PluginApi, 'models'>, cache: SpeechCache) {
  return async ({ targets: [target], request, principal }: Call<'speech'>): Promise<Answered<'speech'> | undefined> => {
    const offer = target && api.models.offers('speech').get(target.provider);
    if (!offer) return undefined;
    const speech = await resolveSpeech(offer, { ...request, model: target.model });
    const response = await cache.find(speechCacheKey(principal.account, target.provider, speech));
    return response && { response, headers: { 'x-tollgate-cache': 'hit' } };
  };
}

type ListsNeed = Pick<SpeechRoutesNeed, 'vendors'>;

/** `GET /v1/audio/voices`, which Open WebUI calls without a credential. */
function allVoicesRoute({ vendors }: ListsNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/v1/audio/voices',
    summary: 'List known voices without requests to providers',
    auth: 'none',
    responses: { 200: { description: 'Voices of all providers.', schema: VOICES_JSON } },
    async handler(ctx) {
      const lists = await Promise.all(
        ready(vendors()).map(async ([name, provider]) => ({ name, voices: await known(provider) })),
      );
      const byId = new Map<string, { readonly voice: Voice; readonly names: readonly string[] }>();
      for (const { name, voices } of lists) {
        for (const voice of voices) {
          const same = byId.get(voice.id);
          byId.set(voice.id, { voice: same?.voice ?? voice, names: [...(same?.names ?? []), name] });
        }
      }
      // Several vendors may have voices with one id; duplicate ids in a list confuse clients.
      const voices = [...byId.values()].map(({ voice, names }) => ({
        ...voice,
        name: `${voice.name} (${names.join(', ')})`,
      }));
      ctx.body = { voices };
    },
  };
}

/** `GET /v1/audio/models`, also without a credential. */
function audioModelsRoute({ vendors }: ListsNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/v1/audio/models',
    summary: 'List speech models',
    auth: 'none',
    responses: { 200: 'Models, as `{models: [{id}]}`.' },
    handler(ctx) {
      const ids = ready(vendors()).flatMap(([vendor, { models }]) =>
        models.map(({ id }) => ({ id: `${vendor}/${id}` })),
      );
      ctx.body = { models: ids };
    },
  };
}

/** Vendors that can be called: one without its key could only respond with an error. */
function ready(vendors: ReadonlyMap<string, SpeechProvider>): readonly (readonly [string, SpeechProvider])[] {
  return [...vendors].filter(([, { credential }]) => !credential?.required || credential.value !== undefined);
}

/**
 * Voices known without a call to the vendor: this route has no authentication, so it must not use the operator's key.
 */
async function known(provider: SpeechProvider): Promise<readonly Voice[]> {
  try {
    return (await localVoices(provider)) ?? [];
  } catch {
    // A program that is not installed has no voices.
    return [];
  }
}
