import {
  type AuditActor,
  type BudgetValues,
  GatewayError,
  type Plan,
  type PluginApi,
  type StoredPlan,
  type StoredPlans,
} from '../../../core/index.ts';
import { ALL_PLANS, changedMeanwhile, PLANS, readPlan, writeBudget } from '../../../core/operators.ts';

/** A plan, and who owns it: only those of the store are changed at run time. */
export interface ShownPlan {
  readonly object: 'plan';
  readonly name: string;
  readonly owner: 'file' | 'store';
  readonly is_default: boolean;
  /** As the configuration writes it. */
  readonly plan: Omit<Plan, 'budgets'> & { readonly budgets?: readonly BudgetValues[] };
}

export interface PlanVersion {
  readonly version: number;
  readonly plan: ShownPlan;
}

/** What operators do with plans, each change written down in the audit log. */
export interface PlanOperations {
  list(): Promise<readonly ShownPlan[]>;
  /** Undefined for one that there is not. */
  find(name: string): Promise<PlanVersion | undefined>;
  /** Makes a plan, or replaces it whole; throws `conflict` for one of the file. */
  put(actor: AuditActor, name: string, plan: unknown, expected?: number): Promise<PlanVersion>;
  remove(actor: AuditActor, name: string, expected?: number): Promise<ShownPlan>;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const MAX_PLANS = 500;

type Api = Pick<PluginApi, 'settings' | 'records' | 'audit' | 'offers'>;

export function createPlanOperations(api: Api): PlanOperations {
  const { plans: ofFile, defaultPlan } = api.settings;
  const records = api.records<StoredPlans>(PLANS);
  const show = (name: string, owner: ShownPlan['owner'], plan: Plan): ShownPlan => {
    return { object: 'plan', name, owner, is_default: name === defaultPlan, plan: written(plan) };
  };
  const readStored = async (): Promise<StoredPlans> => (await records.find(ALL_PLANS)).value ?? {};
  const refuseFile = (name: string): void => {
    if (!Object.hasOwn(ofFile, name)) return;
    throw new GatewayError(
      'conflict',
      `The plan "${name}" is the configuration file's: change it under "plans" there, and reload.`,
      { param: 'name' },
    );
  };

  return {
    async list() {
      const stored = Object.entries(await readStored()).filter(([name]) => !Object.hasOwn(ofFile, name));
      return [
        ...Object.entries(ofFile).map(([name, plan]) => show(name, 'file', plan)),
        ...stored.map(([name, { plan }]) => show(name, 'store', plan)),
      ];
    },

    async find(name) {
      if (Object.hasOwn(ofFile, name)) return { version: 0, plan: show(name, 'file', ofFile[name] ?? {}) };
      const stored = own(await readStored(), name);
      return stored && { version: stored.version, plan: show(name, 'store', stored.plan) };
    },

    async put(actor, name, given, expected) {
      checkName(name);
      refuseFile(name);
      const plan = readPlan(given);
      checkProviders(api, plan);
      const { before, value } = await records.change(ALL_PLANS, (plans) => withPlan(plans ?? {}, name, plan, expected));
      const was = own(before ?? {}, name)?.plan;
      await api.audit({
        actor,
        action: 'plan.put',
        subject: name,
        ...(was && { before: written(was) }),
        after: written(plan),
      });
      return { version: own(value, name)?.version ?? 0, plan: show(name, 'store', plan) };
    },

    async remove(actor, name, expected) {
      refuseFile(name);
      const { before = {} } = await records.change(ALL_PLANS, (plans) => withoutPlan(plans ?? {}, name, expected));
      const plan = own(before, name)?.plan ?? {};
      await api.audit({ actor, action: 'plan.remove', subject: name, before: written(plan) });
      return show(name, 'store', plan);
    },
  };
}

/** The plans with one put; throws where another change came before. */
function withPlan(plans: StoredPlans, name: string, plan: Plan, expected: number | undefined): StoredPlans {
  const known = own(plans, name);
  if (expected !== undefined && expected !== (known?.version ?? 0)) throw changedMeanwhile();
  if (!known && Object.keys(plans).length >= MAX_PLANS)
    throw new GatewayError('conflict', `There are ${MAX_PLANS} plans, and more are not allowed. Remove one first.`);
  return { ...plans, [name]: { plan, version: nextVersion(plans) } };
}

/** The plans without one; throws where there is none, or another change came before. */
function withoutPlan(plans: StoredPlans, name: string, expected: number | undefined): StoredPlans {
  const known = own(plans, name);
  if (!known) throw noPlan(name);
  if (expected !== undefined && expected !== known.version) throw changedMeanwhile();
  return Object.fromEntries(Object.entries(plans).filter(([each]) => each !== name));
}

/** The error for a plan that there is not. */
export function noPlan(name: string): GatewayError {
  return new GatewayError('not_found', `There is no plan "${name.slice(0, 80)}". "tollgate plans list" shows them.`);
}

function written({ budgets, ...plan }: Plan): ShownPlan['plan'] {
  return { ...plan, ...(budgets && { budgets: budgets.map(writeBudget) }) };
}

function own(plans: StoredPlans, name: string): StoredPlan | undefined {
  return Object.hasOwn(plans, name) ? plans[name] : undefined;
}

/** A number that no plan here has: one that is removed and put again is another version. */
function nextVersion(plans: StoredPlans): number {
  return Math.max(Date.now(), ...Object.values(plans).map(({ version }) => version + 1));
}

function checkName(name: string): void {
  if (NAME.test(name)) return;
  throw new GatewayError(
    'invalid_request',
    'A plan’s name has 1 to 63 of a-z, A-Z, 0-9, ".", "_" and "-", and begins with a letter or digit.',
    { param: 'name' },
  );
}

/** A misspelt provider would limit nothing. */
function checkProviders({ offers }: Api, { providers = {}, budgets = [] }: Plan): void {
  const known = new Set([...offers('chat').keys(), ...offers('embeddings').keys(), ...offers('speech').keys()]);
  const named = [...Object.keys(providers), ...budgets.flatMap(({ provider }) => provider ?? [])];
  const wrong = named.find((name) => !known.has(name));
  if (wrong === undefined) return;
  const shown = [...known].slice(0, 20).join(', ');
  throw new GatewayError('invalid_request', `There is no provider "${wrong.slice(0, 80)}" here; there are: ${shown}.`, {
    param: Object.hasOwn(providers, wrong) ? `providers.${wrong.slice(0, 80)}` : 'budgets',
  });
}
