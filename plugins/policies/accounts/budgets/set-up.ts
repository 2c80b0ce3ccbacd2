import { createHmac, randomUUID } from 'node:crypto';
import {
  type BudgetValues,
  type Command,
  createPlanFinder,
  GatewayError,
  type Log,
  type PluginApi,
  type PluginConfig,
  parseDuration,
  type Route,
  type RouteContext,
  type Subcommand,
} from '../../../../core/index.ts';
import { auditActor, FOR_OPERATORS, listOf, sendList } from '../../../../core/operators.ts';
import { type AccountRaises, createAccountRaises, showRaise } from './account-raises.ts';
import { createReadBudgets, type ReadBudgets } from './balance.ts';
import { createBudgetBook, createKeyOrigins, keepCurrent } from './book.ts';
import { type CallBudgets, createCallBudgets } from './call-budgets.ts';
import { type BudgetClock, isoSeconds } from './counted.ts';
import { type BudgetManager, createBudgetManager } from './manage.ts';
import { createNotices, type Notice } from './notices.ts';
import type { RaiseValues } from './raises.ts';
import { createBudgetRecords } from './records.ts';
import { createViewer, registerBudgetRoutes, type Viewer } from './routes.ts';
import { RAISE_FIELDS, RAISES_SHOWN } from './view.ts';

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
  const manager = createBudgetManager(api, records);
  const show = createViewer(api, now);
  registerBudgetRoutes(api, manager, show);
  const raises = createAccountRaises(api);
  for (const route of accountRaiseRoutes(raises)) api.route(route);
  api.command(budgetCommand(manager, raises, show));

  const book = createBudgetBook({
    records,
    raises,
    findPlan: createPlanFinder(api),
    firstKeyOf: createKeyOrigins(api),
  });
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

const PATH = '/api/core/admin/accounts/:id/raises';
const BUDGET = { type: 'string', minLength: 1, maxLength: 63, description: 'A budget of the account’s plan.' } as const;

const RAISE_BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['budget', 'amount_usd', 'until'],
  properties: { budget: BUDGET, ...RAISE_FIELDS },
} as const;

const END_QUERY = {
  type: 'object',
  additionalProperties: false,
  required: ['budget'],
  properties: { budget: BUDGET },
} as const;

const TEXT = { type: 'string' } as const;
const RAISED = {
  type: 'object',
  required: ['account', 'budget', 'raised', 'raises'],
  properties: {
    ...{ account: TEXT, budget: TEXT },
    raised: { type: 'string', description: 'What its raises add at the moment, US dollars as a decimal string.' },
    raises: RAISES_SHOWN,
  },
} as const;

/** `/api/core/admin/accounts/{id}/raises`: what one account may spend beyond a budget of its plan, for a while. */
function accountRaiseRoutes(raises: AccountRaises): readonly Route[] {
  const responses = { 200: { description: 'The raises of this budget since.', schema: RAISED } };
  const list: Route = {
    ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'List the raises of an account that run' },
    responses: { 200: { description: 'All of them, by budget.', schema: listOf(RAISED) } },
    handler: async (ctx) => sendList(ctx, (await raises.list(idOf(ctx))).map(showRaise), undefined),
  };
  const raise: Route = {
    ...{ ...FOR_OPERATORS, method: 'POST', path: PATH, summary: 'Raise a budget of an account’s plan for a while' },
    description: 'For this account alone. Until its end it adds to the amount of each period.',
    body: RAISE_BODY,
    responses,
    async handler(ctx) {
      const { budget, ...values } = ctx.state.body as PluginConfig<typeof RAISE_BODY>;
      send(ctx, showRaise(await raises.raise(auditActor(ctx), idOf(ctx), budget, values)));
    },
  };
  const end: Route = {
    ...{ ...FOR_OPERATORS, method: 'DELETE', path: PATH, summary: 'End the raises of a budget for an account' },
    query: END_QUERY,
    responses,
    async handler(ctx) {
      const budget = String(ctx.query['budget']);
      send(ctx, showRaise(await raises.end(auditActor(ctx), idOf(ctx), budget)));
    },
  };
  return [list, raise, end];
}

function send(ctx: RouteContext<unknown>, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}

function idOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['id'] ?? '';
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

/** `tollgate budgets list|put|remove|raise`: what operators do with budgets, on the configured store directly. */
function budgetCommand(manager: BudgetManager, raises: AccountRaises, show: Viewer): Command {
  return {
    name: 'budgets',
    summary: 'List, make, remove and raise budgets',
    subcommands: [
      listCommand(manager, show),
      putCommand(manager, show),
      removeCommand(manager, show),
      raiseCommand(manager, raises, show),
    ],
  };
}

const HEAD = [
  'NAME',
  'OF',
  'EVERY',
  'ZONE',
  'LIMIT USD',
  'SPENT USD',
  'HELD USD',
  'LEFT USD',
  'RESETS UTC',
  'OWNER',
] as const;

function listCommand(manager: BudgetManager, show: Viewer): Subcommand {
  return {
    name: 'list',
    summary: 'List the budgets that calls share, with what is spent of each',
    async run({ io }) {
      const budgets = await show(await manager.list());
      const rows = budgets.map((budget) => {
        const text = (field: string): string => String(budget[field] ?? '-');
        const limit = budget['raised'] === undefined ? text('amount') : `${text('amount')}+${text('raised')}`;
        const of = text(text('of'));
        const numbers = [limit, text('spent'), text('held'), text('left')];
        return [
          text('name'),
          of === '-' ? 'all' : of,
          text('every'),
          text('timezone'),
          ...numbers,
          text('resets_at'),
          text('owner'),
        ];
      });
      io.result(budgets, rows.length === 0 ? 'There are no budgets.' : io.table(HEAD, rows));
    },
  };
}

