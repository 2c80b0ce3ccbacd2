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
import { findVendor, variableOf } from './vendors.ts';

/**
 * Reads configs of the Portkey gateway, as in `x-portkey-config` or from its API. Each becomes an alias of its name.
 * @see https://portkey.ai/docs/api-reference/inference-api/config-object
 */
export function importPortkey(configs: ReadonlyMap<string, Fields>): Imported {
  const draft = createDraft(() => undefined);
  for (const [name, file] of configs) {
    // Portkey's API wraps a config, and some configs use camelCase.
    const config = snakeCase(objectOf(file['config'] ?? file));
    const at = configs.size === 1 ? '' : `${name}: `;
    if (modeOf(config) === 'conditional') writeConditions(draft, name, config, at);
    else writeConfig(draft, name, config, { at, order: 1, inherited: {} });
  }
  return draft.result();
}

function modeOf(config: Fields): string {
  const { mode, type } = objectOf(config['strategy']);
  return String(mode ?? type ?? 'single');
}

/** Writes an alias for a config or for one of its targets. */
function writeConfig(draft: Draft, name: string, config: Fields, step: Step): void {
  const { at } = step;
  const targets = readStep(draft, config, step).map(({ to, order, weight }) => ({
    to,
    order: Math.min(order, 16),
    ...(weight !== undefined && { weight }),
  }));
  if (targets.length === 0)
    return void draft.note('impossible', `${at}targets`, 'none of its targets is supported, so no alias was created');
  const isWeighted = targets.some(({ weight }) => weight !== undefined);
  const takesAny = targets.every(({ to }) => to.endsWith('/*'));
  const timeout = config['request_timeout'] ?? step.inherited['request_timeout'];
  draft.alias(takesAny ? `${name}/*` : name, {
    targets: takesAny ? targets : targets.filter(({ to }) => !to.endsWith('/*')),
    strategy: isWeighted ? 'weighted' : 'fallback',
    timeouts: typeof timeout === 'number' && timeout > 0 ? { total: `${Math.round(timeout)}ms` } : {},
  });
  if (timeout !== undefined) draft.note('kept', `${at}request_timeout`, 'timeouts of the alias');
  if (takesAny)
    draft.note(
      'emulated',
      `${at}targets`,
      'the config has no model; use the alias name before the model, such as name/model',
    );
}

/**
 * Targets that conditions choose between: an alias each, the default one by the config’s name, and one by each model that a condition asks for.
 *
 * @see https://portkey.ai/docs/product/ai-gateway/conditional-routing
 */
function writeConditions(draft: Draft, name: string, config: Fields, at: string): void {
  const { targets: list, strategy, ...inherited } = config;
  const { conditions, default: last } = objectOf(strategy);
  const targets = listOf(list).map((target) => snakeCase(objectOf(target)));
  const write = (alias: string, target: unknown, place: string): boolean => {
    const index = targets.findIndex((each) => each['name'] === target);
    const found = targets[index];
    if (found) writeConfig(draft, alias, found, { at: `${at}targets[${index}].`, order: 1, inherited });
    else draft.note('impossible', place, 'its target is not in the config');
    return found !== undefined;
  };
  readCache(draft, config, at);
  recordFields(draft, inherited, at.replace(/[.: ]+$/, ''), { rules: STEP, read: STEP_READ });
  if (write(name, last, `${at}strategy.default`))
    draft.note('kept', `${at}strategy.default`, `the alias "${name}" has this target`);
  for (const [index, condition] of listOf(conditions).entries()) {
    const { query, then } = objectOf(condition);
    const place = `${at}strategy.conditions[${index}]`;
    const wanted = modelsOf(query);
    const own = wanted.length > 0 ? wanted : [`${name}-${nameOf(then)}`];
    const written = own.filter((alias) => write(alias, then, place));
    if (written.length > 0)
      draft.note(
        'emulated',
        place,
        wanted.length > 0
          ? `its requested model is an alias of this target`
          : `callers’ metadata does not select targets; these callers must use the model "${own[0]}"`,
      );
  }
}

/** Lists the models that a query matches, if it has no other condition. */
function modelsOf(query: unknown): readonly string[] {
  const [only, ...others] = Object.entries(objectOf(query));
  if (only?.[0] !== 'params.model' || others.length > 0) return [];
  const { $eq: one, $in: several } = objectOf(only[1]);
  return [one, ...listOf(several)].filter((model): model is string => typeof model === 'string' && model !== '');
}

