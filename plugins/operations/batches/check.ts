import { setImmediate } from 'node:timers/promises';
import {
  GatewayError,
  type HttpRequest,
  isGatewayError,
  type PluginApi,
  type Price,
  type RouteContext,
} from '../../../contract/index.ts';
import type { BatchOffer } from '../../formats/kit/index.ts';
import { batchPrice } from './prices.ts';
import { type Checked, hash } from './records.ts';
import { MAX_REQUESTS } from './wires.ts';

/** Number of requests to check before yielding to other work. */
const AT_ONCE = 20;

/** Service tiers without a price of their own. */
const USUAL_TIERS: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'standard',
  'standard_only',
  'service_tier_standard',
]);

/** Unchanged request of a batch. */
export interface Line {
  readonly customId: string;
  readonly body: Buffer;
  /** Name in errors: `Line 7`. */
  readonly place: string;
}

/** Checks the requests of one batch one after the other. Each is admitted like a chat, and all use one model. */
export class Checker {
  readonly #api: Pick<PluginApi, 'models'>;
  readonly #ctx: RouteContext;
  readonly #dialect: string;
  readonly #wire: BatchOffer['wire'];
  readonly #held: Record<string, number> = {};
  readonly #dropped = new Set<string>();
  #first: Pick<Checked, 'provider' | 'model' | 'requested'> | undefined;
  #headers: HttpRequest['headers'];
  #path = '';
  #price: Price | undefined;
  #cost: number | null = 0;
  #count = 0;

  constructor(api: Pick<PluginApi, 'models'>, ctx: RouteContext, dialect: string, wire: BatchOffer['wire']) {
    this.#api = api;
    this.#ctx = ctx;
    this.#dialect = dialect;
    this.#wire = wire;
  }

  /** Returns the body for the vendor. Throws the errors of a call, with its position. */
  async add({ customId, body, place }: Line): Promise<object> {
    this.#count += 1;
    if (this.#count % AT_ONCE === 0) await setImmediate();
    if (this.#count > MAX_REQUESTS) throw wrong(place, `exceeds the limit of ${MAX_REQUESTS} requests per batch`);
    const key = hash(customId);
    if (Object.hasOwn(this.#held, key)) throw wrong(place, 'repeats the `custom_id` of an earlier request');
    try {
      return await this.#draft(key, body, place);
    } catch (error) {
      if (!isGatewayError(error)) throw error;
      const { code, message, param, refusedBy } = error;
      if (message.startsWith(place)) throw error;
      throw new GatewayError(code, `${place}: ${message}`, {
        ...(param && { param }),
        ...(refusedBy && { refusedBy }),
      });
    }
  }

  async #draft(key: string, sent: Buffer, place: string): Promise<object> {
    const offers = this.#api.models.offers('batches');
    const takes = (name: string): boolean => {
      const offer = offers.get(name);
      return offer?.wire === this.#wire && Object.hasOwn(offer.paths, this.#dialect);
    };
    const { target, requested, request, most } = await this.#api.models.draft(this.#ctx, this.#dialect, sent, takes);
    const { provider, model } = target;
    const offer = offers.get(provider);
    const path = offer?.paths[this.#dialect];
    if (!offer || path === undefined || !request.path.replace(/\?.*/, '').endsWith(path))
      throw wrong(place, 'needs the Responses API at the provider; use `/v1/responses` for the request and the batch');
    const first = this.#first;
    this.#first ??= { provider, model, requested };
    if (first && (first.provider !== provider || first.model !== model))
      throw wrong(place, 'has another model than the first request; a batch has one model');
    const body = request.body as Readonly<Record<string, unknown>>;
    if (!USUAL_TIERS.has(String(body['service_tier'] ?? body['serviceTier'] ?? 'auto').toLowerCase()))
      throw wrong(place, 'has a `service_tier`, which batches do not support; remove it');
    if (!first) {
      this.#price = batchPrice(
        this.#api.models.catalog.priceOf(target, this.#api.models.catalog.find(provider, model)),
        offer.factor,
      );
      this.#headers = request.headers;
      this.#path = request.path;
    }
    for (const name of request.dropped ?? []) this.#dropped.add(name);
    const { cost } = most(this.#price);
    this.#held[key] = cost ?? 0;
    this.#cost = this.#cost === null || cost === undefined ? null : this.#cost + cost;
    return body;
  }

  /** Summary of all requests. Throws if there are none. */
  get checked(): Checked {
    if (!this.#first) throw new GatewayError('invalid_request', 'A batch must have at least one request.');
    return {
      ...this.#first,
      dialect: this.#dialect,
      requests: this.#count,
      cost: this.#cost,
      held: this.#held,
    };
  }

  /** Path and headers for a single request of this batch, and dropped fields. */
  get sent(): { readonly path: string; readonly headers: HttpRequest['headers']; readonly dropped: readonly string[] } {
    return { path: this.#path, headers: this.#headers, dropped: [...this.#dropped] };
  }
}

export function wrong(place: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', `${place} ${problem}.`);
}