/** The longest name that a budget counts by. */
const MAX_FILTER = 300;
const FILTERS = ['user', 'key', 'tag', 'plan', 'provider', 'model'] as const;

function putCommand(manager: BudgetManager, show: Viewer): Subcommand {
  return {
    name: 'put',
    summary: 'Make or replace a budget that the store owns; gateways that run count it within five seconds',
    args: [
      { name: '<name>', summary: 'what it is called; what is spent is counted under it' },
      { name: '<amount>', summary: 'US dollars a period, such as 20.00' },
    ],
    options: [
      { flags: '--every <period>', summary: 'total, hour, day, week or month', required: true },
      { flags: '--timezone <zone>', summary: 'whose clock begins a period, such as Europe/Berlin; UTC unless given' },
      { flags: '--starts-on <day>', summary: 'of a week a weekday, of a month 1 to 28' },
      { flags: '--soft <amount>', summary: 'US dollars from which on it is warned of' },
      { flags: '--user <id>', summary: 'counts calls of this user alone' },
      { flags: '--key <id>', summary: 'counts calls of this API key alone, and of those that replace it' },
      { flags: '--tag <name=value>', summary: 'counts calls with this tag alone' },
      { flags: '--plan <name>', summary: 'counts calls of users with this plan alone' },
      { flags: '--provider <name>', summary: 'counts calls at this provider alone' },
      { flags: '--model <id>', summary: 'counts this model alone; gpt-5* is all that begin so' },
    ],
    async run({ args: [name = '', amount = ''], options, io, actor }) {
      const every = options['every'];
      if (!isPeriod(every))
        throw new GatewayError('invalid_request', '--every is total, hour, day, week or month.', { param: 'every' });
      const starts = options['startsOn'];
      const long = FILTERS.find((field) => String(options[field] ?? '').length > MAX_FILTER);
      if (long !== undefined)
        throw new GatewayError('invalid_request', `--${long} is longer than ${MAX_FILTER} characters.`, {
          param: long,
        });
      const filter = FILTERS.flatMap((field) => (typeof options[field] === 'string' ? [[field, options[field]]] : []));
      const budget = await manager.put(
        name,
        {
          ...{ amount_usd: amount, every },
          timezone: typeof options['timezone'] === 'string' ? options['timezone'] : 'UTC',
          ...(typeof starts === 'string' && { starts_on: /^\d+$/.test(starts) ? Number(starts) : starts }),
          ...(typeof options['soft'] === 'string' && { soft_usd: options['soft'] }),
          ...Object.fromEntries(filter),
        },
        { actor },
      );
      const [shown] = await show([budget]);
      io.result(shown, `the budget ${name} is ${amount} USD ${every === 'total' ? 'in all' : `a ${every}`}`);
    },
  };
}

function removeCommand(manager: BudgetManager, show: Viewer): Subcommand {
  return {
    name: 'remove',
    summary: 'Remove a budget that the store owns',
    args: [{ name: '<name>', summary: 'a budget of "budgets list"' }],
    async run({ args: [name = ''], io, actor }) {
      const [removed] = await show([await manager.remove(name, { actor })]);
      io.result(removed, `the budget ${name} is removed`);
    },
  };
}

function isPeriod(value: unknown): value is BudgetValues['every'] {
  return ['total', 'hour', 'day', 'week', 'month'].some((period) => period === value);
}

/** `tollgate budgets raise`: a budget that calls share or, with `--account`, one of the account's plan. */
function raiseCommand(manager: BudgetManager, raises: AccountRaises, show: Viewer): Subcommand {
  return {
    name: 'raise',
    summary: 'Raise a budget for a while, also one of the configuration or of one account; or end its raises',
    args: [
      { name: '<name>', summary: 'a budget of "budgets list"; with --account, one of its plan' },
      { name: '[amount]', summary: 'US dollars beside its own' },
    ],
    options: [
      { flags: '--until <time>', summary: 'when it ends: a date-time with a zone, or how long it lasts, such as 2d' },
      { flags: '--account <id>', summary: 'for this account alone, such as u_42: a budget of its plan' },
      { flags: '--end', summary: 'ends all raises of the budget instead' },
    ],
    async run({ args: [name = '', amount], options, io, actor }) {
      const { account } = options;
      const isOwn = typeof account === 'string';
      const whose = isOwn ? `${name} of ${account}` : name;
      if (options['end'] === true) {
        const ended = isOwn
          ? showRaise(await raises.end(actor, account, name))
          : (await show([await manager.endRaises(name, { actor })]))[0];
        io.result(ended, `the budget ${whose} has no raise any more`);
        return;
      }
      const values = readValues(amount, options['until']);
      const raised = isOwn
        ? showRaise(await raises.raise(actor, account, name, values))
        : (await show([await manager.raise(name, values, { actor })]))[0];
      io.result(raised, `the budget ${whose} has ${amount} USD more until ${values.until}`);
    },
  };
}

function readValues(amount: string | undefined, until: unknown): RaiseValues {
  if (amount !== undefined && typeof until === 'string') return { amount_usd: amount, until: readEnd(until) };
  throw new GatewayError(
    'invalid_request',
    'A raise needs an amount and an end: tollgate budgets raise <name> 5 --until 2d',
  );
}

/** A time, or how long from now. */
function readEnd(text: string): string {
  try {
    return isoSeconds(Math.ceil((Date.now() + parseDuration(text)) / 1000) * 1000);
  } catch {
    return text;
  }
}
