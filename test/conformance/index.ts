/**
 * The public entry `tollgate/conformance`: each kit runs every promise of a kind of plugin against yours, in any runner
 * with `describe` and `it` (mocha, vitest, jest). They assert with `node:assert` and touch no network.
 */

export { testAgent } from './agent.ts';
export type {
  ContentRow,
  DialectFormat,
  DialectOptions,
  ErrorFixture,
  EventRow,
  JsonPath,
  RequestFixture,
  ResponseFixture,
} from './dialect.ts';
export { testDialect } from './dialect.ts';
export type { ProviderKit } from './provider.ts';
export { testProvider } from './provider.ts';
export type { SpeechErrorSample, SpeechKit, SpeechSample } from './speech.ts';
export { testSpeech } from './speech.ts';
export type { StoreUnderTest } from './store.ts';
export { testStore } from './store.ts';
