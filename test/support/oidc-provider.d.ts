/** What the tests use of oidc-provider, which comes without types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Configuration {
    readonly jwks: { readonly keys: readonly object[] };
    readonly scopes: readonly string[];
    readonly clients: readonly object[];
    extraTokenClaims(context: unknown, token: { readonly clientId?: string }): object | undefined;
    readonly features: {
      readonly devInteractions: { readonly enabled: boolean };
      readonly clientCredentials: { readonly enabled: boolean };
      readonly resourceIndicators: {
        readonly enabled: boolean;
        defaultResource(): string;
        getResourceServerInfo(context: unknown, resource: string): object;
      };
    };
  }

  export default class Provider {
    constructor(issuer: string, configuration: Configuration);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
  }
}
