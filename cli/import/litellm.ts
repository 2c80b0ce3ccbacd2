import {
  createDraft,
  type Draft,
  type DraftAlias,
  type DraftTarget,
  type Fields,
  type Imported,
  importedVariable,
  listOf,
  type Options,
  objectOf,
  recordFields,
} from './draft.ts';
import {
  CALLBACKS,
  GENERAL_SETTINGS,
  GUARDRAILS,
  INFO,
  LITELLM_SETTINGS,
  OWN_VARIABLES,
  PARAMS,
  PARAMS_READ,
  ROUTER_READ,
  ROUTER_SETTINGS,
  SECTIONS,
  SECTIONS_READ,
  SETTINGS_READ,
  STRATEGY,
} from './litellm-fields.ts';
import { findVendor, omitAbsent } from './vendors.ts';

/**
 * Reads a `config.yaml` of the LiteLLM proxy.
 *
 * @see https://docs.litellm.ai/docs/proxy/config_settings
 */
export function importLitellm(file: Readonly<Record<string, unknown>>): Imported {
  const draft = createDraft((text) => /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1]);
  const settings = objectOf(file['litellm_settings']);
  const router = objectOf(file['router_settings']);
  const found = readDeployments(draft, file, settings);
  writeAliases(draft, found, router, settings);
  readCallbacks(draft, settings);
  readCache(draft, settings);
  readGuardrails(draft, file['guardrails']);
  readVariables(draft, file['environment_variables']);
  recordFields(draft, settings, 'litellm_settings', { rules: LITELLM_SETTINGS, read: SETTINGS_READ });
  recordFields(draft, router, 'router_settings', { rules: ROUTER_SETTINGS, read: ROUTER_READ });
  recordFields(draft, file['general_settings'], 'general_settings', { rules: GENERAL_SETTINGS });
  recordFields(draft, file, '', { rules: SECTIONS, read: SECTIONS_READ });
  return draft.result();
}

interface Deployment extends DraftTarget {
  readonly share: number | undefined;
  readonly clocks: Options;
  readonly parameters: Options;
}
type Groups = ReadonlyMap<string, readonly Deployment[]>;

/** Deployments by name, and by `model_info.id`, which fallbacks may use. */
interface Deployments {
  readonly groups: Groups;
  readonly byId: Groups;
}

function readDeployments(draft: Draft, file: Fields, settings: Fields): Deployments {
  const groups = new Map<string, readonly Deployment[]>();
  const byId = new Map<string, readonly Deployment[]>();
  for (const [index, given] of listOf(file['model_list']).entries()) {
    const entry = withCredential(draft, given, file['credential_list'], `model_list[${index}]`);
    const at = `model_list[${index}]`;
    const name = objectOf(entry)['model_name'];
    const params = objectOf(objectOf(entry)['litellm_params']);
    if (typeof name !== 'string' || typeof params['model'] !== 'string') {
      draft.note('impossible', at, 'it has no model_name or no litellm_params.model');
      continue;
    }
    const deployment = readDeployment(draft, entry, at, settings);
    if (!deployment) continue;
    groups.set(name, [...(groups.get(name) ?? []), deployment]);
    const { id } = objectOf(objectOf(entry)['model_info']);
    if (typeof id === 'string') byId.set(id, [deployment]);
  }
  return { groups, byId };
}

/** Merges the credential that a deployment names into it. */
function withCredential(draft: Draft, entry: unknown, list: unknown, at: string): unknown {
  const { litellm_credential_name: name, ...params } = objectOf(objectOf(entry)['litellm_params']);
  if (name === undefined) return entry;
  const found = listOf(list).find((each) => objectOf(each)['credential_name'] === name);
  draft.note(
    found ? 'kept' : 'impossible',
    `${at}.litellm_params.litellm_credential_name`,
    found ? 'the values of the credential' : 'credential_list has no entry of this name',
  );
  const values = objectOf(objectOf(found)['credential_values']);
  return { ...objectOf(entry), litellm_params: { ...values, ...params } };
}

