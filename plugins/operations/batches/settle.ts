import {
  type AttemptResponse,
  type CallFacts,
  type CostPart,
  isObject,
  isStreamFailure,
  type JsonObject,
  type Metered,
  type PluginApi,
  parseJson,
  StreamFailure,
} from '../../../contract/index.ts';
import type { BatchOffer } from '../../formats/kit/index.ts';
import { meteredOf } from './prices.ts';
import { type BatchRecord, hash, newId, type Records } from './records.ts';
import { readLines, WIRES, withQuery } from './wires.ts';

type SettleApi = Pick<PluginApi, 'models' | 'books' | 'log' | 'settings' | 'stores' | 'onReady' | 'onClose'>;

/** Maximum size of a vendor's response about a batch. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** Grace period before a batch that its vendor no longer knows is given up. */
const GRACE_MS = 3_600_000;
/** Reservation time for one line before it is settled, in case the process dies in between. */
const LINE_HOLD_MS = 60_000;
/**
 * Minimum lease of the process that updates all batches, in case it dies. Two processes at once charge nothing twice.
 */
const LEAST_LEASE_MS = 5000;

/** Error status of a vendor. */
class VendorFailure extends StreamFailure {
  readonly status: number;
  constructor(status: number, failure: StreamFailure['failure']) {
    super(failure);
    this.status = status;
  }
}

/** Updates batches, and charges their requests. */
export class Settler {
  readonly #api: SettleApi;
  readonly #records: Records;
  readonly #everyMs: number;
  /** Name of this process in the lease. */
  readonly #process = newId('');

  constructor(api: SettleApi, records: Records, everyMs: number) {
    this.#api = api;
    this.#records = records;
    this.#everyMs = everyMs;
  }

  /** Sends a request about a batch or file to its provider. Throws for an error status. */
  async send(
    provider: string,
    request: Parameters<PluginApi['models']['sendTo']>[2],
    signal?: AbortSignal,
  ): Promise<AttemptResponse> {
    const offer = this.#offerOf(provider);
    const response = await this.#api.models.sendTo('batches', provider, withQuery(offer, request), signal);
    if (response.status >= 200 && response.status < 300) return response;
    const body = await response.readAll(MAX_BATCH_BYTES).catch(() => Buffer.alloc(0));
    const text = body.toString('utf8');
    throw new VendorFailure(response.status, offer.error(response.status, parseJson(text) ?? text, response.headers));
  }

  /** Sends a request, and returns the body of the response as JSON. */
  async sendForJson(
    provider: string,
    request: Parameters<PluginApi['models']['sendTo']>[2],
    maxBytes = MAX_BATCH_BYTES,
  ): Promise<JsonObject> {
    const value = parseJson((await (await this.send(provider, request)).readAll(maxBytes)).toString('utf8'));
    if (isObject(value)) return value;
    throw new StreamFailure({ class: 'upstream_error', message: 'returned a response that is not a JSON object' });
  }

  /** URL for the lines of a file at a provider, for one of the gateway's URLs. */
  urlOf(provider: string, dialect: string, url: string): string {
    const { query, paths } = this.#offerOf(provider);
    return query === undefined ? url : (paths[dialect] ?? url);
  }

