import {
  type BudgetValues,
  GatewayError,
  type GatewaySettings,
  type Plan,
  type PluginApi,
  type StoredPlan,
  type StoredPlans,
} from '../../../contract/index.ts';
import { ALL_PLANS, changedMeanwhile, PLAN_SCHEMA, PLANS, readPlan, writeBudget } from '../kit/index.ts';
import { type Action, type Actions, type List, type Resource, resource, WITHIN } from '../kit/resource.ts';
import { refuseUnknownModels } from './budgets/model-check.ts';

/** Plan with its limits and its owner. Only plans of the store can be changed at run time. */
interface ShownPlan extends WrittenPlan {
  readonly object: 'plan';
  readonly name: string;
  readonly owner: 'file' | 'store';
  readonly is_default: boolean;
}

/** Plan as in the configuration. */
type WrittenPlan = Omit<Plan, 'budgets'> & { readonly budgets?: readonly BudgetValues[] };

const SHOWN_PLAN = {
  type: 'object',
  required: ['object', 'name', 'owner', 'is_default'],
  properties: {
    object: { const: 'plan' },
    name: { type: 'string' },
    owner: { enum: ['file', 'store'], description: 'Only plans of the store can be changed here.' },
    is_default: { type: 'boolean' },
    // Limits as under `plans` in the configuration.
    ...PLAN_SCHEMA.properties,
  },
} as const;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const MAX_PLANS = 500;
const MAX_JSON = 64 * 1024;

/** Limits with their own column. */
const COUNTS: readonly string[] = ['rpm', 'tpm', 'concurrency'];

const COLUMNS: List<ShownPlan>['cli']['columns'] = [
  ['PLAN', ({ name }) => name],
  ['OWNER', ({ owner }) => owner],
  ['DEFAULT', ({ is_default }) => (is_default ? 'yes' : '-')],
  ['REQUESTS/MIN', ({ rpm = '-' }) => String(rpm)],
  ['TOKENS/MIN', ({ tpm = '-' }) => String(tpm)],
  ['CALLS AT ONCE', ({ concurrency = '-' }) => String(concurrency)],
  [
    'MORE',
    (plan) =>
      Object.keys(limitsOf(plan))
        .filter((name) => !COUNTS.includes(name))
        .join(', ') || '-',
  ],
];

/**
 * Registers `/api/core/admin/plans` and `tollgate accounts plans`. Plans of the file are read-only; those of the store
 * can be changed and deleted.
 */
export function registerPlans(api: PluginApi): void {
  const { plans: ofFile, defaultPlan } = api.settings;
  const records = api.books.records<StoredPlans>(PLANS);
  const readStored = async (): Promise<StoredPlans> => (await records.find(ALL_PLANS)).value ?? {};
  const show: ShowPlan = (name, owner, plan) => {
    return { object: 'plan', name, owner, is_default: name === defaultPlan, ...written(plan) };
  };
  const table: Resource<ShownPlan | undefined, number> = {
    ...{ name: 'plan', path: '/api/core/admin/plans', id: 'name', schema: SHOWN_PLAN },
    scopes: { read: 'plans:read', write: 'plans:write' },
    response: 'The plan since.',
    command: {
      name: 'plans',
      summary: 'List, create and delete plans',
      id: { name: '<name>', summary: 'the name of the plan' },
    },
    async find(name) {
      if (Object.hasOwn(ofFile, name)) return { version: 0, value: show(name, 'file', ofFile[name] ?? {}) };
      const stored = findOwnPlan(await readStored(), name);
      return { version: stored?.version ?? 0, value: stored && show(name, 'store', stored.plan) };
    },
    show: (plan) => plan,
    notFound: noPlan,
  };

  resource(api, table, (make) => [
    make.list({
      http: {
        ...{ summary: 'List plans; those of the configuration file come first', response: 'All plans.' },
        ...{ schema: SHOWN_PLAN, isWhole: true },
      },
      async read() {
        const stored = Object.entries(await readStored()).filter(([name]) => !Object.hasOwn(ofFile, name));
        return {
          rows: [
            ...Object.entries(ofFile).map(([name, plan]) => show(name, 'file', plan)),
            ...stored.map(([name, { plan }]) => show(name, 'store', plan)),
          ],
        };
      },
      cli: { columns: COLUMNS },
    }),
    make.show({
      http: { summary: 'Show a plan', response: 'The plan, with its version as ETag.' },
      show: (plan) => plan,
      cli: { summary: 'Show a plan, as JSON', text: (plan) => JSON.stringify(limitsOf(plan), undefined, 2) },
    }),
    putAction(make, api, show),
    removeAction(make, api, show),
  ]);
}

type Make = Actions<ShownPlan | undefined, number>;
type ShowPlan = (name: string, owner: ShownPlan['owner'], plan: Plan) => ShownPlan;

