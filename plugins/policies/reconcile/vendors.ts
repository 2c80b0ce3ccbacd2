import {
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  parseJson,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';

/** Vendors' usage and charges, read from their usage and cost APIs. */

/** Quantities by the units of our records: `input_tokens`, `web_search_requests`, … */
export type Quantities = Readonly<Record<string, number>>;

/** Usage of one day, model, tier and key by the vendor's count. */
export interface Counted {
  /** `2026-11-01`, in UTC. */
  readonly day: string;
  /** Vendor's name of the model. */
  readonly model: string;
  /** Vendor's project or workspace and key, if reported. */
  readonly owner: string;
  readonly tier: string;
  /** Undefined if the vendor does not count calls. */
  readonly calls: number | undefined;
  readonly units: Quantities;
}

/** Vendor's charge for one day and model. */
export interface Charged {
  readonly day: string;
  /** Empty for charges of all models together. */
  readonly model: string;
  /** Undefined if charged for all units together. */
  readonly unit: string | undefined;
  /** US dollars. */
  readonly usd: number;
}

export interface VendorBill {
  readonly counted: readonly Counted[];
  readonly charged: readonly Charged[];
  /** Notes on the data. */
  readonly notes: readonly string[];
  /** True if the vendor counts all prompt tokens together, cached or not, and charges one sum for prompt and output. */
  readonly isCoarse: boolean;
  /** False if the vendor reports no costs. */
  readonly isPriced: boolean;
}

/** Access to a vendor's API, as configured. */
export interface VendorAccess {
  readonly adminKey?: string;
  readonly baseUrl: string;
  readonly projects: readonly string[];
  readonly keys: readonly string[];
}

/** Whole days in UTC, from `from` (inclusive) to `to` (exclusive). */
export interface Days {
  readonly from: number;
  readonly to: number;
}

type Reader = (get: Get, access: VendorAccess, days: Days) => Promise<VendorBill>;
/** Fetches a JSON document below the vendor's base URL. */
type Get = (path: string, query: URLSearchParams) => Promise<JsonObject>;

export const DAY_MS = 86_400_000;

/** Maximum pages of one report, and total rows: more indicates an error, or too long a range. */
const MAX_PAGES = 400;
const MAX_ROWS = 200_000;
const TIMEOUT_MS = 30_000;

const VENDORS = Object.freeze({
  openai: { read: readOpenAi, headers: (key: string) => ({ authorization: `Bearer ${key}` }) },
  anthropic: {
    read: readAnthropic,
    headers: (key: string) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  },
  openrouter: { read: readOpenRouter, headers: (key: string) => ({ authorization: `Bearer ${key}` }) },
} as const satisfies Readonly<
  Record<string, { read: Reader; headers: (key: string) => Readonly<Record<string, string>> }>
>);

export type VendorName = keyof typeof VENDORS;

/** Reads the bill of a vendor. Rejects with the reason of a failure, never with a key. */
export function readBill(
  api: Pick<PluginApi, 'http'>,
  vendor: VendorName,
  access: VendorAccess,
  days: Days,
): Promise<VendorBill> {
  const { adminKey, baseUrl } = access;
  const { read, headers } = VENDORS[vendor];
  if (adminKey === undefined)
    throw new GatewayError(
      'provider_not_configured',
      `no key for the usage of ${vendor}\nSet policies.reconcile.${vendor}.adminKey, such as $\{${vendor.toUpperCase()}_ADMIN_KEY}: an admin key, not one for calls.`,
    );
  const get: Get = async (path, query) => {
    const http = await api.http();
    const url = `${baseUrl.replace(/\/+$/, '')}${path}?${query}`;
    const { statusCode, body } = await http
      .get(url, { headers: headers(adminKey), throwHttpErrors: false, timeout: { request: TIMEOUT_MS } })
      .catch((cause: unknown) => {
        throw new GatewayError(
          'provider_unavailable',
          `${vendor} cannot be reached for its usage (${path}). Try again later`,
          { cause },
        );
      });
    const value = parseJson(body);
    if (statusCode === 200 && isObject(value)) return value;
    throw refusedBy(vendor, path, statusCode, value);
  };
  return read(get, access, days);
}

function refusedBy(vendor: VendorName, path: string, status: number, body: unknown): GatewayError {
  if (status === 200) return strange(vendor, path, 'it is not a JSON object');
  const { error } = readObject(body);
  const said = readString(readObject(error)['message']) ?? readString(error) ?? '';
  const what = `${vendor} returned status ${status} for its usage (${path})${said && `: ${said.slice(0, 200)}`}`;
  if (status === 429 || status >= 500) return new GatewayError('provider_unavailable', `${what}\nTry again later.`);
  return new GatewayError(
    'invalid_request',
    `${what}\nUse an admin key of the organization (policies.reconcile.${vendor}.adminKey) and days that the vendor still stores.`,
  );
}

function strange(vendor: string, path: string, why: string): GatewayError {
  return new GatewayError('provider_invalid_response', `the usage report of ${vendor} (${path}) is invalid: ${why}`);
}

/** Time buckets of a report, over all its pages. */
async function* bucketsOf(get: Get, path: string, query: URLSearchParams): AsyncGenerator<JsonObject> {
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, has_more: hasMore, next_page: next } = await get(path, query);
    if (!Array.isArray(data)) throw strange('the vendor', path, '"data" is not a list');
    for (const bucket of data) yield readObject(bucket);
    if (hasMore !== true || typeof next !== 'string') return;
    query.set('page', next);
  }
  throw strange('the vendor', path, `it has more than ${MAX_PAGES} pages; use fewer days`);
}