  /** Reads the current batch from the vendor. */
  readBatch({ provider, vendor }: BatchRecord): Promise<JsonObject> {
    const { path, maxBytes } = WIRES[this.#offerOf(provider).wire];
    return this.sendForJson(provider, { method: 'GET', path: path(vendor) }, maxBytes);
  }

  /**
   * Reads a batch from the vendor, and stores it. An ended batch is settled before this resolves. Throws the vendor's
   * failure.
   */
  async refresh(record: BatchRecord): Promise<BatchRecord> {
    if (record.held === undefined) return record;
    const wire = WIRES[this.#offerOf(record.provider).wire];
    let batch: JsonObject;
    try {
      batch = await this.readBatch(record);
    } catch (error) {
      const expiresAt = wire.expiresAt(record.batch) ?? record.createdAt * 1000 + 86_400_000;
      const isLost = error instanceof VendorFailure && error.status === 404;
      if (!isLost || Date.now() < expiresAt + GRACE_MS) throw error;
      this.#api.log.warn({ batch: record.id }, 'batch not found at the provider');
      const facts = { outcome: 'error', errorCode: 'provider_unavailable' } as const;
      return this.#end(record, wire.lost(record.batch, Date.now()), facts);
    }
    if (wire.hasEnded(batch)) return this.#settle(record, batch);
    const known = { ...record, batch: wire.stored?.(batch) ?? batch };
    await this.#records.batches.put(known);
    return known;
  }

  /** Updates all batches that have not ended, unless another process does. */
  async sweep(): Promise<void> {
    const { counters } = this.#api.stores;
    const leaseMs = Math.max(2 * this.#everyMs, LEAST_LEASE_MS);
    if (!(await counters.lease('sweep', this.#process, 1, leaseMs, Date.now()))) return;
    const { open, batches, ended } = this.#records;
    try {
      for (let ids = await open(); ids.length > 0; ids = await open(ids.at(-1)))
        for (const id of ids) {
          const record = await batches.any(id);
          if (!record?.held) await ended(id);
          else
            await this.refresh(record).catch((error: unknown) => {
              this.#api.log.warn(
                { batch: id, err: error },
                'status of a batch could not be refreshed; the next interval retries',
              );
              return Date.now() < record.heldUntil ? undefined : this.#chargeReserved(record);
            });
        }
    } finally {
      await counters.release('sweep', this.#process);
    }
  }

  #offerOf(provider: string): BatchOffer {
    const offer = this.#api.models.offers('batches').get(provider);
    if (!offer) throw new StreamFailure({ class: 'upstream_error', message: 'no longer supports batches' });
    return offer;
  }

  async #settle(record: BatchRecord, batch: JsonObject): Promise<BatchRecord> {
    const { checked, vendor, held = {} } = record;
    const offer = this.#offerOf(record.provider);
    const wire = WIRES[offer.wire];
    const path = wire.results({ ...batch, id: vendor });
    const seen = new Set<string>();
    let unreadable = 0;
    let strange = 0;
    const lines = new Lines(this.#api, record);
    const rows =
      path === undefined
        ? (wire.inline?.(batch) ?? [])
        : readLines((await this.send(record.provider, { method: 'GET', path })).body);
    for await (const line of rows) {
      const { id, body } = line ? wire.result(line) : { id: undefined, body: undefined };
      const key = id === undefined ? '' : hash(id);
      if (id === undefined) unreadable += 1;
      else if (seen.has(key) || !Object.hasOwn(held, key)) strange += 1;
      else {
        seen.add(key);
        if (body) await lines.pay(key, readResult(this.#api, offer, checked, body, held[key]));
      }
    }
    // The ids of unreadable lines are unknown, so an equal number of unseen requests is charged as reserved.
    for (const [key, most] of Object.entries(held)) {
      if (unreadable === 0) break;
      if (seen.has(key)) continue;
      unreadable -= 1;
      await lines.pay(key, { units: {}, cost: checked.cost === null ? undefined : most, estimated: true });
    }
    await lines.end();
    if (strange > 0)
      this.#api.log.warn(
        { batch: record.id, strange },
        'the provider returned duplicate results or results without a request',
      );
    return this.#end(record, wire.stored?.(batch) ?? batch, {
      durationMs: Math.max(0, Date.now() - record.facts.startedAt),
    });
  }

  /** Charges the reserved amount for requests with an unknown result. */
  async #chargeReserved(record: BatchRecord): Promise<void> {
    const lines = new Lines(this.#api, record);
    for (const [key, most] of Object.entries(record.held ?? {}))
      await lines.pay(key, { units: {}, cost: record.checked.cost === null ? undefined : most, estimated: true });
    await lines.end();
    await this.#end(record, record.batch, {});
    this.#api.log.warn({ batch: record.id }, 'the results of a batch could not be read; the reserved cost is charged');
  }

  async #end(record: BatchRecord, batch: JsonObject, facts: Partial<CallFacts>): Promise<BatchRecord> {
    const { held: _, ...rest } = record;
    const ended = { ...rest, batch };
    if (record.budgets) {
      const { account, callId } = record;
      const settled = { ...record.facts, outcome: 'ok', estimated: false, ...facts } as const;
      await this.#api.books.ledger.release(account, callId, settled);
    }
    await this.#records.batches.put(ended);
    await this.#records.ended(record.id);
    return ended;
  }
}

/** Cost of a response to one request: by its usage, otherwise the reserved amount. */
function readResult(
  api: Pick<PluginApi, 'models'>,
  offer: BatchOffer,
  { provider, model, dialect, cost }: BatchRecord['checked'],
  body: JsonObject,
  held = 0,
): Metered {
  const guessed: Metered = { units: {}, cost: cost === null ? undefined : held, estimated: true };
  try {
    const response = offer.response(dialect, body, { model, stream: false, created: 0, id: '' });
    return meteredOf(api, { provider, model }, offer.factor, response) ?? guessed;
  } catch (error) {
    if (!isStreamFailure(error)) throw error;
    // An error costs nothing; an unreadable response with usage does.
    return isObject(body['usage'] ?? body['usageMetadata']) ? guessed : { units: {}, cost: 0 };
  }
}

/** Requests that are charged together: stores write the changes of one turn of the event loop in one transaction. */
const PAGE_LINES = 500;

/** Charges the requests of a batch in pages. */
class Lines {
  readonly #api: Pick<PluginApi, 'books'>;
  readonly #record: BatchRecord;
  #page: (readonly [key: string, metered: Metered])[] = [];

  constructor(api: Pick<PluginApi, 'books'>, record: BatchRecord) {
    this.#api = api;
    this.#record = record;
  }

  /** Adds a request; returns a promise to wait for once the page is full. */
  async pay(key: string, metered: Metered): Promise<void> {
    this.#page.push([key, metered]);
    if (this.#page.length >= PAGE_LINES) await this.end();
  }

  /** Charges the last page. */
  async end(): Promise<void> {
    const page = this.#page;
    this.#page = [];
    await Promise.all(page.map(([key, metered]) => payLine(this.#api, this.#record, key, metered)));
  }
}

/** Charges one request exactly once, however often it is called. */
async function payLine(
  { books: { ledger } }: Pick<PluginApi, 'books'>,
  record: BatchRecord,
  key: string,
  { units, cost, parts, estimated = false }: Metered,
): Promise<void> {
  const { account, budgets, callId, checked } = record;
  if (!budgets) return;
  const now = Date.now();
  const facts: CallFacts = {
    ...record.facts,
    outcome: 'ok',
    serviceTier: 'batch',
    units,
    estimated,
    priced: cost !== undefined,
    provider: checked.provider,
    model: checked.model,
    ...(parts && { costParts: parts as readonly CostPart[] }),
  };
  const requestId = `${callId}.${key}`;
  const charge = { account, requestId, amount: cost ?? 0, facts, now };
  await ledger.reserve({
    ...charge,
    floor: Number.NEGATIVE_INFINITY,
    expiresAt: now + LINE_HOLD_MS,
    budgets: budgets.map((budget) => ({ ...budget, limit: Number.POSITIVE_INFINITY })),
  });
  await ledger.settle(charge);
}
