import {
  GatewayError,
  isObject,
  type ModelInfo,
  type ModelTable,
  type PluginApi,
  type Price,
  type PriceRow,
} from '../../../contract/index.ts';
import { feesAreMore, isDearer } from '../kit/index.ts';

/** Model updates from vendors and a published table: fetched, checked, compared with current data, and stored. */

/** Difference between current data and a source. */
export interface Change {
  readonly model: string;
  /** Example: `shutdown` or `price.input`; `new` for an unknown model. */
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
  /** True for a part of a higher price, which is only applied if the operator accepts it. */
  readonly is_dearer: boolean;
}

/** Changes from one source. */
export interface Plan {
  readonly source: string;
  readonly changes: readonly Change[];
  /** Stores the data; a higher price is ignored if not accepted. */
  take(acceptDearer: boolean): Promise<void>;
}

/** Stored data, by source. */
interface StoredTable {
  readonly table: ModelTable;
  /** Unix milliseconds. */
  readonly at: number;
}
interface StoredList {
  readonly models: readonly ModelInfo[];
  readonly at: number;
}

type UpdateApi = Pick<PluginApi, 'models' | 'http' | 'keyv' | 'operators'>;

const TABLE = 'table';
const tables = (api: UpdateApi) => api.keyv<StoredTable>('tables');
const lists = (api: UpdateApi) => api.keyv<StoredList>('models');

/** Activates stored data that is newer than the shipped table; returns the active table. */
export async function useStored(
  api: UpdateApi,
  shipped: ModelTable = api.models.tables.shipped(),
): Promise<ModelTable> {
  const stored = await tables(api).get(TABLE);
  const isNewer = stored !== undefined && (stored.table.version ?? 0) > (shipped.version ?? 0);
  const table = isNewer ? stored.table : shipped;
  if (isNewer) api.operators.useModelTable(table);
  const names = api.models.catalog.providers();
  const found = await Promise.all(names.map((name) => lists(api).get(name)));
  for (const [at, name] of names.entries()) {
    const list = found[at];
    if (!list) continue;
    // Facts of a newer table override an older list; its names stay valid.
    const isOld = list.at < Date.parse(table.date ?? '');
    learn(api, name, isOld ? list.models.map(({ id }) => ({ id })) : list.models);
  }
  return table;
}

/** Time of a source's last update, in Unix milliseconds; undefined for never. */
export async function storedAt(api: UpdateApi, provider?: string): Promise<number | undefined> {
  return (await (provider === undefined ? tables(api).get(TABLE) : lists(api).get(provider)))?.at;
}

/** An operator's own list is complete, except when the vendor's list is to be added. */
function learn({ models: { catalog, offers } }: UpdateApi, name: string, models: readonly ModelInfo[]): void {
  const offer = offers('chat').get(name);
  if (!offer) return;
  const own =
    offer.models && !offer.anyModel && offer.refreshModelsMs === undefined ? new Set(catalog.list(name)) : undefined;
  catalog.learn(name, own ? models.filter(({ id }) => own.has(id)) : models);
}

/** Compares a vendor's list with the known models. */
export async function planList(api: UpdateApi, provider: string): Promise<Plan> {
  const models = await api.models.listAtProvider(provider);
  const where = `the list of ${provider}`;
  if (models.length === 0) throw refused(where, 'has no models');
  const problems = api.models.tables.problemsOfModels(models);
  if (problems.length > 0) throw refused(where, `is invalid: ${problems.join('; ')}`);
  const listed = new Set(api.models.catalog.list(provider));
  const known = (id: string): ModelInfo | undefined =>
    listed.has(id) ? api.models.catalog.find(provider, id) : undefined;
  const gone = ((await lists(api).get(provider))?.models ?? []).filter(
    ({ id }) => !models.some((model) => model.id === id),
  );
  return {
    source: where,
    changes: [
      ...models.flatMap((model) =>
        changesOf(`${provider}/${model.id}`, known(model.id), { ...known(model.id), ...model }),
      ),
      ...gone.map(({ id }) => ({
        model: `${provider}/${id}`,
        field: 'listed',
        before: 'yes',
        after: 'no',
        is_dearer: false,
      })),
    ],
    async take(acceptDearer) {
      const taken = models.map((model) => withPrice(known(model.id), model, acceptDearer));
      await lists(api).set(provider, { models: taken, at: Date.now() });
    },
  };
}

/** Compares a published table with the current one. */
export async function planTable(api: UpdateApi, url: string, base: ModelTable): Promise<Plan> {
  const where = 'the table of models';
  const response = await (await api.http()).get(url, { responseType: 'json' });
  if (response.statusCode !== 200)
    throw refused(where, `was not found: its URL returned status ${response.statusCode}`);
  const body: unknown = response.body;
  const problems = api.models.tables.problemsOfTable(body);
  if (problems.length > 0) throw refused(where, `is invalid: ${problems.join('; ')}`);
  const next = body as ModelTable;
  if ((next.version ?? 0) < (base.version ?? 0))
    throw refused(where, `has the version ${next.version}, older than ${base.version} in use`);
  const changes: Change[] = [];
  mergeTables(base, next, true, changes);
  return {
    source: where,
    changes,
    take: async (acceptDearer) => {
      await tables(api).set(TABLE, { table: mergeTables(base, next, acceptDearer, []), at: Date.now() });
    },
  };
}

