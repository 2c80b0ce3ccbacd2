/** Types for the tests' use of oidc-provider, which has none. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Account {
    readonly accountId: string;
    claims(): Promise<object>;
  }

  export interface Grant {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  }

  /** Request to the provider, as a hook sees it. */
  export interface GrantContext {
    readonly oidc: {
      readonly client: { readonly clientId: string };
      readonly session: { readonly accountId: string };
      readonly provider: { readonly Grant: new (of: { clientId: string; accountId: string }) => Grant };
    };
  }

  export interface Configuration {
    readonly jwks: { readonly keys: readonly object[] };
    readonly scopes?: readonly string[];
    readonly clients: readonly object[];
    readonly claims?: Readonly<Record<string, readonly string[]>>;
    readonly conformIdTokenClaims?: boolean;
    /** Lifetimes in seconds, by kind. */
    readonly ttl: Readonly<Record<string, number>>;
    readonly cookies?: { readonly keys: readonly string[] };
    readonly interactions?: { url(context: unknown, interaction: { readonly uid: string }): string };
    extraTokenClaims?(context: unknown, token: { readonly clientId?: string }): object | undefined;
    findAccount?(context: unknown, id: string): Account | undefined;
    loadExistingGrant?(context: GrantContext): Promise<Grant>;
    readonly features: {
      readonly devInteractions: { readonly enabled: boolean };
      readonly clientCredentials?: { readonly enabled: boolean };
      readonly resourceIndicators?: {
        readonly enabled: boolean;
        defaultResource(): string;
        getResourceServerInfo(context: unknown, resource: string): object;
      };
    };
  }

  export default class Provider {
    constructor(issuer: string, configuration: Configuration);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
