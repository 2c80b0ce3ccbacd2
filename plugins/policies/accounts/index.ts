import {
  type Call,
  definePlugin,
  GatewayError,
  isGatewayError,
  type Outcome,
  type PluginApi,
  type UsageFacts,
} from '../../../core/index.ts';
import { accountCommand } from './commands.ts';
import { accountRoutes } from './routes.ts';

/** What a call holds while it runs. */
interface Hold {
  readonly account: string;
  readonly amount: number;
}

const HOLD = Symbol('accounts.hold');

/** A reservation outlives the longest call of one target by this much before the sweeper settles it. */
const MARGIN_MS = 5 * 60_000;
const CALL_MS = 600_000;

const SWEEP_MS = 30_000;

/** How often a settlement is tried again while the store is away; after that the sweeper settles the estimate. */
const SETTLE_TRIES = 5;

/** The ledger on every call: reserve before it is sent, settle its true cost once, release what was never used. */
export default definePlugin({
  name: 'accounts',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      permission: {
        type: 'string',
        minLength: 1,
        default: 'accounts:read',
        description: 'The permission a token needs to read its balance and usage.',
      },
      unknownPrice: {
        enum: ['refuse', 'allow'],
        default: 'refuse',
        description:
          'With `billing: enforce`, or for a key with a budget: whether models without a known price may be called. They are metered without a cost.',
      },
      onStoreFailure: {
        enum: ['closed', 'open'],
        default: 'closed',
        description:
          'While the store is down: `closed` answers 503, `open` lets calls through unmetered (only with `billing: track`).',
      },
    },
  },
  setup(api, config) {
    const { billing } = api.settings;
    for (const route of accountRoutes(api, config.permission)) api.route(route);
    api.command(accountCommand(api));
    if (billing === 'off') return;
    const isOpen = config.onStoreFailure === 'open' && billing === 'track';

    api.hook('admit', {
      order: 'post',
      async handler(call) {
        try {
          await reserve(api, call, billing === 'enforce', config.unknownPrice === 'allow');
        } catch (error) {
          if (!(isOpen && isGatewayError(error) && error.code === 'store_unavailable')) throw error;
          api.log.warn({ req_id: call.requestId }, 'the store is down: this call is not metered');
        }
      },
    });
    api.hook('finish', (call, outcome) => settle(api, call, outcome));
    api.onReady(() => {
      const sweeper = setInterval(() => void sweep(api), SWEEP_MS);
      sweeper.unref();
      api.onClose(() => clearInterval(sweeper));
      void sweep(api);
    });
  },
});

async function reserve(api: PluginApi, call: Call, isEnforced: boolean, allowsUnknown: boolean): Promise<void> {
  const { account, budget, keyId } = call.principal;
  const estimate = api.estimate(call);
  const isLimited = isEnforced || budget !== undefined;
  if (estimate === undefined && isLimited && !allowsUnknown) {
    const [target] = call.targets;
    throw new GatewayError(
      'model_not_allowed',
      `The model "${target?.provider}/${target?.model}" has no known price, so it cannot be charged. Its operator sets one under the provider's "prices".`,
      { param: 'model' },
    );
  }
  const now = Date.now();
  const amount = estimate ?? 0;
  const outcome = await api.ledger.reserve({
    account,
    requestId: call.id,
    amount,
    floor: isEnforced ? 0 : Number.NEGATIVE_INFINITY,
    expiresAt: now + CALL_MS * Math.max(call.targets.length, 1) + MARGIN_MS,
    facts: factsOf(call, undefined),
    now,
    // Every key has a purse, so that `spent_usd` is told of those without a budget too.
    ...(keyId !== undefined && { purse: { id: keyId, limit: budget ?? Number.POSITIVE_INFINITY } }),
  });
  if (outcome === 'insufficient')
    throw new GatewayError(
      'insufficient_balance',
      'The balance of this account does not cover the call. Credit the account, or ask for fewer tokens.',
    );
  if (outcome === 'over_budget')
    throw new GatewayError('insufficient_balance', 'The budget of this API key does not cover the call.');
  if (outcome === 'duplicate') throw new GatewayError('conflict', 'This call was already reserved.');
  call.state.set(HOLD, { account, amount } satisfies Hold);
}

async function settle(api: PluginApi, call: Call, outcome: Outcome): Promise<void> {
  const hold = call.state.get(HOLD) as Hold | undefined;
  if (!hold) return;
  const isOwed = outcome.sent && (outcome.usage !== undefined || outcome.characters !== undefined);
  await persist(api, call, () =>
    isOwed
      ? api.ledger.settle({
          account: hold.account,
          requestId: call.id,
          amount: outcome.cost ?? 0,
          usage: factsOf(call, outcome),
          now: Date.now(),
        })
      : api.ledger.release(hold.account, call.id),
  );
}

/** Tries again while the store is away; a hold that stays is settled at its estimate by the sweeper, so nothing is lost. */
async function persist(api: PluginApi, call: Call, write: () => Promise<boolean>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await write();
      return;
    } catch (error) {
      if (tries >= SETTLE_TRIES) {
        api.log.error(
          { req_id: call.requestId, call: call.id, err: error },
          'a call could not be settled; the sweeper will charge its estimate',
        );
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** tries).unref());
    }
  }
}

function factsOf(call: Call, outcome: Outcome | undefined): UsageFacts {
  const target = outcome?.target ?? call.targets[0];
  const { usage, characters } = outcome ?? {};
  return {
    operation: call.operation,
    provider: target?.provider ?? '-',
    model: target?.model ?? '-',
    key: call.principal.keyId ?? '-',
    outcome: outcome?.status ?? 'unknown',
    estimated: outcome === undefined || outcome.estimated || outcome.cost === undefined,
    ...(usage && { tokens: { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens } }),
    ...(characters !== undefined && { characters }),
  };
}

async function sweep(api: PluginApi): Promise<void> {
  try {
    const swept = await api.ledger.sweep(Date.now());
    if (swept > 0) api.log.warn({ swept }, 'settled calls that a crash had left open');
  } catch (error) {
    api.log.warn({ err: error }, 'the sweep failed; the next one tries again');
  }
}
