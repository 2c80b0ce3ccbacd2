import type { Generation } from '../calls/generation.ts';
import { clocksFor } from '../calls/routing/clocks.ts';
import { targetsOfRequest } from '../calls/targets.ts';
import type { HedgeRule, ModelRoute } from '../config/model-routes.ts';
import type { Target } from '../contract/call.ts';
import type { CommandContext } from './commands.ts';
import { createIo, formatTable } from './io.ts';
import { withGeneration } from './load.ts';

/** `tollgate providers explain <model>`: where calls of a model go, and why. */
export async function explainModel(context: CommandContext): Promise<void> {
  const [model = ''] = context.args;
  await withGeneration(context, async (generation) => {
    const { deps, catalog } = generation;
    const { aliases } = deps;
    const { targets, alias } = targetsOfRequest({ catalog, aliases }, model);
    const route = alias === undefined ? undefined : deps.routes.get(alias);
    const rows = await Promise.all(targets.map((target) => describeTarget(generation, target, route, targets.length)));
    const rules = {
      model,
      found_as:
        alias !== undefined ? 'alias' : model.startsWith(`${targets[0]?.provider}/`) ? 'provider/model' : 'bare name',
      strategy: targets.length < 2 ? 'only one' : (route?.strategy ?? 'fallback'),
      ...(route && route.strategy !== 'fallback' && { sticky: route.sticky }),
      ...(route?.hedge && targets.length > 1 && { hedge: describeHedge(route.hedge) }),
    };
    const table = formatTable(
      [
        'TARGET',
        'ORDER',
        'WEIGHT',
        'WHEN',
        'STATE',
        'IN USD/M TOKENS',
        'OUT USD/M TOKENS',
        'CONTEXT TOKENS',
        'FIRST TOKEN MS',
        'WHOLE MS',
      ],
      rows.map((row) => [
        row.target,
        String(row.order ?? ''),
        String(row.weight ?? ''),
        row.when,
        row.state,
        String(row.input ?? 'unknown'),
        String(row.output ?? 'unknown'),
        String(row.context_window ?? 'unknown'),
        String(row.first_token_ms),
        String(row.whole_ms),
      ]),
    );
    const words = Object.entries(rules).map(([name, value]) => `${name.replace('_', ' ')}: ${value}`);
    createIo(context.terminal, context.globals.json === true).result(
      { ...rules, targets: rows },
      `${words.join(', ')}\n${table}`,
    );
  });
}

function describeHedge({ after, maxExtra }: HedgeRule): string {
  return `after ${after === 'p95' ? after : `${after} ms`} for ${Number((maxExtra * 100).toFixed(3))} % of the calls`;
}

async function describeTarget(
  { deps, catalog }: Generation,
  target: Target,
  route: ModelRoute | undefined,
  of: number,
) {
  const name = `${target.provider}/${target.model}`;
  const row = route?.targets.find(({ to }) => to === name);
  const info = catalog.find(target.provider, target.model);
  const price = catalog.priceOf(target, info);
  const timeouts = deps.partsOf('chat').offers.get(target.provider)?.timeouts;
  const facts = { request: {}, anotherWaits: of > 1, isDoubtful: false };
  const { shared } = deps.routing;
  const isOpen = shared && ((await shared.isOpen(name)) || (await shared.isOpen(target.provider)));
  return {
    target: name,
    ...(row && { order: row.order, weight: row.weight }),
    when:
      !row && route ? 'prompt too long for the others' : row?.onlyWhenCheaper ? 'cheaper than the others' : 'always',
    state: !catalog.isConfigured(target.provider) ? 'no key' : isOpen ? 'open' : 'closed',
    ...(price && { input: price.input, output: price.output }),
    ...(info?.contextWindow !== undefined && { context_window: info.contextWindow }),
    first_token_ms: clocksFor(timeouts, route?.timeouts, { ...facts, stream: true }).firstTokenMs,
    whole_ms: clocksFor(timeouts, route?.timeouts, { ...facts, stream: false }).firstByteMs,
  };
}