/** Reads a count of a vendor; 0 if it is missing. */
function count(row: JsonObject, name: string): number {
  const value = row[name] ?? 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw strange('the vendor', name, `${JSON.stringify(value)} is not a count`);
}

/** Reads an amount of money, negative for a refund. */
function amount(value: unknown, name: string): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number === 'number' && Math.abs(number) < 1e9) return number;
  throw strange('the vendor', name, `${JSON.stringify(value)} is not an amount`);
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const ownerOf = (...names: readonly unknown[]): string => names.map(text).filter(Boolean).join(' ') || '-';

/** Removes zero quantities. */
function quantities(all: Quantities): Quantities {
  return Object.fromEntries(Object.entries(all).filter(([, quantity]) => quantity > 0));
}

function collect<T>(rows: T[], row: T): void {
  if (rows.push(row) > MAX_ROWS)
    throw new GatewayError('invalid_request', `the vendor returned more than ${MAX_ROWS} rows\nUse fewer days.`);
}

/** Creates a query with repeated parameters. */
function queryOf(
  one: Readonly<Record<string, string>>,
  several: Readonly<Record<string, readonly string[]>>,
): URLSearchParams {
  const query = new URLSearchParams(one);
  for (const [name, values] of Object.entries(several)) for (const value of values) query.append(name, value);
  return query;
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** @see https://platform.openai.com/docs/api-reference/usage */
async function readOpenAi(get: Get, { projects, keys }: VendorAccess, { from, to }: Days): Promise<VendorBill> {
  const counted: Counted[] = [];
  const charged: Charged[] = [];
  const range = { start_time: String(from / 1000), end_time: String(to / 1000), bucket_width: '1d' };
  const only = { project_ids: projects, api_key_ids: keys };
  const usage = async (
    kind: string,
    limit: string,
    by: readonly string[],
    unitsOf: (row: JsonObject) => Quantities,
  ) => {
    const query = queryOf({ ...range, limit }, { ...only, group_by: ['project_id', 'api_key_id', 'model', ...by] });
    for await (const { start_time: start, results } of bucketsOf(get, `/v1/organization/usage/${kind}`, query))
      for (const row of readArray(results).map(readObject)) {
        const { batch, service_tier: tier, project_id: project, api_key_id: key, model } = row;
        const calls = kind === 'web_search_calls' ? 0 : count(row, 'num_model_requests');
        collect(counted, {
          day: dayOf(Number(start) * 1000),
          model: text(model),
          owner: ownerOf(project, key),
          calls,
          tier: batch === true ? 'batch' : tierName(text(tier)),
          units: quantities(unitsOf(row)),
        });
      }
  };
  await usage('completions', '31', ['batch', 'service_tier'], openAiUnits);
  await usage('embeddings', '31', [], (row) => ({ input_tokens: count(row, 'input_tokens') }));
  await usage('web_search_calls', '31', [], (row) => ({ web_search_requests: count(row, 'num_requests') }));
  const costs = queryOf({ ...range, limit: '180' }, { ...only, group_by: ['line_item'] });
  for await (const { start_time: start, results } of bucketsOf(get, '/v1/organization/costs', costs))
    for (const row of readArray(results).map(readObject)) {
      const { value, currency } = readObject(row['amount']);
      if (text(currency).toLowerCase() !== 'usd') throw strange('openai', 'costs', 'it does not charge in US dollars');
      const day = dayOf(Number(start) * 1000);
      collect(charged, { day, ...lineItem(text(row['line_item'])), usd: amount(value, 'amount') });
    }
  const notes = [
    'Speech, images, file searches and code sessions are in other reports of OpenAI, which are not compared.',
  ];
  return { counted, charged, notes, isCoarse: false, isPriced: true };
}

/** Our records count audio separately, so it is subtracted from the counts of all modalities. */
function openAiUnits(row: JsonObject): Quantities {
  const [audio, cachedAudio] = [count(row, 'input_audio_tokens'), count(row, 'input_cached_audio_tokens')];
  const [audioOut, imageOut] = [count(row, 'output_audio_tokens'), count(row, 'output_image_tokens')];
  const [cached, written] = [count(row, 'input_cached_tokens'), count(row, 'input_cache_write_tokens')];
  const long = count(row, 'input_cache_write_12h_tokens');
  const uncached = count(row, 'input_tokens') - cached - written - long;
  return {
    input_tokens: uncached - audio,
    cached_tokens: cached - cachedAudio,
    cache_write_tokens: written,
    cache_write_12h_tokens: long,
    audio_input_tokens: audio,
    cached_audio_tokens: cachedAudio,
    audio_output_tokens: audioOut,
    image_output_tokens: imageOut,
    output_tokens: count(row, 'output_tokens') - audioOut - imageOut,
  };
}

/** Parses an invoice line: `gpt-5.5-2026-04-23, cached input`. */
function lineItem(name: string): Pick<Charged, 'model' | 'unit'> {
  const at = name.lastIndexOf(', ');
  const words = (at === -1 ? name : name.slice(at + 2)).toLowerCase();
  const unit = UNIT_WORDS.find(([pattern]) => pattern.test(words))?.[1];
  if (at !== -1) return { model: name.slice(0, at), unit: unit ?? words };
  // Either a tool of all models, or a model with all of its units.
  return unit === undefined ? { model: name, unit: undefined } : { model: '', unit };
}

const UNIT_WORDS: readonly (readonly [words: RegExp, unit: string])[] = Object.freeze([
  [/web search/, 'web_search_requests'],
  [/file search/, 'file_search_requests'],
  [/code interpreter/, 'code_interpreter_calls'],
  [/cached.*audio|audio.*cached/, 'cached_audio_tokens'],
  [/audio.*output|output.*audio/, 'audio_output_tokens'],
  [/audio/, 'audio_input_tokens'],
  [/image.*output|output.*image/, 'image_output_tokens'],
  [/cache.?writ.*12/, 'cache_write_12h_tokens'],
  [/cache.?writ/, 'cache_write_tokens'],
  [/cached/, 'cached_tokens'],
  [/\boutput\b/, 'output_tokens'],
  [/\binput\b/, 'input_tokens'],
]);

/** Normalises tier names: one for the default tier, and the current one of the renamed tier. */
export function tierName(tier: string): string {
  if (['', 'auto', 'default', 'standard', 'standard_only'].includes(tier)) return 'default';
  return tier === 'priority' ? 'fast' : tier;
}

/** @see https://platform.claude.com/docs/en/build-with-claude/usage-cost-api */
async function readAnthropic(get: Get, { projects, keys }: VendorAccess, { from, to }: Days): Promise<VendorBill> {
  const counted: Counted[] = [];
  const charged: Charged[] = [];
  const [starting_at, ending_at] = [from, to].map((at) => new Date(at).toISOString());
  const range = { starting_at: starting_at ?? '', ending_at: ending_at ?? '', bucket_width: '1d', limit: '31' };
  const by = ['workspace_id', 'api_key_id', 'model', 'service_tier'];
  const only = { 'workspace_ids[]': projects, 'api_key_ids[]': keys };
  const usage = queryOf(range, { ...only, 'group_by[]': by });
  for await (const { starting_at: start, results } of bucketsOf(get, '/v1/organizations/usage_report/messages', usage))
    for (const row of readArray(results).map(readObject)) {
      const { workspace_id: workspace, api_key_id: key, model, service_tier: tier } = row;
      const written = readObject(row['cache_creation']);
      collect(counted, {
        day: text(start).slice(0, 10),
        model: text(model),
        owner: ownerOf(workspace, key),
        calls: undefined,
        tier: tierName(text(tier)),
        units: quantities({
          input_tokens: count(row, 'uncached_input_tokens'),
          cached_tokens: count(row, 'cache_read_input_tokens'),
          cache_write_tokens: count(written, 'ephemeral_5m_input_tokens'),
          cache_write_1h_tokens: count(written, 'ephemeral_1h_input_tokens'),
          output_tokens: count(row, 'output_tokens'),
          web_search_requests: count(readObject(row['server_tool_use']), 'web_search_requests'),
        }),
      });
    }
  const notes = ['Anthropic reports tokens, not calls, and no cost of the priority tier.'];
  if (keys.length > 0) {
    notes.push('Anthropic reports costs by workspace, not by key; with "keys" only quantities are compared.');
    return { counted, charged, notes, isCoarse: false, isPriced: false };
  }
  const costs = queryOf(range, { 'group_by[]': ['workspace_id', 'description'] });
  for await (const { starting_at: start, results } of bucketsOf(get, '/v1/organizations/cost_report', costs))
    for (const row of readArray(results).map(readObject)) {
      const { workspace_id: workspace, model, token_type: token, cost_type: type, currency } = row;
      if (projects.length > 0 && !projects.includes(text(workspace))) continue;
      if (currency !== 'USD') throw strange('anthropic', 'cost_report', 'it does not charge in US dollars');
      const unit = ANTHROPIC_UNITS[text(token)] ?? (type === 'web_search' ? 'web_search_requests' : text(type));
      // Amounts are cents, as texts.
      collect(charged, {
        day: text(start).slice(0, 10),
        model: text(model),
        unit: unit || undefined,
        usd: amount(row['amount'], 'amount') / 100,
      });
    }
  return { counted, charged, notes, isCoarse: false, isPriced: true };
}

const ANTHROPIC_UNITS: Readonly<Record<string, string>> = Object.freeze({
  uncached_input_tokens: 'input_tokens',
  cache_read_input_tokens: 'cached_tokens',
  'cache_creation.ephemeral_5m_input_tokens': 'cache_write_tokens',
  'cache_creation.ephemeral_1h_input_tokens': 'cache_write_1h_tokens',
  output_tokens: 'output_tokens',
});

/** @see https://openrouter.ai/docs/api/api-reference/analytics/get-user-activity */
async function readOpenRouter(get: Get, { projects, keys }: VendorAccess, { from, to }: Days): Promise<VendorBill> {
  const counted: Counted[] = [];
  const charged: Charged[] = [];
  for (let at = from; at < to; at += DAY_MS)
    for (const key of keys.length > 0 ? keys : [undefined]) {
      const one = { date: dayOf(at), group_by: 'workspace', ...(key !== undefined && { api_key_hash: key }) };
      const { data } = await get('/api/v1/activity', new URLSearchParams(one));
      if (!Array.isArray(data)) throw strange('openrouter', 'activity', '"data" is not a list');
      for (const row of data.map(readObject)) {
        const { workspace_id: workspace, model } = row;
        if (projects.length > 0 && !projects.includes(text(workspace))) continue;
        const day = dayOf(at);
        collect(counted, {
          day,
          model: text(model),
          owner: ownerOf(workspace, key),
          tier: 'default',
          calls: count(row, 'requests'),
          units: quantities({
            prompt_tokens: count(row, 'prompt_tokens'),
            completion_tokens: count(row, 'completion_tokens'),
          }),
        });
        collect(charged, { day, model: text(model), unit: undefined, usd: amount(row['usage'], 'usage') });
      }
    }
  const notes = [
    'OpenRouter reports one sum per day and model, no unit prices, and the last 30 completed days. Costs of your own keys at its vendors are not included.',
  ];
  return { counted, charged, notes, isCoarse: true, isPriced: true };
}
