import anthropic from '../../../plugins/providers/anthropic.ts';
import gemini from '../../../plugins/providers/gemini.ts';
import openai from '../../../plugins/providers/openai.ts';
import type { DialectOptions } from '../../conformance/index.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';

/** The vendors that speak a built-in dialect themselves, by its name. */
const VENDORS: Readonly<Record<string, NonNullable<DialectOptions['vendor']>>> = Object.freeze({
  messages: setUpProvider(anthropic, { apiKey: 'k' }),
  gemini: setUpProvider(gemini, { apiKey: 'k' }),
  responses: setUpProvider(openai, { apiKey: 'k' }),
  chat: setUpProvider(openai, { apiKey: 'k', native: false }),
});

/** Where the fixtures of a built-in dialect are. */
export const dialectFixtures = (name: string): URL => new URL(`../../fixtures/dialects/${name}/`, import.meta.url);

/** What a built-in dialect is tested with beside its fixtures. */
export function dialectOptions(name: string): DialectOptions {
  const vendor = VENDORS[name];
  return { config: name === 'responses' ? { store: 'off', retention: '1h' } : {}, ...(vendor && { vendor }) };
}
