/** The public entry `tollgate/conformance`: the tests that a plugin runs on itself, under mocha, jest or vitest. */

export type { ProviderKit } from './provider.ts';
export { testProvider } from './provider.ts';
export { testStore } from './store.ts';
