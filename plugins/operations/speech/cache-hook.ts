import type { Answered, Call, PluginApi } from '../../../core/index.ts';
import { type SpeechCache, speechCacheKey } from './cache.ts';
import { resolveSpeech } from './check.ts';

/** Answers a call with the sound that is kept for it: nothing is sent, so nothing is owed. */
export function createCacheHook(api: Pick<PluginApi, 'offers'>, cache: SpeechCache) {
  return async ({ targets: [target], request, principal }: Call<'speech'>): Promise<Answered<'speech'> | undefined> => {
    const offer = target && api.offers('speech').get(target.provider);
    if (!offer) return undefined;
    const speech = await resolveSpeech(offer, { ...request, model: target.model });
    const response = await cache.find(speechCacheKey(principal.account, target.provider, speech));
    return response && { response, headers: { 'x-tollgate-cache': 'hit' } };
  };
}
