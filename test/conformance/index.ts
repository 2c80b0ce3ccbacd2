/**
 * Public entry `tollgate/conformance`. Each kit checks a plugin against all requirements of its kind, in any runner
 * with `describe` and `it` (mocha, jest, vitest, `node:test`). The kits assert with `node:assert` and use no network.
 *
 * @public
 */

export type { AgentKit } from './agent.ts';
export { testAgent } from './agent.ts';
export type { AuthKit, AuthSample } from './auth.ts';
export { testAuth } from './auth.ts';
export type { CredentialApi, CredentialKit, Issued } from './credential.ts';
export { testCredential } from './credential.ts';
export type {
  ContentRow,
  DialectFormat,
  DialectKit,
  ErrorFixture,
  EventRow,
  Held,
  JsonPath,
  RequestFixture,
  ResponseFixture,
  Streamed,
} from './dialect.ts';
export { testDialect } from './dialect.ts';
export type { IssuerAnswer, IssuerRequest } from './issuer.ts';
export type { OperationKit, OperationSample } from './operation.ts';
export { testOperation } from './operation.ts';
export { testPlugin } from './plugin.ts';
export type { PluginKit } from './plugin-subject.ts';
export type { PolicyKit } from './policy.ts';
export { testPolicy } from './policy.ts';
export type { ProviderKit } from './provider.ts';
export { testProvider } from './provider.ts';
export type { RunnerFunctions } from './runner.ts';
export type { SecretsKit } from './secrets.ts';
export { testSecrets } from './secrets.ts';
export type { SpeechErrorSample, SpeechKit, SpeechSample } from './speech.ts';
export { testSpeech } from './speech.ts';
export type { StoreKit, StoreUnderTest } from './store.ts';
export { testStore } from './store.ts';
