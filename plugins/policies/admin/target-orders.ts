import { randomUUID } from 'node:crypto';
import { GatewayError, type PluginApi, type Target } from '../../../contract/index.ts';
import { createModelNames } from '../kit/model-names.ts';
import { printable } from '../kit/printable.ts';
import { type Action, type Actions, type Resource, resource, WITHIN } from '../kit/resource.ts';

/**
 * Operators' orders for the gateways of the store: sets of this instance, and the number of changes. Each process polls
 * that number, as it does for keys: stores cannot notify processes, and an order may come from a gateway or command
 * elsewhere.
 */
const DRAINED = 'drained';
const RESETS = 'resets';
const VERSION = 'orders';
const EVERY_MS = 4_000;

/** Time for which resets are stored: twice the longest time for which a process keeps calls away from a target. */
const RESET_KEPT_MS = 600_000;
const MAX_ORDERS = 1_000;
const MAX_NAME = 300;

/** Target or provider with an operator's orders. */
interface Ordered {
  readonly object: 'target';
  readonly target: string;
  readonly drained: boolean;
}

const ORDERED = {
  type: 'object',
  required: ['object', 'target', 'drained'],
  properties: {
    object: { const: 'target' },
    target: { type: 'string', description: '`provider/model`, or a provider name.' },
    drained: { type: 'boolean', description: 'True if it gets no new calls until it is undrained.' },
  },
} as const;

type Api = Pick<PluginApi, 'stores' | 'operators' | 'keep' | 'onReady' | 'onClose' | 'route' | 'command' | 'models'>;

/**
 * `/api/core/admin/targets/{name}/drain`, `undrain`, `reset` and `tollgate targets`: stores orders about targets. Each
 * process on the store applies them from its start.
 */
export function registerTargetOrders(api: Api): void {
  const { sets } = api.stores;
  const followers = followOrders(api);
  const table: Resource<Ordered, number> = {
    name: 'target',
    path: '/api/core/admin/targets',
    id: 'name',
    schema: ORDERED,
    scopes: { read: 'targets:read', write: 'targets:write' },
    response: 'The target, with its drain state as ETag.',
    command: {
      name: 'target',
      summary: 'Drain a target or reset its health',
      id: { name: '<target>', summary: 'provider/model, or a provider for all of its models' },
    },
    async find(name) {
      const drained = name.length <= MAX_NAME && (await sets.has(DRAINED, name));
      if (!drained) assertTarget(api, name);
      return { version: drained ? 1 : 0, value: { object: 'target', target: name, drained } };
    },
  };
  resource(api, table, (make) => orderActions(make, api, followers));
}

async function orderReset(sets: Api['stores']['sets'], target: string): Promise<void> {
  const now = Date.now();
  for (const old of await sets.list(RESETS, { limit: MAX_ORDERS }))
    if (Number.parseInt(old, 10) < now - RESET_KEPT_MS) await sets.remove(RESETS, old);
  const member = `${now} ${randomUUID().slice(0, 8)} ${target}`;
  if ((await sets.add(RESETS, member, MAX_ORDERS)) === 'full') throw tooMany('resets came within ten minutes');
}

