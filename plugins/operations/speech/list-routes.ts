import type { Route, Schema } from '../../../core/index.ts';
import type { SpeechProvider, Voice } from '../../tts/kit/index.ts';
import { localVoices } from './check.ts';
import type { SpeechRoutesNeed } from './routes.ts';
import { VOICES_JSON } from './schemas.ts';

type ListsNeed = Pick<SpeechRoutesNeed, 'vendors'>;

/** `GET /v1/audio/voices`, which Open WebUI asks for without a credential. */
export function allVoicesRoute({ vendors }: ListsNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/v1/audio/voices',
    summary: 'Lists the voices that are known without asking a vendor.',
    auth: 'none',
    responses: { 200: { description: 'The voices of all vendors.', schema: VOICES_JSON } },
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
      // One id may be a voice of several vendors; a list with an id twice confuses its reader.
      const voices = [...byId.values()].map(({ voice, names }) => ({
        ...voice,
        name: `${voice.name} (${names.join(', ')})`,
      }));
      ctx.body = { voices };
    },
  };
}

/** `GET /v1/audio/models`, likewise. */
export function audioModelsRoute({ vendors }: ListsNeed): Route<Schema> {
  return {
    method: 'GET',
    path: '/v1/audio/models',
    summary: 'Lists the models that can speak.',
    auth: 'none',
    responses: { 200: 'The models, as `{models: [{id}]}`.' },
    handler(ctx) {
      const ids = ready(vendors()).flatMap(([vendor, { models }]) =>
        models.map(({ id }) => ({ id: `${vendor}/${id}` })),
      );
      ctx.body = { models: ids };
    },
  };
}

/** Vendors that can be called: those without a key would only respond that they have none. */
function ready(vendors: ReadonlyMap<string, SpeechProvider>): readonly (readonly [string, SpeechProvider])[] {
  return [...vendors].filter(([, { credential }]) => !credential?.required || credential.value !== undefined);
}

/** Nobody has shown a credential here, so no vendor is called with the operator's. */
async function known(provider: SpeechProvider): Promise<readonly Voice[]> {
  try {
    return (await localVoices(provider)) ?? [];
  } catch {
    // A program that is not installed has no voices.
    return [];
  }
}