/** Merges a table over another one: missing rows stay. */
function mergeTables(base: ModelTable, next: ModelTable, acceptDearer: boolean, changes: Change[]): ModelTable {
  const vendors = new Map(Object.entries(base.vendors));
  for (const [vendor, rows] of Object.entries(next.vendors)) {
    const known = vendors.get(vendor);
    if (typeof rows === 'string' || typeof known === 'string') {
      if (known === undefined) vendors.set(vendor, rows);
      continue;
    }
    const merged = new Map(Object.entries(known ?? {}));
    for (const [id, facts] of Object.entries(rows)) {
      const before = merged.get(id);
      changes.push(...changesOf(`${vendor}/${id}`, before && { id, ...before }, { id, ...facts }));
      merged.set(id, withPrice(before, facts, acceptDearer));
    }
    vendors.set(vendor, Object.fromEntries(merged));
  }
  const families = new Map(Object.entries(base.families ?? {}));
  for (const [vendor, family] of Object.entries(next.families ?? {})) {
    const before = families.get(vendor);
    const isMore =
      feesAreMore(before?.fees, family.fees) ||
      feesAreMore(before?.regions, family.regions) ||
      Object.entries(family.endings ?? {}).some(([ending, { price }]) =>
        isDearer(before?.endings?.[ending]?.price, price),
      );
    changes.push(...compare(`${vendor}/*`, before ?? {}, family, isMore));
    families.set(vendor, isMore && !acceptDearer ? (before ?? family) : family);
  }
  const { note: _, ...rest } = { note: undefined, ...next };
  return { ...rest, vendors: Object.fromEntries(vendors), families: Object.fromEntries(families) };
}

/** New facts of a model; a higher price that was not accepted is replaced by the former one. */
function withPrice<Facts extends Pick<ModelInfo, 'price'>>(
  before: Pick<ModelInfo, 'price'> | undefined,
  facts: Facts,
  acceptDearer: boolean,
): Facts {
  const { price } = before ?? {};
  return !acceptDearer && price && isDearer(price, facts.price) ? { ...facts, price } : facts;
}

function changesOf(model: string, before: ModelInfo | undefined, after: ModelInfo): readonly Change[] {
  if (!before) return [{ model, field: 'new', before: null, after: describe(after), is_dearer: false }];
  return compare(model, before, after, isDearer(before.price, after.price));
}

/** Lists the fields that differ. If a part of a price rises, all parts are applied or none. */
function compare(model: string, before: object, after: object, dearer: boolean): readonly Change[] {
  const [was, is] = [flatten(before), flatten(after)];
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((field) => {
    const [old, next] = [was.get(field) ?? null, is.get(field) ?? null];
    if (old === next) return [];
    const isPart = /^(price|fees|regions|endings)\b/.test(field);
    return [{ model, field, before: old, after: next, is_dearer: dearer && isPart }];
  });
}

const ORIGIN = ['id', 'source', 'priceSource', 'priceCheck'];

/** Flattens facts to texts by path; their origin is ignored. */
function flatten(value: unknown, path = ''): ReadonlyMap<string, string> {
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object'))
    return new Map([[path, value.join(', ')]]);
  if (typeof value !== 'object' || value === null) return new Map([[path, String(value)]]);
  return new Map(
    Object.entries(value)
      .filter(([key, each]) => each !== undefined && (path !== '' || !ORIGIN.includes(key)))
      .flatMap(([key, each]) => [...flatten(each, path === '' ? key : `${path}.${key}`)]),
  );
}

function describe({ contextWindow, shutdown, price }: ModelInfo): string {
  const [first] = (price && 'length' in price ? price : [price]) as readonly (Price | PriceRow | undefined)[];
  return [
    first ? `${first.input} in, ${first.output} out USD/M tokens` : 'no price',
    ...(contextWindow === undefined ? [] : [`${contextWindow} tokens`]),
    ...(shutdown === undefined ? [] : [`ends ${shutdown}`]),
  ].join(', ');
}

function refused(where: string, what: string): GatewayError {
  return new GatewayError('provider_invalid_response', `${where} ${what}; known data stays in use`);
}

/** Reason why a source is unavailable, in a few words without an address. */
export function reasonOf(error: unknown): string {
  if (error instanceof GatewayError) return error.message;
  const { name = 'unknown', response } = (isObject(error) || error instanceof Error ? error : {}) as {
    readonly name?: string;
    readonly response?: { readonly statusCode?: number };
  };
  if (name === 'HTTPError') return `it returned status ${response?.statusCode}`;
  if (name === 'CancelError') return 'it returned more than 16 MiB';
  if (name === 'ParseError') return 'it returned a response that is not JSON or has too many values';
  return name;
}