function readDeployment(draft: Draft, entry: unknown, at: string, settings: Fields): Deployment | undefined {
  const params = objectOf(objectOf(entry)['litellm_params']);
  const info = objectOf(objectOf(entry)['model_info']);
  const place = `${at}.litellm_params`;
  const { vendor, model } = splitModel(String(params['model']));
  const base = info['base_model'];
  const found = findVendor({
    vendor,
    apiKey: readKey(draft, params, place, vendor),
    baseUrl: draft.text(params['api_base'] ?? params['base_url'] ?? params['aws_bedrock_runtime_endpoint']),
    apiVersion: draft.text(params['api_version']),
    ...(typeof base === 'string' && { deployment: [model, base.slice(base.indexOf('/') + 1)] as const }),
    region: draft.text(params['aws_region_name'] ?? params['vertex_location']),
    project: draft.text(params['vertex_project']),
    aws: readAwsKey(draft, params, place),
    entra: readEntra(draft, params, place),
    serviceAccount: readServiceAccount(draft, params, place),
    headers: readHeaders(draft, params, place, vendor),
  });
  if (typeof found === 'string') return void draft.note('impossible', `${place}.model`, found);
  const prices = readPrices(draft, { ...info, ...params }, place, model);
  const instance = draft.provider(prices ? { ...found, options: { ...found.options, prices } } : found);
  draft.model(instance, model);
  draft.note('kept', `${place}.model`, `it is a target of the provider "${instance}"`);
  recordFields(draft, params, place, { rules: PARAMS, read: PARAMS_READ });
  recordFields(draft, info, `${at}.model_info`, {
    rules: INFO,
    read: ['base_model', 'input_cost_per_token', 'output_cost_per_token'],
  });
  const share = [params['weight'], params['rpm'], params['tpm']].find((each) => typeof each === 'number' && each >= 0);
  for (const field of ['rpm', 'tpm'])
    if (params[field] !== undefined)
      draft.note(
        'emulated',
        `${place}.${field}`,
        'weight of the target with strategy weighted; a target is skipped for a time after a 429',
      );
  const order = params['order'];
  return {
    to: `${instance}/${model}`,
    share: typeof share === 'number' ? Math.min(share, 1_000_000) : undefined,
    ...(typeof order === 'number' && order >= 1 && order <= 16 && { order: Math.trunc(order) }),
    clocks: readClocks(draft, params, place, settings),
    parameters: readAliasParameters(draft, params, place),
  };
}

/**
 * Reads the key of a deployment. Without one LiteLLM uses that of the environment; here that key is not sent to a
 * custom address.
 */
function readKey(draft: Draft, params: Fields, place: string, vendor: string): string | undefined {
  const own = draft.secret(params['api_key'], `${place}.api_key`, importedVariable(vendor, 'API_KEY'));
  const isElsewhere = vendor !== 'azure' && (params['api_base'] ?? params['base_url']) !== undefined;
  const isSignedIn = params['azure_ad_token'] !== undefined || params['tenant_id'] !== undefined;
  if (own !== undefined || isElsewhere || isSignedIn) return own;
  return Object.hasOwn(OWN_VARIABLES, vendor) ? `\${${OWN_VARIABLES[vendor]}}` : undefined;
}

