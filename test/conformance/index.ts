/**
 * The conformance kits: each runs every promise of a kind of plugin against yours, in any runner with `describe` and `it`
 * (mocha, vitest, jest, node:test with globals). They assert with `node:assert` and touch no network.
 */
export { testProvider } from './provider.ts';
export { testSpeech } from './speech.ts';
export { testStore } from './store.ts';
