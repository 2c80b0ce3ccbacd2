/** What a speech plugin registers, without a core around it. */
import type { Plugin, PluginApi, SpeechProvider } from '../../core/index.ts';

export async function loadSpeech(plugin: Plugin<never> | Plugin, config: object = {}): Promise<SpeechProvider> {
  const heard: SpeechProvider[] = [];
  const api = { instance: plugin.name, speech: (voice: SpeechProvider) => heard.push(voice) };
  await (plugin as Plugin).setup(api as unknown as PluginApi, Object.freeze(config) as never);
  const [first] = heard;
  if (!first || heard.length > 1) throw new Error('a speech plugin registers one vendor');
  return Object.freeze(first);
}
