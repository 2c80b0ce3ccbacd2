import { definePlugin } from '../../../core/index.ts';
import { type CachedSound, cacheOf, SPEECH_CACHE } from './cache.ts';
import { createCacheHook } from './cache-hook.ts';
import { allVoicesRoute, audioModelsRoute } from './list-routes.ts';
import { openaiSpeechRoute } from './openai-route.ts';
import { defineSpeech } from './operation.ts';
import { ttsRoute, voicesRoute } from './routes.ts';
import { createSayCommand, SAY } from './say.ts';
import { createSpeak } from './speak.ts';
import { createVoiceList } from './voice-list.ts';

/** Text to speech by the vendors of kind `tts`: over HTTP, for OpenAI's clients, and as `tollgate say`. */
export default definePlugin({
  name: 'speech',
  kind: 'operation',
  apiVersion: 1,
  section: 'speechCache',
  configSchema: SPEECH_CACHE,
  commands: [SAY],
  setup(api, settings) {
    // Absent unless the configuration has the section: then nothing is kept.
    const cache = settings ? cacheOf(settings, api.keyv<CachedSound>('sounds')) : undefined;
    const vendors = () => api.offers('speech');
    const speak = createSpeak(api, cache !== undefined);
    const need = { vendors, speak, voices: createVoiceList(vendors), alias: api.alias };
    api.operation(defineSpeech(cache));
    if (cache) api.hook('answer', { operations: ['speech'], handler: createCacheHook(api, cache) });
    for (const route of [ttsRoute, voicesRoute, openaiSpeechRoute, allVoicesRoute, audioModelsRoute])
      api.route(route(need));
    api.command(createSayCommand(speak));
  },
});
