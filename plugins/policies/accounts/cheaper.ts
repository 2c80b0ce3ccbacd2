import type { Call, ChatRequest, PluginApi } from '../../../contract/index.ts';
import { assertTarget, createModelCheck, splitName } from '../kit/model-names.ts';
import { type Books, budgetsOf, holdsOf, leastOf, namedLimit, outputFor, readRoom } from './charges.ts';

/** What `whenBudgetEnds` says: by an alias, a pattern, `provider/model` or `*`, the model that calls go to which are not covered. */
export type CheaperModels = Readonly<Record<string, string>>;

const HEADER = 'x-tollgate-budget-fallback';

/**
 * Sends calls that a balance or a budget does not cover to a cheaper model that it covers. Where it covers that one neither, or the caller may not use it,
 * the call goes on as it was, and is refused as ever. What is left is read here and held in `reserve`: only that lets a call through.
 */
export function registerCheaper(api: PluginApi, books: Books, models: CheaperModels): void {
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
      if ((await isCovered(api, call, books)) !== false) return undefined;
      const other: Call = { ...call, request: call.request, targets: [target], state: new Map(), headers: new Map() };
      if (!(await mayUse(call.principal, target)) || (await isCovered(api, other, books)) !== true) return undefined;
      call.headers.set(HEADER, to);
      api.log.info(
        { request_id: call.requestId, requested: (call.request as ChatRequest).model, model: to },
        'a budget does not cover this call: it goes to a cheaper model',
      );
      return [target];
    },
  });
}

/** Whether what is left now covers a call, where need be with a lowered limit of output; undefined where its price is not known. */
async function isCovered(api: PluginApi, call: Call, books: Books): Promise<boolean | undefined> {
  const { cost } = api.books.estimate(call);
  if (cost === undefined) return undefined;
  const counted = await books.budgets.find(call, books.now());
  const budgets = [...budgetsOf(call.principal), ...holdsOf(counted)];
  const { now } = await readRoom({ ledger: books.ledger, call, rules: books.rules, budgets });
  if (cost <= now) return true;
  return namedLimit(call) === undefined && (outputFor(api, call, now) ?? 0) >= leastOf(call, books.rules);
}

/** Finds the cheaper model of a call: by the name that was asked for, then by what it stands for, then by the longest pattern. */
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
