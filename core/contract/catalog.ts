import type { Target } from './call.ts';
import type { ModelInfo, Price } from './provider.ts';

/** The models of all instances that take part in an operation, as calls, model lists and the command line see them. */
export interface ModelCatalog {
  /**
   * What is known of a model; undefined when the provider does not accept the name. A listed name and its dated variants have the
   * row of the list; another name that is accepted, by prefix or family, stands for itself, without a price.
   */
  find(provider: string, model: string): ModelInfo | undefined;
  /** At most three ids near to `model`, best first. */
  suggest(provider: string, model: string): readonly string[];
  /** Instance names, in the order of the configuration. */
  providers(): readonly string[];
  has(provider: string): boolean;
  /** Whether calls to a provider have the credential that they need; without it they are 503 `provider_not_configured`. */
  isConfigured(provider: string): boolean;
  /** Every model of one provider, in the order of its list. */
  list(provider: string): readonly string[];
  /** Adds what a vendor itself lists; replaces what was learnt of it before. */
  learn(provider: string, ids: readonly string[]): void;
  /** Whether the operator set a price for a model: then that one holds, whatever the vendor says. */
  hasOwnPrice(target: Target): boolean;
  /** The price of a model, operator's over table; undefined when it is not known. */
  priceOf(target: Target, model: ModelInfo | undefined): Price | undefined;
}
