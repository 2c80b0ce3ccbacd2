/** What a speech plugin offers, without a core around it. */
import type { Plugin, WholeApi } from '../../../core/index.ts';
import type { SpeechProvider } from '../../../plugins/tts/kit/index.ts';

/** `http` is what its `api.http()` gives. */
export async function loadSpeech(
  plugin: object,
  config: Readonly<Record<string, unknown>> = {},
  http?: unknown,
): Promise<SpeechProvider> {
  const { name, setup } = plugin as Plugin;
  const heard: SpeechProvider[] = [];
  const api = {
    instance: name,
    offer: (operation: string, offer: SpeechProvider) => operation === 'speech' && heard.push(offer),
    http: async () => http,
  };
  await setup(api as unknown as WholeApi, Object.freeze(config));
  const [first] = heard;
  if (!first || heard.length > 1) throw new Error('a speech plugin offers one vendor');
  return Object.freeze(first);
}
