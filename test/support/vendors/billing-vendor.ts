/**
 * Usage and cost APIs of vendors, with usage and charges set by a test. Sources:
 * - OpenAI, https://platform.openai.com/docs/api-reference/usage and its OpenAPI document 2.3.0
 * (`/organization/usage/completions`, `/embeddings`, `/web_search_calls`, `/organization/costs`): repeated `group_by`,
 * Unix seconds, buckets of a day, pages by `next_page`, null for ungrouped fields
 * - Anthropic, https://platform.claude.com/docs/en/api/admin/usage_report/retrieve_messages and
 * `…/cost_report/retrieve`: `group_by[]`, RFC 3339, at most 31 buckets, amounts in cents as texts, no model for
 * searches
 * - OpenRouter, its OpenAPI document (`GET /activity`): one day per request, one sum per model
 */
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** Calls of one day, model, key and tier. */
export interface Served {
  readonly day: string;
  readonly model: string;
  readonly project?: string;
  readonly key?: string;
  readonly tier?: string;
  readonly calls: number;
  /** Units by the names in the gateway's records. */
  readonly units: Readonly<Record<string, number>>;
  /** US dollars for each of the units. */
  readonly usd: Readonly<Record<string, number>>;
}

export interface BillingVendor {
  readonly url: string;
  /** Requested paths with their queries. */
  readonly requests: readonly string[];
  serve(...served: readonly Served[]): void;
  /** Sends these bytes as every response; undefined ends that. */
  respond(with_: { readonly status: number; readonly body: string } | undefined): void;
  close(): Promise<void>;
}

export const ADMIN_KEY = 'sk-admin-0123456789';

type Row = Readonly<Record<string, unknown>>;
interface ReportQuery {
  readonly path: string;
  readonly query: URLSearchParams;
}

