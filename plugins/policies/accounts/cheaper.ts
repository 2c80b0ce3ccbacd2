import type { Call, ChatRequest, PluginApi } from '../../../contract/index.ts';
import { assertTarget, createModelCheck, splitName } from '../kit/model-names.ts';
import { holdsOf, isCovered, type LedgerContext, readRoom } from './holds/money.ts';

/**
 * Option `whenBudgetEnds`: maps an alias, a pattern, `provider/model` or `*` to the model for calls that are not
 * covered.
 */
export type CheaperModels = Readonly<Record<string, string>>;

const HEADER = 'x-tollgate-budget-fallback';

/**
 * Redirects calls that the balance or a budget does not cover to a cheaper model that it covers. If the cheaper model
 * is not covered or not allowed for the caller, the call continues unchanged and is rejected as usual. This hook only
 * reads the remaining money; only `reserve` holds it and admits the call.
 */
export function registerCheaper(api: PluginApi, context: LedgerContext, models: CheaperModels): void {
  if (Object.keys(models).length === 0) return;
  const find = createFinder(models);
  const mayUse = createModelCheck(api);
  api.onRegistered(() => {
    for (const [name, to] of Object.entries(models))
      assertTarget(api, `/whenBudgetEnds/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, to);
  });

  api.hook('route', {
    operations: ['chat'],
    order: 'pre',
    async handler(call) {
      const to = find(call as Call<'chat'>);
      if (to === undefined || call.client?.ownSubscription) return undefined;
      const [first] = call.targets;
      const target = splitName(to);
      if (call.targets.length === 1 && first?.provider === target.provider && first.model === target.model)
        return undefined;
      if ((await canPay(api, call, context)) !== false) return undefined;
      const other: Call = { ...call, request: call.request, targets: [target], state: new Map(), headers: new Map() };
      if (!(await mayUse(call.principal, target)) || (await canPay(api, other, context)) !== true) return undefined;
      call.headers.set(HEADER, to);
      api.log.info(
        { request_id: call.requestId, requested: (call.request as ChatRequest).model, model: to },
        'a budget does not cover this call; it is sent to a cheaper model',
      );
      return [target];
    },
  });
}

/**
 * Checks if the remaining money covers a call, possibly with a lowered output limit. Undefined if the price is unknown.
 */
async function canPay(api: PluginApi, call: Call, context: LedgerContext): Promise<boolean | undefined> {
  const { cost } = api.books.estimate(call);
  if (cost === undefined) return undefined;
  const counted = await context.budgets.find(call, context.now());
  const budgets = holdsOf(counted);
  const { now } = await readRoom(context, call, budgets);
  return isCovered(api, context.rules, call, cost, now);
}

/** Finds the cheaper model of a call: by the requested name, then by its target, then by the longest pattern. */
function createFinder(models: CheaperModels): (call: Call<'chat'>) => string | undefined {
  const exact = new Map(Object.entries(models));
  const patterns = [...exact].flatMap(([name, to]) => (name.endsWith('*') ? [[name.slice(0, -1), to] as const] : []));
  patterns.sort(([one], [other]) => other.length - one.length);
  return ({ request, targets: [first] }) => {
    const names = [request.model, ...(first ? [`${first.provider}/${first.model}`] : [])];
    for (const name of names) {
      const found = exact.get(name);
      if (found !== undefined) return found;
    }
    return patterns.find(([start]) => names.some((name) => name.startsWith(start)))?.[1];
  };
}
