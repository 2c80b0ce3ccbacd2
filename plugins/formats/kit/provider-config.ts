import type { Provider } from '../../../contract/index.ts';
import type { TurnOrderConfig } from './turn-order.ts';

/** Configuration of a provider, as described by `PROVIDER_OPTIONS`. */
export interface ProviderConfig {
  readonly apiKey?: string | undefined;
  readonly apiKeys?: readonly { readonly name: string; readonly key: string; readonly weight?: number }[] | undefined;
  readonly baseUrl?: string | undefined;
  readonly models?: readonly string[] | undefined;
  readonly prices?: Provider['prices'] | undefined;
  readonly timeouts?:
    | { readonly [clock in 'connect' | 'firstByte' | 'firstToken' | 'idle' | 'total']?: string }
    | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly refreshModels?: string | undefined;
  readonly native?: boolean | { readonly references?: 'allow' | 'refuse' } | undefined;
  readonly affinity?: string | undefined;
  readonly remoteMedia?: 'allow' | 'refuse' | undefined;
  readonly countFactor?: number | undefined;
  /** For providers with {@link TURN_ORDER_OPTION}. */
  readonly turnOrder?: TurnOrderConfig | undefined;
}