function nameOf(target: unknown): string {
  return String(target).replace(/[^\w.-]+/g, '-');
}

interface Step {
  readonly at: string;
  /** Group of the alias for its targets. */
  readonly order: number;
  readonly weight?: number;
  /** Settings that targets inherit from the config around them. */
  readonly inherited: Fields;
}

type Found = DraftTarget & { readonly order: number };

const STEP_READ = [
  'strategy',
  'targets',
  'provider',
  'api_key',
  'virtual_key',
  'override_params',
  'custom_host',
  'weight',
  'cache',
  'request_timeout',
  'resource_name',
  'deployment_id',
  'api_version',
  'azure_resource_name',
  'azure_deployment_id',
  'azure_api_version',
  'azure_model_name',
  'aws_region',
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'vertex_service_account_json',
  'vertex_project_id',
  'vertex_region',
  'openai_organization',
  'forward_headers',
  'id',
  'name',
  'version',
  'is_default',
  'slug',
];

const STEP: Readonly<Record<string, FieldRule>> = Object.freeze({
  retry: ['emulated', 'retries are automatic: docs/routing.md#retries'],
  input_guardrails: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
  output_guardrails: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
  before_request_hooks: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
  after_request_hooks: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
  default_input_guardrails: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
  default_output_guardrails: ['impossible', 'add guardrails under policies: docs/plugins/guardrails.md'],
  metadata: ['emulated', 'tags of keys and requests: docs/money.md'],
  strict_open_ai_compliance: ['kept', 'responses always have OpenAI’s format'],
});

/** Reads the targets of a config, or of a target with nested targets. */
function readStep(draft: Draft, given: Fields, step: Step): readonly Found[] {
  const { at } = step;
  const config = { ...step.inherited, ...given };
  recordFields(draft, given, at.replace(/[.: ]+$/, ''), { rules: STEP, read: STEP_READ });
  readCache(draft, given, at);
  const targets = listOf(given['targets']);
  if (targets.length === 0) return readTarget(draft, config, step);
  const { targets: _, strategy, weight: __, ...inherited } = config;
  const mode = modeOf(config);
  if (mode === 'conditional') {
    draft.note(
      'impossible',
      `${at}strategy`,
      'conditions within a target: create an alias for each and let callers use it',
    );
    return [];
  }
  if (objectOf(strategy)['on_status_codes'] !== undefined)
    draft.note(
      'emulated',
      `${at}strategy.on_status_codes`,
      'each failure of a provider goes to the next target: docs/routing.md',
    );
  const isShared = mode === 'loadbalance';
  draft.note('kept', `${at}strategy`, isShared ? 'strategy: weighted' : 'targets in this order');
  let order = step.order;
  return targets.flatMap((target, index) => {
    const next = snakeCase(objectOf(target));
    const own = next['weight'];
    const weight = isShared ? (typeof own === 'number' && own >= 0 ? own : 1) : step.weight;
    const found = readStep(draft, next, {
      at: `${at}targets[${index}].`,
      order,
      inherited,
      ...(weight !== undefined && { weight }),
    });
    if (!isShared) order = Math.max(order, ...found.map((each) => each.order)) + (mode === 'single' ? 0 : 1);
    return mode === 'single' && index > 0 ? [] : found;
  });
}

function readCache(draft: Draft, config: Fields, at: string): void {
  if (config['cache'] === undefined) return;
  const { mode, max_age } = objectOf(config['cache']);
  draft.section('responseCache', 'ttl', typeof max_age === 'number' && max_age > 0 ? `${Math.round(max_age)}s` : '7d');
  draft.note(
    mode === 'semantic' ? 'emulated' : 'kept',
    `${at}cache`,
    'responseCache returns stored responses for all aliases, for identical requests, not similar ones',
  );
}

