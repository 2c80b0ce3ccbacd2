import anthropic from '../../../plugins/providers/anthropic.ts';
import gemini from '../../../plugins/providers/gemini.ts';
import openai from '../../../plugins/providers/openai.ts';
import type { DialectKit } from '../../conformance/index.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';

/** Vendors with a built-in dialect as their own format, by its name. */
const VENDORS: Readonly<Record<string, NonNullable<DialectKit['vendor']>>> = Object.freeze({
  messages: setUpProvider(anthropic, { apiKey: 'k' }),
  gemini: setUpProvider(gemini, { apiKey: 'k' }),
  responses: setUpProvider(openai, { apiKey: 'k' }),
  chat: setUpProvider(openai, { apiKey: 'k', native: false }),
});

/** Folder with the fixtures of a built-in dialect. */
export const dialectFixtures = (name: string): URL => new URL(`../../fixtures/dialects/${name}/`, import.meta.url);

/** Options of the dialect kit for a built-in dialect, except the plugin. */
export function dialectOptions(name: string): Omit<DialectKit, 'plugin'> {
  const vendor = VENDORS[name];
  return {
    fixtures: dialectFixtures(name),
    config: name === 'responses' || name === 'interactions' ? { store: 'off', retention: '1h' } : {},
    ...(vendor && { vendor }),
  };
}
