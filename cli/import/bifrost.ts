import { isDeepStrictEqual } from 'node:util';
import {
  createDraft,
  type Draft,
  type DraftTarget,
  type FieldRule,
  type Fields,
  type Imported,
  importedVariable,
  listOf,
  type Options,
  objectOf,
  recordFields,
} from './draft.ts';
import { findVendor } from './vendors.ts';

/**
 * Reads a `config.json` of Bifrost. Its callers write `provider/model`, which needs no change. A provider with several
 * keys becomes one instance per key and one alias per model.
 * @see https://docs.getbifrost.ai/deployment-guides/config-json/schema-reference
 */
export function importBifrost(file: Fields): Imported {
  const draft = createDraft((text) => /^env\.([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1]);
  for (const [name, provider] of Object.entries(objectOf(file['providers'])))
    readProvider(draft, name, objectOf(provider));
  readClient(draft, objectOf(file['client']));
  readGovernance(draft, objectOf(file['governance']));
  readPlugins(draft, file['plugins']);
  recordFields(draft, file, '', { rules: SECTIONS, read: ['$schema', 'providers', 'client', 'governance', 'plugins'] });
  return draft.result();
}

const SECTIONS: Readonly<Record<string, FieldRule>> = Object.freeze({
  encryption_key: ['impossible', 'Tollgate stores no vendor keys; they stay in the environment'],
  config_store: ['emulated', 'the file is the configuration; store: has keys and balances: docs/stores.md'],
  logs_store: ['kept', 'the policy usage stores a record of each call'],
  vector_store: ['impossible', 'responseCache matches identical requests, not similar ones'],
  mcp: ['impossible', 'MCP servers are not supported'],
  framework: ['emulated', 'tollgate models update updates prices'],
  websocket: ['kept', 'websockets are enabled'],
  guardrails_config: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
});

const PROVIDER: Readonly<Record<string, FieldRule>> = Object.freeze({
  concurrency_and_buffer_size: [
    'impossible',
    'plans and keys limit concurrent calls; the policy overload protects the gateway',
  ],
  proxy_config: ['emulated', 'the option proxy of the provider: docs/how-to/use-an-https-proxy.md'],
  send_back_raw_response: ['impossible', 'additional response fields of vendors are passed on if the format allows it'],
  send_back_raw_request: ['impossible', 'tollgate start --log-level debug logs requests, without their content'],
  pricing_overrides: ['emulated', 'the option prices of the provider, in US dollars per million tokens'],
});

const NETWORK: Readonly<Record<string, FieldRule>> = Object.freeze({
  max_retries: ['emulated', 'retries are automatic: docs/routing.md#retries'],
  retry_backoff_initial: ['emulated', 'docs/routing.md#retries'],
  retry_backoff_max: ['emulated', 'docs/routing.md#retries'],
  insecure_skip_verify: ['impossible', 'certificates are always verified; the option tls sets your own authority'],
  ca_cert_pem: ['emulated', 'the option tls: { ca } of the provider'],
});

const KEY: Readonly<Record<string, FieldRule>> = Object.freeze({
  id: ['kept', 'not needed'],
  description: ['kept', 'not needed'],
  use_for_batch_api: ['impossible', 'a key is used for all operations of its provider'],
  bedrock_key_config: ['emulated', 'AWS credentials are read from environment, profile or roles'],
  vertex_key_config: ['emulated', 'Google credentials are read like by its own tools'],
});

function readProvider(draft: Draft, name: string, provider: Fields): void {
  const at = `providers.${name}`;
  const network = objectOf(provider['network_config']);
  const custom = objectOf(provider['custom_provider_config'])['base_provider_type'];
  const vendor = typeof custom === 'string' ? custom : name;
  if (custom !== undefined) draft.note('kept', `${at}.custom_provider_config`, 'the vendor with the same interface');
  recordFields(draft, provider, at, { rules: PROVIDER, read: ['keys', 'network_config', 'custom_provider_config'] });
  recordFields(draft, network, `${at}.network_config`, {
    rules: NETWORK,
    read: ['base_url', 'extra_headers', 'default_request_timeout_in_seconds'],
  });
  const keys = listOf(provider['keys']).map(objectOf);
  const each = keys.length > 0 ? keys : [{}];
  const found = isPool(keys)
    ? readPool(draft, keys, { at, vendor, network })
    : each.flatMap((key, index) => readKey(draft, key, { at: `${at}.keys[${index}]`, vendor, network }));
  if (found.length < 2) return;
  const models = new Set(found.flatMap((each) => each.models));
  for (const model of models) {
    const targets = found
      .filter((each) => each.models.includes(model))
      .map(({ instance, weight }): DraftTarget => ({ to: `${instance}/${model}`, weight }));
    if (targets.length < 2 || model === '*') continue;
    draft.alias(model, { targets, strategy: 'weighted' });
    draft.note(
      'emulated',
      `${at}.keys`,
      `the alias "${model}" distributes its calls over the keys by weight; "${name}/${model}" uses the first one`,
    );
  }
}

/** True if keys differ by text and weight alone: then they stay keys of one provider. */
function isPool(keys: readonly Fields[]): boolean {
  const bare = keys.map(({ value, name: _, weight: __, id: ___, description: ____, ...rest }) => ({
    ...rest,
    isText: typeof value === 'string' && value !== '',
  }));
  return keys.length > 1 && bare.every((each) => each.isText && isDeepStrictEqual(each, bare[0]));
}

function readPool(draft: Draft, keys: readonly Fields[], place: ImportPosition): readonly Found[] {
  const { at, vendor } = place;
  const apiKeys = keys.map(({ value, weight }, index) => ({
    name: `key-${index + 1}`,
    key: draft.secret(value, `${at}.keys[${index}].value`, importedVariable(vendor, 'API_KEY')) ?? '',
    ...(typeof weight === 'number' && weight >= 0 && { weight }),
  }));
  draft.note('kept', `${at}.keys`, 'several keys of the provider, each with its weight and its own health');
  return readKey(draft, { ...keys[0], value: undefined }, { ...place, at: `${at}.keys` }, { apiKeys });
}

interface ImportPosition {
  readonly at: string;
  readonly vendor: string;
  readonly network: Fields;
}

interface Found {
  readonly instance: string;
  readonly weight: number;
  readonly models: readonly string[];
}

function readKey(
  draft: Draft,
  key: Fields,
  { at, vendor, network }: ImportPosition,
  more: Options = {},
): readonly Found[] {
  const azure = objectOf(key['azure_key_config']);
  const seconds = network['default_request_timeout_in_seconds'];
  const [deployment] = Object.entries(objectOf(key['aliases'] ?? azure['deployments']));
  const found = findVendor({
    vendor,
    apiKey: draft.secret(key['value'], `${at}.value`, importedVariable(vendor, 'API_KEY')),
    baseUrl: draft.text(azure['endpoint'] ?? network['base_url']),
    apiVersion: draft.text(azure['api_version']),
    ...(deployment && typeof deployment[1] === 'string' && { deployment: [deployment[1], deployment[0]] as const }),
    region: draft.text(objectOf(key['bedrock_key_config'])['region'] ?? objectOf(key['vertex_key_config'])['region']),
    project: draft.text(objectOf(key['vertex_key_config'])['project_id']),
    headers: readHeaders(draft, network, at, vendor),
    timeouts: typeof seconds === 'number' && seconds > 0 ? { total: `${Math.round(seconds)}s` } : {},
  });
  if (typeof found === 'string') {
    draft.note('impossible', at, found);
    return [];
  }
  recordFields(draft, key, at, {
    rules: KEY,
    read: ['name', 'value', 'models', 'weight', 'azure_key_config', 'aliases'],
  });
  const instance = draft.provider({ ...found, options: { ...found.options, ...more } });
  const models = listOf(key['models']).filter((model): model is string => typeof model === 'string');
  for (const model of models) draft.model(instance, model);
  draft.note('kept', at, `the provider "${instance}"`);
  const weight = key['weight'];
  return [{ instance, weight: typeof weight === 'number' && weight >= 0 ? weight : 1, models }];
}

function readHeaders(draft: Draft, network: Fields, at: string, vendor: string): Options {
  const headers = Object.entries(objectOf(network['extra_headers'])).flatMap(([name, value]) => {
    // Headers often hold keys, whatever their names.
    const text = draft.secret(value, `${at}: extra_headers.${name}`, importedVariable(vendor, name));
    return text === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(headers);
}

const CLIENT: Readonly<Record<string, FieldRule>> = Object.freeze({
  drop_excess_requests: ['emulated', 'the policy overload rejects calls beyond the gateway’s capacity'],
  initial_pool_size: ['kept', 'connections are opened on demand'],
  enable_logging: ['kept', 'the policies access-log and usage are enabled'],
  disable_content_logging: ['kept', 'the log contains no prompts or responses'],
  enable_governance: ['kept', 'accounts, budgets and limits are enabled'],
  enforce_governance_header: ['kept', 'calls require a key'],
  enforce_auth_on_inference: ['kept', 'calls require a key'],
  allow_direct_keys: ['impossible', 'callers’ own vendor keys are not passed on, except passThroughAuth of anthropic'],
  log_retention_days: ['emulated', 'the policy usage sets the storage time of records: docs/money.md'],
  prometheus_labels: ['impossible', 'the labels of /metrics are fixed'],
  header_filter_config: ['impossible', 'callers’ headers are not sent to vendors'],
  enable_litellm_fallbacks: ['impossible', 'aliases define fallbacks'],
});

function readClient(draft: Draft, client: Fields): void {
  const origins = listOf(client['allowed_origins']).filter((each): each is string => typeof each === 'string');
  const megabytes = client['max_request_body_size_mb'];
  if (origins.length > 0) {
    draft.section('server', 'cors', { origins });
    draft.note('kept', 'client.allowed_origins', 'server.cors.origins');
  }
  if (typeof megabytes === 'number' && megabytes > 0) {
    draft.section('server', 'bodyLimit', `${Math.ceil(megabytes)}mb`);
    draft.note('kept', 'client.max_request_body_size_mb', 'server.bodyLimit');
  }
  recordFields(draft, client, 'client', { rules: CLIENT, read: ['allowed_origins', 'max_request_body_size_mb'] });
}

const GOVERNANCE: Readonly<Record<string, FieldRule>> = Object.freeze({
  virtual_keys: [
    'emulated',
    'create keys with the same limits: tollgate keys create, docs/keys.md; only keys with the prefix tg_ are valid',
  ],
  budgets: ['emulated', 'budgets of keys, accounts and plans: docs/money.md#budgets'],
  rate_limits: ['emulated', 'rpm and tpm of keys and plans: docs/keys.md'],
  customers: ['emulated', 'accounts: docs/money.md'],
  teams: ['emulated', 'teams and tags: docs/keys.md'],
  routing_rules: ['emulated', 'aliases, and `when` of policies: docs/routing.md'],
  auth_config: ['emulated', 'keys with a role, or people who sign in: docs/keys.md#scopes-and-roles'],
});

function readGovernance(draft: Draft, governance: Fields): void {
  recordFields(draft, governance, 'governance', { rules: GOVERNANCE });
}

const PLUGINS: Readonly<Record<string, FieldRule>> = Object.freeze({
  telemetry: ['kept', '/metrics, for keys with the scope metrics:read'],
  prometheus: ['kept', '/metrics, for keys with the scope metrics:read'],
  logging: ['kept', 'the policies access-log and usage are enabled'],
  governance: ['kept', 'accounts, budgets and limits are enabled'],
  otel: ['emulated', 'policies: { otel: { endpoint } }: docs/operate.md'],
  semantic_cache: ['emulated', 'responseCache matches identical requests, not similar ones'],
  datadog: ['emulated', 'the policy otel sends spans to Datadog: docs/operate.md'],
});

function readPlugins(draft: Draft, list: unknown): void {
  for (const [index, plugin] of listOf(list).entries()) {
    const { name, enabled } = objectOf(plugin);
    if (enabled === false || typeof name !== 'string') continue;
    const rule = Object.hasOwn(PLUGINS, name) ? PLUGINS[name] : undefined;
    if (name === 'semantic_cache') draft.section('responseCache', 'ttl', '1h');
    draft.note(
      rule?.[0] ?? 'impossible',
      `plugins[${index}]`,
      rule?.[1] ?? 'it is written in Go; Tollgate plugins are TypeScript: docs/plugins.md',
    );
  }
}