function readTarget(draft: Draft, config: Fields, { at, order, weight }: Step): readonly Found[] {
  const overrides = snakeCase(objectOf(config['override_params']));
  // A model of Portkey's catalog names the provider: `@openai-prod/gpt-4o`.
  const catalog = /^(@[^/]+)\/(.+)$/s.exec(textOf(overrides['model']) ?? '');
  const named = config['virtual_key'] ?? config['provider'] ?? catalog?.[1];
  if (typeof named !== 'string' || named === '') {
    draft.note('impossible', `${at}provider`, 'it has neither a provider nor a virtual key');
    return [];
  }
  const slug = named.replace(/^@/, '');
  const isSlug = config['virtual_key'] !== undefined || named.startsWith('@');
  const vendor =
    isSlug && typeof config['provider'] === 'string' && config['provider'] !== named
      ? config['provider']
      : isSlug
        ? vendorOfSlug(slug)
        : slug;
  const model = catalog?.[2] ?? textOf(overrides['model']) ?? '*';
  const deployment = textOf(config['azure_deployment_id'] ?? config['deployment_id']);
  const found = findVendor({
    vendor,
    apiKey: isSlug
      ? keyOfSlug(draft, slug, at)
      : (draft.secret(config['api_key'], `${at}api_key`, importedVariable(vendor, 'API_KEY')) ??
        (isSigned(config) ? undefined : `\${${variableOf(vendor)}}`)),
    baseUrl: draft.text(config['custom_host']),
    apiVersion: draft.text(config['azure_api_version'] ?? config['api_version']),
    resource: textOf(config['azure_resource_name'] ?? config['resource_name']),
    region: textOf(config['aws_region'] ?? config['vertex_region']),
    project: textOf(config['vertex_project_id']),
    aws: readAwsKey(draft, config, at),
    serviceAccount: readServiceAccount(draft, config, at),
    headers: readOrganization(draft, config),
  });
  if (typeof found === 'string') {
    draft.note('impossible', `${at}${isSlug ? 'virtual_key' : 'provider'}`, found);
    return [];
  }
  // Clients use this name too: `x-portkey-virtual-key`, `@openai-prod/gpt-4o`.
  const instance = draft.provider(found, isSlug ? slug.toLowerCase() : undefined);
  const called = deployment ?? model;
  draft.model(instance, called);
  draft.note('kept', `${at}${isSlug ? 'virtual_key' : 'provider'}`, `the provider "${instance}"`);
  for (const field of Object.keys(overrides))
    if (field !== 'model')
      draft.note(
        'impossible',
        `${at}override_params.${field}`,
        'parameters of an alias are options of the policy alias-parameters, for all its targets',
      );
  return [{ to: `${instance}/${called}`, order, ...(weight !== undefined && { weight }) }];
}

/** True if requests are signed in place of using a key. */
function isSigned(config: Fields): boolean {
  return config['aws_access_key_id'] !== undefined || config['vertex_service_account_json'] !== undefined;
}

function readAwsKey(draft: Draft, config: Fields, at: string) {
  const read = (field: string) => draft.secret(config[field], `${at}${field}`, importedVariable(field));
  return { id: read('aws_access_key_id'), key: read('aws_secret_access_key'), token: read('aws_session_token') };
}

/** Reads a service account key: its JSON, as text or as a map. */
function readServiceAccount(draft: Draft, config: Fields, at: string): string | undefined {
  const given = config['vertex_service_account_json'];
  const text = typeof given === 'object' && given !== null ? JSON.stringify(given) : given;
  return draft.secret(text, `${at}vertex_service_account_json`, importedVariable('GOOGLE_SERVICE_ACCOUNT'));
}

/** Finds the vendor of a virtual key: its name begins with the vendor’s, as Portkey proposes. */
function vendorOfSlug(slug: string): string {
  const words = slug.split('-');
  const ends = words.map((_, at) => words.slice(0, words.length - at).join('-'));
  return ends.find((name) => typeof findVendor({ vendor: name, resource: 'x' }) !== 'string') ?? slug;
}

function keyOfSlug(draft: Draft, slug: string, at: string): string {
  const variable = `${slug
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^(?=\d)/, '_')}_KEY`;
  draft.note('emulated', `${at}virtual_key`, `Portkey stores the vendor’s key; set the variable ${variable} to it`);
  return `\${${variable}}`;
}

function readOrganization(draft: Draft, config: Fields): Options {
  const organization = draft.text(config['openai_organization']);
  return organization === undefined ? {} : { 'openai-organization': organization };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function snakeCase(config: Fields): Fields {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
