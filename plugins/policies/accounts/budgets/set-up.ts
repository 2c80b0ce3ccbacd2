import { createHmac, randomUUID } from 'node:crypto';
import type { Log, PluginApi } from '../../../../core/index.ts';
import { createPlanFinder } from '../../kit/index.ts';
import { registerTeams } from '../teams/manage.ts';
import { registerTeamBudgets } from '../teams/team-budgets.ts';
import { accountRaiseRoutes, createAccountRaises } from './account-raises.ts';
import { createReadBudgets, type ReadBudgets } from './balance.ts';
import type { BudgetClock } from './budget-window.ts';
import {
  type CallBudgets,
  createBudgetBook,
  createCallBudgets,
  createKeyOrigins,
  keepCurrent,
} from './find-budgets.ts';
import { createReadRule, createViewer, registerBudgets } from './manage.ts';
import { checkConfigured } from './model-check.ts';
import { nearAction } from './near.ts';
import { createNotices, type Notice } from './notices.ts';
import { createBudgetRecords } from './records.ts';

interface BudgetParts {
  /** For the books. */
  readonly calls: CallBudgets;
  /** For callers. */
  readonly read: ReadBudgets;
}

/**
 * Makes what counts calls in budgets and tells operators what happens, reads the store's budgets while the gateway runs, and registers
 * the routes and the command of operators.
 */
export function setUpBudgets(api: PluginApi, now: BudgetClock, webhook: WebhookOptions | undefined): BudgetParts {
  const { ledger, log, stores } = api;
  const records = createBudgetRecords(api);
  const raises = createAccountRaises(api);
  checkConfigured(api);

  const book = createBudgetBook({
    records,
    raises,
    findPlan: createPlanFinder(api),
    firstKeyOf: createKeyOrigins(api),
    aliases: () => new Map(api.aliases()),
  });
  const view = createViewer(api, now);
  const readRule = createReadRule(api);
  registerBudgets(api, { records, raises, view, readRule, near: nearAction({ records, book, ledger, now }) });
  registerTeams(api, { budgets: records, readRule });
  registerTeamBudgets(api, { records, view, readRule });
  for (const route of accountRaiseRoutes(raises)) api.route(route);
  if (api.settings.billing !== 'off') keepCurrent(api, book);
  // What waits for the webhook outlives a reload.
  const deliveries =
    webhook &&
    api.keep(
      'budget-webhook',
      () => createDeliveries(log),
      (kept) => kept.close(),
    );
  const send = webhook && deliveries && createWebhook(api, webhook, deliveries);
  const notices = createNotices({ sets: stores.sets, log, send });
  return {
    calls: createCallBudgets({ book, notices, ledger, now }),
    read: createReadBudgets(ledger, book, now),
  };
}

/** Where notices are posted to, and what they are signed with. */
interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
}

/** Something to be delivered: resolves when it was, with `no` when trying again is of no use; rejects when it may be. */
type Send = () => Promise<'delivered' | 'no'>;

/** Deliveries that are tried again until they are taken, or too old. */
interface Deliveries {
  add(about: string, send: Send): void;
  /** Tries what waits once more, and stops. */
  close(): Promise<void>;
}

interface DeliveriesOptions {
  readonly firstPauseMs?: number;
  readonly maxTries?: number;
  readonly maxWaiting?: number;
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;
/** With the pauses between them about two hours. */
const MAX_TRIES = 32;
const MAX_WAITING = 500;
const TIMEOUT_MS = 10_000;
/** What a receiver's answer must stay below for another try to make sense: it is too busy, or broken. */
const AGAIN: ReadonlySet<number> = new Set([408, 425, 429]);

/** Makes a queue that delivers in order, one at a time, with growing pauses while the receiver is away. */
export function createDeliveries(log: Log, options: DeliveriesOptions = {}): Deliveries {
  const { firstPauseMs = FIRST_PAUSE_MS, maxTries = MAX_TRIES, maxWaiting = MAX_WAITING } = options;
  const waiting: { readonly about: string; readonly send: Send; tries: number }[] = [];
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isClosed = false;

  const work = async (): Promise<void> => {
    for (let next = waiting[0]; next; next = waiting[0]) {
      next.tries += 1;
      const { about, tries } = next;
      try {
        if ((await next.send()) === 'no') log.error({ about }, 'the webhook of budgets refused a notice');
      } catch (error) {
        if (tries < maxTries && !isClosed) {
          log.debug({ about, err: error }, 'the webhook of budgets did not take a notice; it is sent again');
          timer = setTimeout(start, Math.min(firstPauseMs * 2 ** (tries - 1), LONGEST_PAUSE_MS));
          timer.unref();
          return;
        }
        log.error({ about, tries, err: error }, 'the webhook of budgets did not take a notice, which is given up');
      }
      waiting.shift();
    }
  };
  const start = (): void => {
    timer = undefined;
    running = work().finally(() => {
      running = undefined;
    });
  };

  return {
    add(about, send) {
      if (waiting.length >= maxWaiting) {
        log.error(
          { about, waiting: waiting.length },
          'too many notices wait for the webhook of budgets; this one is given up',
        );
        return;
      }
      waiting.push({ about, send, tries: 0 });
      if (!timer && !running) start();
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
      clearTimeout(timer);
      if (waiting.length > 0) await work();
    },
  };
}

/** Makes what posts notices, signed: `x-tollgate-signature: t=<Unix s>,v1=<hex HMAC-SHA-256 of "t.body">`. */
export function createWebhook(
  api: Pick<PluginApi, 'http'>,
  { url, secret }: WebhookOptions,
  deliveries: Deliveries,
): (notice: Notice) => void {
  return (notice) => {
    const createdAt = new Date().toISOString();
    // The same id at every try, so that a receiver knows what it has.
    const body = JSON.stringify({ id: randomUUID(), created_at: createdAt, ...notice });
    deliveries.add(`${notice.type} ${notice.budget}`, async () => {
      const http = await api.http();
      const { statusCode } = await http.post(url, {
        body,
        headers: { 'content-type': 'application/json', 'x-tollgate-signature': signatureOf(secret, body, Date.now()) },
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: TIMEOUT_MS },
      });
      if (statusCode >= 200 && statusCode < 300) return 'delivered';
      if (statusCode < 500 && !AGAIN.has(statusCode)) return 'no';
      throw new Error(`the webhook answered ${statusCode}`);
    });
  };
}

/** The signature of a body, with its time so that an old one can be refused. */
function signatureOf(secret: string, body: string, now: number): string {
  const seconds = Math.floor(now / 1000);
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}