export async function startBillingVendor(): Promise<BillingVendor> {
  const requests: string[] = [];
  let served: readonly Served[] = [];
  let reply: { readonly status: number; readonly body: string } | undefined;
  const server = http.createServer((request, response) => {
    requests.push(request.url ?? '');
    const url = new URL(request.url ?? '/', 'http://vendor');
    const { headers } = request;
    const send = (status: number, body: unknown): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(typeof body === 'string' ? body : JSON.stringify(body));
    if (reply) return send(reply.status, reply.body);
    const isAnthropic = url.pathname.startsWith('/v1/organizations/');
    const key = isAnthropic ? headers['x-api-key'] : headers.authorization?.replace('Bearer ', '');
    if (key !== ADMIN_KEY) return send(401, { error: { message: 'Only admin keys can do this.' } });
    if (isAnthropic && headers['anthropic-version'] === undefined)
      return send(400, { error: { message: 'anthropic-version: header is required' } });
    const made = respond({ path: url.pathname, query: url.searchParams }, served);
    send(made === undefined ? 404 : 200, made ?? { error: { message: 'Not found' } });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    serve(...all) {
      served = all;
    },
    respond(with_) {
      reply = with_;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function respond({ path, query }: ReportQuery, all: readonly Served[]): unknown {
  if (path === '/api/v1/activity') return { data: activity(query, all) };
  const isAnthropic = path.startsWith('/v1/organizations/');
  const make = REPORTS[path];
  if (!make) return undefined;
  const [from, to] = isAnthropic
    ? ['starting_at', 'ending_at'].map((name) => Date.parse(query.get(name) ?? ''))
    : ['start_time', 'end_time'].map((name) => Number(query.get(name)) * 1000);
  const projects = query.getAll(isAnthropic ? 'workspace_ids[]' : 'project_ids');
  const keys = query.getAll(isAnthropic ? 'api_key_ids[]' : 'api_key_ids');
  const wanted = all.filter(
    ({ project = '', key = '' }) =>
      (projects.length === 0 || projects.includes(project)) && (keys.length === 0 || keys.includes(key)),
  );
  const days: number[] = [];
  for (let at = from ?? 0; at < (to ?? 0); at += 86_400_000) days.push(at);
  // Smaller pages than requested, as vendors may return: each has two days.
  const first = Number(query.get('page')?.replace('page_', '') ?? 0);
  const page = days.slice(first, first + 2);
  const by = new Set(query.getAll(isAnthropic ? 'group_by[]' : 'group_by'));
  const data = page.map((at) => {
    const day = new Date(at).toISOString();
    const rows = wanted.filter((row) => row.day === day.slice(0, 10));
    const results = make(rows, by);
    return isAnthropic
      ? { starting_at: day, ending_at: new Date(at + 86_400_000).toISOString(), results }
      : { object: 'bucket', start_time: at / 1000, end_time: at / 1000 + 86_400, results };
  });
  const isMore = first + 2 < days.length;
  return { object: 'page', data, has_more: isMore, next_page: isMore ? `page_${first + 2}` : null };
}

type Make = (rows: readonly Served[], by: ReadonlySet<string>) => readonly Row[];

const unit = ({ units }: Served, name: string): number => units[name] ?? 0;
const isEmbedding = ({ model }: Served): boolean => model.startsWith('text-embedding');

/** Adds up rows with the same values in the grouping fields; other fields are null. */
function grouped(
  rows: readonly Served[],
  by: ReadonlySet<string>,
  names: (row: Served) => Row,
  counts: (row: Served) => Readonly<Record<string, number>>,
): readonly Row[] {
  const groups = new Map<string, { readonly names: Row; readonly counts: Record<string, number> }>();
  for (const row of rows) {
    const own = Object.fromEntries(
      Object.entries(names(row)).map(([name, value]) => [name, by.has(name) ? value : null]),
    );
    const id = JSON.stringify(own);
    const group = groups.get(id) ?? { names: own, counts: {} };
    groups.set(id, group);
    for (const [name, value] of Object.entries(counts(row))) group.counts[name] = (group.counts[name] ?? 0) + value;
  }
  return [...groups.values()].map((group) => ({ ...group.names, ...group.counts }));
}

const openAiNames = ({ project, key, model, tier = 'default' }: Served): Row => ({
  ...{
    project_id: project ?? null,
    user_id: null,
    api_key_id: key ?? null,
    model,
    batch: tier === 'batch',
    service_tier: tier,
  },
});

const completions: Make = (rows, by) =>
  grouped(
    rows.filter((row) => !isEmbedding(row)),
    by,
    openAiNames,
    (row) => {
      const [cached, written] = [unit(row, 'cached_tokens'), unit(row, 'cache_write_tokens')];
      const [long, audio] = [unit(row, 'cache_write_12h_tokens'), unit(row, 'audio_input_tokens')];
      return {
        input_tokens: unit(row, 'input_tokens') + cached + written + long + audio,
        input_uncached_tokens: unit(row, 'input_tokens') + audio,
        ...{ input_cached_tokens: cached, input_cache_write_tokens: written, input_cache_write_12h_tokens: long },
        input_audio_tokens: audio,
        output_tokens: unit(row, 'output_tokens') + unit(row, 'audio_output_tokens'),
        ...{ output_audio_tokens: unit(row, 'audio_output_tokens'), num_model_requests: row.calls },
      };
    },
  );

const WORDS: Readonly<Record<string, string>> = Object.freeze({
  ...{
    input_tokens: 'input',
    cached_tokens: 'cached input',
    cache_write_tokens: 'cache writes',
    cache_write_12h_tokens: 'cache writes - 12hr',
    output_tokens: 'output',
  },
  ...{ audio_input_tokens: 'audio input', audio_output_tokens: 'audio output' },
});

/** Line items are a model and a unit; searches have no model. */
const costs: Make = (rows) => {
  const sums = new Map<string, number>();
  for (const row of rows)
    for (const [name, usd] of Object.entries(row.usd)) {
      const item = name === 'web_search_requests' ? 'web search tool calls' : `${row.model}, ${WORDS[name] ?? name}`;
      sums.set(item, (sums.get(item) ?? 0) + usd);
    }
  return [...sums].map(([line_item, value]) => ({
    ...{ object: 'organization.costs.result', amount: { value, currency: 'usd' }, line_item, project_id: null },
  }));
};

const messages: Make = (rows, by) =>
  grouped(
    rows,
    by,
    ({ project = null, key = null, model, tier = 'standard' }) => ({
      ...{ workspace_id: project, api_key_id: key, model, service_tier: tier, context_window: null },
    }),
    (row) => ({ ...row.units }),
  ).map(({ workspace_id, api_key_id, model, service_tier, context_window, ...units }) => ({
    ...{ workspace_id, api_key_id, model, service_tier, context_window },
    uncached_input_tokens: units['input_tokens'] ?? 0,
    cache_read_input_tokens: units['cached_tokens'] ?? 0,
    cache_creation: {
      ephemeral_5m_input_tokens: units['cache_write_tokens'] ?? 0,
      ephemeral_1h_input_tokens: units['cache_write_1h_tokens'] ?? 0,
    },
    output_tokens: units['output_tokens'] ?? 0,
    server_tool_use: { web_search_requests: units['web_search_requests'] ?? 0 },
  }));

const TOKEN_TYPES: Readonly<Record<string, string>> = Object.freeze({
  input_tokens: 'uncached_input_tokens',
  cached_tokens: 'cache_read_input_tokens',
  cache_write_tokens: 'cache_creation.ephemeral_5m_input_tokens',
  cache_write_1h_tokens: 'cache_creation.ephemeral_1h_input_tokens',
  output_tokens: 'output_tokens',
});

const costReport: Make = (rows) =>
  rows.flatMap(({ project = null, model, usd }) =>
    Object.entries(usd).map(([name, dollars]) => {
      const isSearch = name === 'web_search_requests';
      return {
        ...{ currency: 'USD', amount: String(dollars * 100), workspace_id: project },
        ...{ cost_type: isSearch ? 'web_search' : 'tokens', description: isSearch ? 'Web Search Usage' : model },
        ...{ model: isSearch ? null : model, token_type: isSearch ? null : TOKEN_TYPES[name] },
      };
    }),
  );

const REPORTS: Readonly<Record<string, Make>> = Object.freeze({
  '/v1/organization/usage/completions': completions,
  '/v1/organization/usage/embeddings': (rows, by) =>
    grouped(rows.filter(isEmbedding), by, openAiNames, (row) => ({
      ...{ input_tokens: unit(row, 'input_tokens'), num_model_requests: row.calls },
    })),
  '/v1/organization/usage/web_search_calls': (rows, by) =>
    grouped(
      rows.filter((row) => unit(row, 'web_search_requests') > 0),
      by,
      openAiNames,
      (row) => ({ num_requests: unit(row, 'web_search_requests'), num_model_requests: row.calls }),
    ),
  '/v1/organization/costs': costs,
  '/v1/organizations/usage_report/messages': messages,
  '/v1/organizations/cost_report': costReport,
});

function activity(query: URLSearchParams, all: readonly Served[]): readonly Row[] {
  const [date, hash] = [query.get('date'), query.get('api_key_hash')];
  const wanted = all.filter(({ day, key }) => day === date && (hash === null || key === hash));
  return grouped(
    wanted,
    new Set(['date', 'model', 'model_permaslug', 'endpoint_id', 'provider_name', 'workspace_id']),
    ({ day, model, project = 'default' }) => ({
      ...{ date: day, model, model_permaslug: `${model}-2026-04-23`, endpoint_id: 'e', provider_name: 'P' },
      workspace_id: project,
    }),
    (row) => ({
      ...{ requests: row.calls, prompt_tokens: unit(row, 'prompt_tokens'), reasoning_tokens: 0 },
      completion_tokens: unit(row, 'completion_tokens'),
      usage: Object.values(row.usd).reduce((sum, usd) => sum + usd, 0),
      byok_usage_inference: 0,
    }),
  );
}
