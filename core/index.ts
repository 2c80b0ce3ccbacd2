/** The public entry of `tollgate`: what plugins and programs that embed the gateway import. */

export type { ErrorBody, ErrorCode, ErrorOptions, ErrorType } from './errors.ts';
export { ERRORS, GatewayError, isGatewayError, toGatewayError } from './errors.ts';
export type { AuthRequest, Hook, HookFunctions, HookName, HookObject } from './hooks.ts';
export { HOOKS } from './hooks.ts';
export type { Log } from './log.ts';
export type * from './plugin.ts';
export { API_VERSION, definePlugin, PLUGIN_KINDS } from './plugin.ts';
export type * from './provider.ts';
export { PROVIDER_OPTIONS, StreamFailure } from './provider.ts';
export type { EndpointDefaults, ProviderConfig } from './provider-options.ts';
export { readProviderOptions } from './provider-options.ts';
export { findSecretWeakness } from './secret-strength.ts';
export type * from './types/agent.ts';
export type * from './types/call.ts';
export type * from './types/chat.ts';
export type * from './types/json.ts';
export type * from './types/speech.ts';
export type * from './types/store.ts';
export { formatUsd, parseDuration, parseUsd } from './units.ts';
