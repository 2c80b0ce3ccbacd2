import { LRUCache } from 'lru-cache';
import type { ModelRoute } from '../../config/model-routes.ts';
import type { Target } from '../../contract/call.ts';
import type { DialectDefinition } from '../../contract/dialect.ts';
import { priceAt } from '../../contract/price-rows.ts';
import type { Prices } from '../../contract/prices.ts';
import type {
  Endpoint,
  ModelInfo,
  NativeRow,
  Offer,
  Price,
  Provider,
  ProviderEffects,
} from '../../contract/provider.ts';
import { maxEntries } from '../../contract/units.ts';
import { type Aliases, type PricedCatalog, targetOfPath, targetsOfRequest } from '../../models/catalog.ts';

/** Target, with everything about it that depends on the configuration and the model table alone. */
export class RouteTarget {
  /** Single object for this target, shared by calls. */
  readonly target: Target;
  /** `provider/model`. */
  readonly name: string;
  /** Undefined if the provider does not exist. */
  readonly offer: Offer | undefined;
  /** Undefined if the provider does not accept the model. */
  readonly model: ModelInfo | undefined;
  /** True if the operator set a price. */
  readonly hasOwnPrice: boolean;
  /** Effects of request fields at the vendor. */
  readonly effects: ProviderEffects | undefined;
  readonly #prices: Prices;
  #wholeRows: NativeRows | undefined;
  #streamRows: NativeRows | undefined;

  constructor(catalog: PricedCatalog, offer: Offer | undefined, { provider, model }: Target) {
    this.target = Object.freeze({ provider, model });
    this.name = `${provider}/${model}`;
    this.offer = offer;
    this.model = catalog.find(provider, model);
    this.hasOwnPrice = catalog.hasOwnPrice(this.target);
    this.effects = effectsFor(offer?.effects, model);
    this.#prices = catalog.pricesOf(this.target, this.model);
  }

  /** Price at a time in milliseconds (default: now); undefined if unknown. */
  priceAt(at?: number): Price | undefined {
    const prices = this.#prices;
    return prices && 'length' in prices ? priceAt(prices, at) : prices;
  }

  /** Endpoint of the vendor that speaks a client's format; undefined if it has none. */
  nativeRow(row: string, stream: boolean): NativeRow | undefined {
    const provider: Provider | undefined = this.offer;
    if (!provider?.native) return undefined;
    if (stream) this.#streamRows ??= provider.native(this.target.model, true);
    else this.#wholeRows ??= provider.native(this.target.model, false);
    return (stream ? this.#streamRows : this.#wholeRows)?.[row];
  }
}

type NativeRows = ReturnType<NonNullable<Provider['native']>>;

/** Returns the effects that a provider declares for a model. */
export function effectsFor(declared: Endpoint['effects'], model: string): ProviderEffects | undefined {
  return typeof declared === 'function' ? declared(model) : declared;
}

/** Meaning of a model name. */
export interface Route {
  /** Candidates in order. */
  readonly targets: readonly Target[];
  /** Model name of the caller, if it is an alias. */
  readonly requested?: string | undefined;
  /** The same, if it is an alias of the configuration. */
  readonly alias?: string | undefined;
  /** Rules of that alias. */
  readonly rule?: ModelRoute | undefined;
}

interface RouteSources {
  readonly catalog: PricedCatalog;
  /** By instance name. */
  readonly offers: ReadonlyMap<string, Offer>;
  readonly aliases: Aliases;
  /** Rules of the aliases. */
  readonly rules: ReadonlyMap<string, ModelRoute>;
}

/** Aliases of a dialect. */
type DialectAliases = DialectDefinition['aliases'];

/** Routes of one operation by model name, compiled at their first use. A change of the model table drops them. */
export class Routes {
  readonly #sources: RouteSources;
  #routes = new Map<DialectAliases, LRUCache<string, Route>>();
  #byProvider = new Map<string, LRUCache<string, RouteTarget>>();
  #byTarget = new WeakMap<Target, RouteTarget>();

  constructor(sources: RouteSources) {
    this.#sources = sources;
    sources.catalog.onChange(() => this.#drop());
  }

  /** Returns the route of a model name, as clients of a dialect write it. Throws `unsupported_model` for an unknown one. */
  find(model: string, dialectAliases?: DialectAliases): Route {
    let routes = this.#routes.get(dialectAliases);
    const known = routes?.get(model);
    if (known) return known;
    const { catalog, aliases, rules } = this.#sources;
    const { targets, requested, alias } = targetsOfRequest({ catalog, aliases, dialectAliases }, model);
    const rule = alias === undefined ? undefined : rules.get(alias);
    const shared = Object.freeze(targets.map((target) => this.at(target).target));
    const route: Route = Object.freeze({ targets: shared, requested, alias, rule });
    if (!routes) {
      routes = createCache();
      this.#routes.set(dialectAliases, routes);
    }
    if (model.length <= MAX_LENGTH) routes.set(model, route);
    return route;
  }

  /** Returns the route of a model at a provider. Throws for an unknown one. */
  ofProvider(provider: string, model: string): Route {
    return { targets: [this.at(targetOfPath(this.#sources.catalog, provider, model)).target] };
  }

  /** Returns the compiled target, even for a target that does not exist. */
  at(target: Target): RouteTarget {
    const known = this.#byTarget.get(target);
    if (known) return known;
    const { provider, model } = target;
    const { catalog, offers } = this.#sources;
    const offer = offers.get(provider);
    let recent = this.#byProvider.get(provider);
    const named = recent?.get(model);
    if (named) return named;
    const compiled = new RouteTarget(catalog, offer, target);
    if (!offer) return compiled;
    if (!recent) {
      recent = createCache();
      this.#byProvider.set(provider, recent);
    }
    if (model.length <= MAX_LENGTH) recent.set(model, compiled);
    this.#byTarget.set(compiled.target, compiled);
    return compiled;
  }

  #drop(): void {
    this.#routes = new Map();
    this.#byProvider = new Map();
    this.#byTarget = new WeakMap();
  }
}

/** Maximum number and length of cached names: callers may invent names. */
const MAX_NAMES = 2000;
const MAX_LENGTH = 200;

function createCache<T extends object>(): LRUCache<string, T> {
  return new LRUCache<string, T>(maxEntries(MAX_NAMES));
}
