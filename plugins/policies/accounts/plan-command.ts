import { type Command, type CommandIo, GatewayError } from '../../../core/index.ts';
import { noPlan, type PlanOperations, type ShownPlan } from './plan-operations.ts';

const NAME = { name: '<name>', summary: 'the name of the plan' } as const;
const WITHIN = 'gateways that run know it within five seconds';
const MAX_JSON = 64 * 1024;

/** `tollgate plans list|show|put|remove`. */
export function planCommand(operations: PlanOperations): Command {
  return {
    name: 'plans',
    summary: 'List plans, and put and remove those of the store',
    subcommands: [
      {
        name: 'list',
        summary: 'List plans, those of the file first',
        async run({ io }) {
          const plans = await operations.list();
          io.result({ object: 'list', data: plans, has_more: false }, formatPlans(io, plans));
        },
      },
      {
        name: 'show',
        summary: 'Show a plan, as JSON',
        args: [NAME],
        async run({ args: [name = ''], io }) {
          const found = await operations.find(name);
          if (!found) throw noPlan(name);
          io.result(found.plan, JSON.stringify(found.plan.plan, undefined, 2));
        },
      },
      {
        name: 'put',
        summary: 'Make a plan, or replace it whole',
        args: [NAME, { name: '<json>', summary: `as under "plans" in the configuration: '{"rpm":60}'; - reads stdin` }],
        async run({ args: [name = '', text = ''], io, actor }) {
          const { plan } = await operations.put(actor, name, parsePlan(text === '-' ? await io.read() : text));
          io.result(plan, `the plan ${name} is put; ${WITHIN}`);
        },
      },
      {
        name: 'remove',
        summary: 'Remove a plan; who still has it is refused until another is named',
        args: [NAME],
        async run({ args: [name = ''], io, actor }) {
          io.result(await operations.remove(actor, name), `the plan ${name} is removed; ${WITHIN}`);
        },
      },
    ],
  };
}

function parsePlan(text: string): unknown {
  try {
    if (text.length <= MAX_JSON) return JSON.parse(text);
  } catch {
    // Refused below.
  }
  throw new GatewayError('invalid_request', `The plan is no JSON of up to 64 KiB: write '{"rpm":60,"tpm":40000}'.`, {
    param: 'json',
  });
}

function formatPlans(io: Pick<CommandIo, 'table'>, plans: readonly ShownPlan[]): string {
  const rows = plans.map(({ name, owner, is_default, plan: { rpm, tpm, concurrency, ...rest } }) => [
    name,
    owner,
    is_default ? 'yes' : '-',
    ...[rpm, tpm, concurrency].map((limit) => (limit === undefined ? '-' : String(limit))),
    Object.keys(rest).join(', ') || '-',
  ]);
  return io.table(['PLAN', 'OWNER', 'DEFAULT', 'REQUESTS/MIN', 'TOKENS/MIN', 'CALLS AT ONCE', 'MORE'], rows);
}