function putAction(make: Make, api: PluginApi, show: ShowPlan): Action {
  const records = api.books.records<StoredPlans>(PLANS);
  return make.change({
    word: 'put',
    http: {
      ...{ method: 'PUT', summary: 'Create or replace a plan' },
      description: 'Replaces all limits. A plan of the configuration file returns 409 `conflict`.',
      body: { ...PLAN_SCHEMA, examples: [{ rpm: 600, tpm: 40_000 }] },
    },
    async apply({ id: name, body, expected }) {
      checkName(name);
      refuseFile(api.settings, name);
      const plan = readPlan(body, api.operators.validate);
      checkProviders(api, plan);
      refuseUnknownModels(api, plan.budgets);
      const change = await records.change(ALL_PLANS, (plans = {}) => withPlan(plans, name, plan, expected));
      const before = findOwnPlan(change.before ?? {}, name)?.plan;
      return {
        version: findOwnPlan(change.value, name)?.version ?? 0,
        ...{ before: before && written(before), after: written(plan) },
        show: () => show(name, 'store', plan),
      };
    },
    cli: {
      summary: 'Create or replace a plan',
      args: [{ name: '<json>', summary: `limits as under "plans" in the configuration: '{"rpm":60}'; - reads stdin` }],
      read: async ({ args: [, text = ''], io }) => parsePlan(text === '-' ? await io.read() : text),
      text: ({ name }) => `the plan ${name} is put; ${WITHIN}`,
    },
  });
}

function removeAction(make: Make, api: PluginApi, show: ShowPlan): Action {
  const records = api.books.records<StoredPlans>(PLANS);
  return make.change({
    word: 'remove',
    http: {
      ...{ method: 'DELETE', summary: 'Delete a plan', response: 'The deleted plan.' },
      description: 'Callers whose only plan this is get 403 until an operator sets another.',
    },
    async apply({ id: name, expected }) {
      refuseFile(api.settings, name);
      const { before = {} } = await records.change(ALL_PLANS, (plans = {}) => withoutPlan(plans, name, expected));
      const plan = findOwnPlan(before, name)?.plan ?? {};
      return { before: written(plan), show: () => show(name, 'store', plan) };
    },
    cli: {
      summary: 'Delete a plan; its callers are rejected until they have another plan',
      text: ({ name }) => `the plan ${name} is removed; ${WITHIN}`,
    },
  });
}

function refuseFile({ plans }: GatewaySettings, name: string): void {
  if (!Object.hasOwn(plans, name)) return;
  throw new GatewayError(
    'conflict',
    `The plan "${name}" is in the configuration file. Change it there, under "plans", and reload.`,
    { param: 'name' },
  );
}

/** Adds or replaces a plan; throws after a conflicting change. */
function withPlan(plans: StoredPlans, name: string, plan: Plan, expected: number | undefined): StoredPlans {
  const known = findOwnPlan(plans, name);
  if (expected !== undefined && expected !== (known?.version ?? 0)) throw changedMeanwhile();
  if (!known && Object.keys(plans).length >= MAX_PLANS)
    throw new GatewayError('conflict', `The maximum of ${MAX_PLANS} plans is reached. Delete one first.`);
  return { ...plans, [name]: { plan, version: nextVersion(plans) } };
}

/** Removes a plan; throws if it does not exist or after a conflicting change. */
function withoutPlan(plans: StoredPlans, name: string, expected: number | undefined): StoredPlans {
  const known = findOwnPlan(plans, name);
  if (!known) throw noPlan(name);
  if (expected !== undefined && expected !== known.version) throw changedMeanwhile();
  return Object.fromEntries(Object.entries(plans).filter(([each]) => each !== name));
}

/** Error for an unknown plan. */
function noPlan(name: string): GatewayError {
  return new GatewayError(
    'not_found',
    `There is no plan "${name.slice(0, 80)}". "tollgate accounts plans list" shows them.`,
  );
}

function limitsOf({ object: _, name: __, owner: ___, is_default: ____, ...limits }: ShownPlan): WrittenPlan {
  return limits;
}

function written({ budgets, ...plan }: Plan): WrittenPlan {
  return { ...plan, ...(budgets && { budgets: budgets.map(writeBudget) }) };
}

function findOwnPlan(plans: StoredPlans, name: string): StoredPlan | undefined {
  return Object.hasOwn(plans, name) ? plans[name] : undefined;
}

/** Returns a version that no plan here has, so a plan that is deleted and created again has a new version. */
function nextVersion(plans: StoredPlans): number {
  return Math.max(Date.now(), ...Object.values(plans).map(({ version }) => version + 1));
}

function checkName(name: string): void {
  if (NAME.test(name)) return;
  throw new GatewayError(
    'invalid_request',
    'A plan name has 1 to 63 letters, digits, dots, dashes and underscores, and begins with a letter or digit.',
    { param: 'name' },
  );
}

/** A misspelled provider would limit nothing. */
function checkProviders(
  { models: { offers } }: Pick<PluginApi, 'models'>,
  { providers = {}, budgets = [] }: Plan,
): void {
  const known = new Set([...offers('chat').keys(), ...offers('embeddings').keys(), ...offers('speech').keys()]);
  const named = [...Object.keys(providers), ...budgets.flatMap(({ provider }) => provider ?? [])];
  const wrong = named.find((name) => !known.has(name));
  if (wrong === undefined) return;
  const shown = [...known].slice(0, 20).join(', ');
  throw new GatewayError('invalid_request', `There is no provider "${wrong.slice(0, 80)}" here. Providers: ${shown}.`, {
    param: Object.hasOwn(providers, wrong) ? `providers.${wrong.slice(0, 80)}` : 'budgets',
  });
}

function parsePlan(text: string): object {
  try {
    if (text.length <= MAX_JSON) return JSON.parse(text) as object;
  } catch {
    // The error below covers it.
  }
  throw new GatewayError(
    'invalid_request',
    `Invalid plan: it must be JSON of up to 64 KiB, such as '{"rpm":60,"tpm":40000}'.`,
    {
      param: 'json',
    },
  );
}