/** Splits `vendor/model`. A name without a vendor belongs to the vendor whose model names begin like it. */
function splitModel(text: string): { readonly vendor: string; readonly model: string } {
  const cut = text.indexOf('/');
  // Tollgate chooses Bedrock’s interface by the model.
  if (cut > 0) return { vendor: text.slice(0, cut), model: text.slice(cut + 1).replace(/^(converse|invoke)\//, '') };
  const vendor = BEGINNINGS.find(([begin]) => begin.test(text))?.[1] ?? 'openai';
  return { vendor, model: text };
}

const BEGINNINGS: readonly (readonly [RegExp, string])[] = [
  [/^claude/, 'anthropic'],
  [/^gemini/, 'vertex_ai'],
  [/^command/, 'cohere'],
];

function readAwsKey(draft: Draft, params: Fields, place: string) {
  const read = (field: string) => draft.secret(params[field], `${place}.${field}`, importedVariable(field));
  const profile = draft.text(params['aws_profile_name']);
  return {
    id: read('aws_access_key_id'),
    key: read('aws_secret_access_key'),
    token: read('aws_session_token'),
    profile,
  };
}

/** Reads a Microsoft Entra application that replaces a key. */
function readEntra(draft: Draft, params: Fields, place: string): Options | undefined {
  const clientSecret = draft.secret(
    params['client_secret'],
    `${place}.client_secret`,
    importedVariable('ENTRA_SECRET'),
  );
  const found = omitAbsent({
    tenant: draft.text(params['tenant_id']),
    clientId: draft.text(params['client_id']),
    clientSecret,
  });
  const { length } = Object.keys(found);
  if (length === 0) return undefined;
  const isWhole = length === 3;
  const needs = isWhole ? '' : ' needs all of tenant_id, client_id and client_secret';
  draft.note(isWhole ? 'kept' : 'impossible', `${place}.tenant_id`, `the option entra of azure${needs}`);
  return isWhole ? found : undefined;
}

/** Reads a service account key: its JSON, or the path of its file. */
function readServiceAccount(draft: Draft, params: Fields, place: string): string | undefined {
  const given = params['vertex_credentials'];
  if (typeof given !== 'string' || given.startsWith('os.environ/') || given.trimStart().startsWith('{'))
    return draft.secret(given, `${place}.vertex_credentials`, importedVariable('GOOGLE_SERVICE_ACCOUNT'));
  draft.note('kept', `${place}.vertex_credentials`, 'the file of the service account’s key');
  return `\${file:${given}}`;
}

function readHeaders(draft: Draft, params: Fields, place: string, vendor: string): Options {
  const given = { ...objectOf(params['headers']), ...objectOf(params['extra_headers']) };
  const entries = Object.entries(given).flatMap(([name, value]) => {
    const at = `${place}.extra_headers.${printable(name)}`;
    if (!HEADER.test(name)) {
      draft.note('impossible', at, 'invalid header name');
      return [];
    }
    // Headers often hold keys, whatever their names.
    const text = draft.secret(value, at, importedVariable(vendor, name));
    return text === undefined ? [] : [[name, text] as const];
  });
  if (Array.isArray(params['organization']))
    draft.note(
      'impossible',
      `${place}.organization`,
      'create a provider for each organization, with the option organization',
    );
  const organization = draft.text(params['organization']);
  return { ...(organization !== undefined && { 'openai-organization': organization }), ...Object.fromEntries(entries) };
}

/** Header name (RFC 9110). */
const HEADER = /^[!#$%&'*+.^_`|~\w-]+$/;

function readPrices(draft: Draft, fields: Fields, place: string, model: string): Options | undefined {
  const [input, output] = [fields['input_cost_per_token'], fields['output_cost_per_token']];
  if (typeof input !== 'number' || typeof output !== 'number') return undefined;
  draft.note('kept', `${place}.input_cost_per_token`, 'prices of the provider, in US dollars per million tokens');
  return { [model]: { input: perMillion(input), output: perMillion(output) } };
}

/** Converts the price of a token to that of a million, without binary rounding noise. */
function perMillion(price: number): number {
  return Number((price * 1_000_000).toPrecision(12));
}

function readClocks(draft: Draft, params: Fields, place: string, settings: Fields): Options {
  const total = params['timeout'] ?? settings['request_timeout'];
  const stream = params['stream_timeout'];
  const clocks = {
    ...(isSeconds(total) && { total: secondsOf(total) }),
    ...(isSeconds(stream) && { firstToken: secondsOf(stream) }),
  };
  if (Object.keys(clocks).length > 0) draft.note('kept', `${place}.timeout`, 'timeouts of the alias');
  return clocks;
}

function secondsOf(seconds: number): string {
  return Number.isInteger(seconds) ? `${seconds}s` : `${Math.round(seconds * 1000)}ms`;
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= 3600;
}

/** Reads default parameters of the alias’s calls. */
function readAliasParameters(draft: Draft, params: Fields, place: string): Options {
  const chosen = ['temperature', 'top_p', 'reasoning_effort'].filter((field) => params[field] !== undefined);
  if (chosen.length > 0)
    draft.note('kept', `${place}.${chosen[0]}`, 'parameters of the alias, by the policy alias-parameters');
  return Object.fromEntries(chosen.map((field) => [field, params[field] as number | string]));
}

function writeAliases(draft: Draft, { groups, byId }: Deployments, router: Fields, settings: Fields): void {
  const known: Groups = new Map([...byId, ...groups]);
  const named = String(router['routing_strategy'] ?? 'simple-shuffle');
  const [strategy, rule] = STRATEGY[named] ?? STRATEGY['simple-shuffle'] ?? (['weighted', ['kept', '']] as const);
  if (router['routing_strategy'] !== undefined)
    draft.note(
      STRATEGY[named] ? rule[0] : 'impossible',
      'router_settings.routing_strategy',
      STRATEGY[named] ? rule[1] : 'unknown; strategy: weighted is set',
    );
  const next = readFallbacks(draft, router, settings, ['fallbacks', 'content_policy_fallbacks']);
  const overflow = readFallbacks(draft, router, settings, ['context_window_fallbacks']);
  for (const other of new Set([...next.values(), ...overflow.values()].flat()))
    if (!known.has(other))
      draft.note('impossible', `fallbacks: ${printable(other)}`, 'model_list has no supported model of this name');
  const parameters = [...groups].flatMap(([name, [first]]) =>
    first && Object.keys(first.parameters).length > 0 ? [[name, first.parameters] as const] : [],
  );
  if (parameters.length > 0) draft.section('policies', 'alias-parameters', { models: Object.fromEntries(parameters) });
  const last = [...listOf(settings['default_fallbacks']), ...listOf(router['default_fallbacks'])].map(String);
  if (last.length > 0) draft.note('kept', 'litellm_settings.default_fallbacks', 'the last group of each alias');
  for (const [name, deployments] of groups) {
    const others = [...(next.get(name) ?? []), ...last.filter((each) => each !== name)];
    const alias = composeAlias(known, deployments, [...new Set(others)], strategy);
    const fits = overflow.get(name)?.flatMap((each) => known.get(each)?.[0]?.to ?? [])[0];
    writeAlias(draft, name, { ...alias, ...(fits !== undefined && { onOverflow: fits }) });
  }
  for (const [name, to] of Object.entries(objectOf(router['model_group_alias']))) {
    const group = typeof to === 'string' ? to : String(objectOf(to)['model'] ?? '');
    const deployments = groups.get(group);
    const at = `router_settings.model_group_alias.${name}`;
    if (!deployments) draft.note('impossible', at, 'its model is not in model_list');
    else {
      draft.note('kept', at, 'an alias with the same targets');
      writeAlias(draft, name, composeAlias(known, deployments, next.get(group) ?? [], strategy));
    }
  }
}

function composeAlias(
  groups: Groups,
  deployments: readonly Deployment[],
  others: readonly string[],
  strategy: NonNullable<DraftAlias['strategy']>,
): DraftAlias {
  const own = new Set(deployments.map(({ to }) => to));
  const after = Math.max(...deployments.map(({ order = 1 }) => order));
  const rest = others.flatMap((name, at) =>
    (groups.get(name) ?? []).map(({ to, share }) => ({ to, share, order: after + 1 + at })),
  );
  const all = [...deployments, ...rest.filter(({ to }) => !own.has(to))];
  const targets = all.map(({ to, share, order = 1 }) => ({
    to,
    order: Math.min(order, 16),
    ...(share !== undefined && strategy === 'weighted' && all.length > 1 && { weight: share }),
  }));
  return { targets, strategy, timeouts: deployments[0]?.clocks ?? {} };
}

/** Writes an alias, except when its name already belongs to a provider’s own model. */
function writeAlias(draft: Draft, name: string, alias: DraftAlias): void {
  const [only] = alias.targets;
  if (alias.targets.length === 1 && only?.to === name) return;
  const owner = draft.ownerOf(name);
  if (owner !== undefined)
    return void draft.note(
      'impossible',
      `model_list: ${printable(name)}`,
      `the provider "${owner}" has a model of this name; use another name for the alias`,
    );
  const star = name.indexOf('*');
  if (star >= 0 && star < name.length - 1)
    return void draft.note('impossible', `model_list: ${printable(name)}`, 'an alias may have a * only at its end');
  // A star in LiteLLM is the text matched by the star of the name. Here it is everything after the last
  // slash of the name.
  const targets = alias.targets.map((target) => ({ ...target, to: target.to.replace(/\/[^/*]*\*$/, '/*') }));
  draft.alias(name, { ...alias, targets });
}

function readFallbacks(
  draft: Draft,
  router: Fields,
  settings: Fields,
  fields: readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const places = [['litellm_settings', settings] as const, ['router_settings', router] as const];
  for (const field of fields)
    for (const [section, values] of places) {
      const rows = listOf(values[field]).flatMap((row) => Object.entries(objectOf(row)));
      for (const [name, names] of rows) {
        const known = found.get(name) ?? [];
        found.set(name, [
          ...known,
          ...listOf(names).filter((each): each is string => typeof each === 'string' && !known.includes(each)),
        ]);
      }
      if (rows.length > 0)
        draft.note(
          'kept',
          `${section}.${field}`,
          field === 'context_window_fallbacks'
            ? 'onOverflow of the aliases'
            : 'further groups of targets (order) of the aliases',
        );
    }
  return found;
}

function readCallbacks(draft: Draft, settings: Fields): void {
  for (const field of ['callbacks', 'success_callback', 'failure_callback', 'service_callbacks'])
    for (const name of [settings[field]].flat()) {
      if (typeof name !== 'string') continue;
      const rule = Object.hasOwn(CALLBACKS, name) ? CALLBACKS[name] : undefined;
      draft.note(
        rule?.[0] ?? 'impossible',
        `litellm_settings.${field}`,
        `${printable(name)}: ${rule?.[1] ?? 'a callback in Python; a plugin or the policy otel sees the same: docs/plugins.md'}`,
      );
      if (name === 'otel')
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a configuration holds
        draft.section('policies', 'otel', { endpoint: '${OTEL_EXPORTER_OTLP_ENDPOINT:-http://127.0.0.1:4318}' });
    }
}

/** Shortens a text for a report and removes control characters. */
function printable(text: string): string {
  return text.replace(/[^\w.:/ -]/g, '?').slice(0, 60);
}

function readCache(draft: Draft, settings: Fields): void {
  if (settings['cache'] !== true) return;
  const { ttl, type } = objectOf(settings['cache_params']);
  draft.section('responseCache', 'ttl', isSeconds(ttl) ? secondsOf(ttl) : '1h');
  const isSame = type === undefined || type === 'local';
  draft.note(
    isSame ? 'kept' : 'emulated',
    'litellm_settings.cache',
    `responseCache stores whole responses in the memory of each process${isSame ? '' : ', not in another program, and matches identical requests, not similar ones'}`,
  );
}

function readGuardrails(draft: Draft, list: unknown): void {
  for (const [index, entry] of listOf(list).entries()) {
    const kind = String(objectOf(objectOf(entry)['litellm_params'])['guardrail'] ?? '');
    const known = Object.hasOwn(GUARDRAILS, kind) ? GUARDRAILS[kind] : undefined;
    if (known) draft.section('policies', known[0], { action: 'mask' });
    draft.note(
      known ? 'emulated' : 'impossible',
      `guardrails[${index}]`,
      known?.[1] ?? 'the guardrail http-guardrail calls any service: docs/plugins/guardrails.md',
    );
  }
}

function readVariables(draft: Draft, variables: unknown): void {
  for (const [name, value] of Object.entries(objectOf(variables)))
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && ['string', 'number', 'boolean'].includes(typeof value))
      draft.secret(String(value), `environment_variables.${name}`, name);
    else
      draft.note(
        'impossible',
        `environment_variables.${printable(name)}`,
        'it is not a valid environment variable name',
      );
}