function orderActions(
  make: Actions<Ordered, number>,
  { stores: { sets } }: Api,
  tell: () => Promise<void>,
): readonly Action[] {
  const show = (target: string, drained: boolean) => (): Ordered => ({ object: 'target', target, drained });
  const setDrained = async (name: string, before: boolean, after: boolean) => {
    if (after && (await sets.add(DRAINED, name, MAX_ORDERS)) === 'full') throw tooMany('targets are drained');
    if (!after) await sets.remove(DRAINED, name);
    await tell();
    const changed = before !== after && { before: { drained: before }, after: { drained: after } };
    return { version: after ? 1 : 0, ...changed, show: show(name, after) };
  };
  return [
    make.change({
      word: 'drain',
      http: {
        summary: 'Drain a target: no new calls, running calls finish',
        description: 'Applies to all gateways of the store, over restarts and reloads, until it is undrained.',
      },
      apply: ({ id, found }) => setDrained(id, found.value.drained, true),
      cli: {
        summary: 'Drain a target: no new calls until undrained, running calls finish',
        text: ({ target }) => `${printable(target)} is drained; ${WITHIN}`,
      },
    }),
    make.change({
      word: 'undrain',
      http: { summary: 'Undrain a target' },
      async apply({ id, found }) {
        const { provider } = targetOf(id);
        if (!found.value.drained && provider !== id && (await sets.has(DRAINED, provider)))
          throw new GatewayError(
            'conflict',
            `The whole provider "${printable(provider)}" is drained. Undrain the provider.`,
          );
        return setDrained(id, found.value.drained, false);
      },
      cli: {
        summary: 'Undrain a target',
        text: ({ target }) => `${printable(target)} is not drained; ${WITHIN}`,
      },
    }),
    make.change({
      word: 'reset',
      http: {
        summary: 'Reset the health of a target, so that it gets calls immediately',
        description: 'Also resets its provider and their keys. A drained target stays drained.',
      },
      async apply({ id, found }) {
        await orderReset(sets, id);
        await tell();
        return { version: found.version, after: { reset: true }, show: show(id, found.value.drained) };
      },
      cli: {
        summary: 'Reset the health of a target, so that it gets calls immediately',
        text: ({ target }) => `${printable(target)} is reset; ${WITHIN}`,
      },
    }),
  ];
}

function tooMany(what: string): GatewayError {
  return new GatewayError('conflict', `Limit reached: ${MAX_ORDERS} ${what}. Drain whole providers, or wait.`);
}

/** Target of a name; a provider alone has no model. */
function targetOf(name: string): Target {
  const [provider = '', ...model] = name.split('/');
  return { provider, model: model.join('/') };
}

/** Throws for a name that no call can go to: an order about it would have no effect. */
function assertTarget(api: Api, name: string): void {
  const names = createModelNames(api);
  const { provider, model } = targetOf(name);
  if (name.length <= MAX_NAME && !/\p{Cc}/u.test(name))
    if (provider === name ? names.providers.includes(name) : model !== '' && names.isModelOf(provider, model)) return;
  const aliased = api.models.aliases().find(([alias]) => alias === name)?.[1];
  const near = names.near(name).filter((each) => each.includes('/'));
  const hint = aliased
    ? ` It is an alias; use one of its targets, ${aliased.slice(0, 5).join(', ')}.`
    : near.length > 0
      ? ` Did you mean ${near.join(' or ')}?`
      : ' List them with "tollgate models providers" and "tollgate targets".';
  const shown = printable(name.slice(0, MAX_NAME));
  throw new GatewayError('not_found', `Target or provider "${shown}" not found in the configuration.${hint}`);
}

/** Makes this process apply the store's orders from now on; returns a function that announces a change to all. */
function followOrders({
  stores: { sets, counters },
  operators: { gateway, gather },
  keep,
  onReady,
  onClose,
}: Api): () => Promise<void> {
  const known = keep('orders', () => ({ version: -1, resets: new Set<string>() }));
  const read = async (): Promise<boolean> => {
    const version = await counters.next(VERSION, 0);
    if (version === known.version) return true;
    const [drained, resets] = await Promise.all([
      sets.list(DRAINED, { limit: MAX_ORDERS }),
      sets.list(RESETS, { limit: MAX_ORDERS }),
    ]);
    gateway.drain(new Set(drained));
    // A process that just started has nothing to reset.
    const fresh = known.version < 0 ? [] : resets.filter((each) => !known.resets.has(each));
    Object.assign(known, { version, resets: new Set(resets) });
    for (const each of fresh) {
      const [, , ...words] = each.split(' ');
      gateway.reset(targetOf(words.join(' ')));
    }
    return true;
  };
  const all = gather('orders', read);
  onReady(async () => {
    // If the store is unavailable, the next poll follows.
    await read().catch(() => undefined);
    const timer = setInterval(() => void read().catch(() => undefined), EVERY_MS);
    timer.unref();
    onClose(() => clearInterval(timer));
  });
  return async () => {
    await counters.next(VERSION);
    await all();
  };
}
