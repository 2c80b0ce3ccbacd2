import {
  type Command,
  type CommandIo,
  definePlugin,
  type FromSchema,
  GatewayError,
  type PluginApi,
} from '../../../contract/index.ts';
import { printable } from '../kit/printable.ts';
import type { Comparison, Explanation, Row } from './compare.ts';
import type { Days, VendorName } from './vendors.ts';

const NAMES = Object.freeze({
  type: 'array',
  items: { type: 'string', minLength: 1, maxLength: 200 },
  maxItems: 100,
  default: [],
} as const);

/** Access to one vendor's usage and cost API. */
const access = <const Url extends string>(baseUrl: Url) =>
  ({
    type: 'object',
    description: 'Access to the usage report of a vendor, and the calls to compare.',
    additionalProperties: false,
    default: {},
    properties: {
      adminKey: {
        type: 'string',
        minLength: 1,
        secret: true,
        description: 'Admin key for the usage of the whole organization or account, not a key for calls.',
      },
      baseUrl: { type: 'string', format: 'url', default: baseUrl, description: 'URL of its usage API.' },
      providers: {
        ...NAMES,
        description: 'Providers of this configuration that use this vendor. Default: the one with its name.',
      },
      projects: {
        ...NAMES,
        description: 'Ids of projects or workspaces to include. Default: all.',
      },
      keys: { ...NAMES, description: 'Ids of the vendor’s API keys to include. Default: all.' },
    },
  }) as const;

const CONFIG = {
  type: 'object',
  additionalProperties: false,
  properties: {
    openai: access('https://api.openai.com'),
    anthropic: access('https://api.anthropic.com'),
    openrouter: access('https://openrouter.ai'),
  },
} as const;

const VENDOR_NAMES = Object.freeze(Object.keys(CONFIG.properties) as VendorName[]);

type Config = FromSchema<typeof CONFIG>;

/** Command that reads vendors' charges, and shows differences from the ledger. Calls are not affected. */
export default definePlugin({
  name: 'reconcile',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['ledger'],
  commands: [{ name: 'reconcile', summary: 'Compare the ledger with the bill of a vendor' }],
  configSchema: CONFIG,
  setup(api, config) {
    api.command(reconcileCommand(api, config));
  },
});

function reconcileCommand(api: Pick<PluginApi, 'http' | 'books' | 'models'>, config: Config): Command {
  return {
    name: 'reconcile',
    summary: 'Compare the ledger with the bill of a vendor',
    changesStore: false,
    options: [
      { flags: '--provider <name>', summary: `vendor: ${VENDOR_NAMES.join(', ')}`, required: true },
      { flags: '--from <day>', summary: 'first day, in UTC, such as 2026-11-01', required: true },
      { flags: '--to <day>', summary: 'end, exclusive: a day in UTC', required: true },
      {
        flags: '--tolerance <amount>',
        summary: 'allowed difference in US dollars or as a share of the bill, such as 0.5% (default: 0.1%)',
      },
      { flags: '--all', summary: 'also show days and models without a difference' },
    ],
    async run({ options, io }) {
      const { provider, from, to, tolerance = '0.1%' } = options;
      const vendor = VENDOR_NAMES.find((name) => name === provider);
      if (vendor === undefined) throw wrong('provider', `must be one of ${VENDOR_NAMES.join(', ')}.`);
      const days = readDays(String(from), String(to));
      const bound = readTolerance(String(tolerance));
      const { providers, ...how } = config[vendor];
      const ours = providers.length > 0 ? providers : [vendor];
      const unknown = ours.find((name) => !api.models.catalog.has(name));
      if (unknown !== undefined)
        throw new GatewayError(
          'unsupported_provider',
          `provider "${unknown}" not found in the configuration\nSet the providers that use ${vendor}: policies.reconcile.${vendor}.providers.`,
        );
      // Loaded on demand: a start of the gateway does not need it.
      const [{ readBill }, { compareWith }] = await Promise.all([import('./vendors.ts'), import('./compare.ts')]);
      const compared = await compareWith(await readBill(api, vendor, how, days), api.books.ledger, ours, days);
      const isWithin = show(compared, { vendor, days, bound, isAll: options['all'] === true }, io);
      return isWithin ? 0 : CHECK_FAILED;
    },
  };
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;
const MOST_DAYS = 100;

function readDays(from: string, to: string): Days {
  const [first, end] = (
    [
      ['from', from],
      ['to', to],
    ] as const
  ).map(([name, text]) => {
    const at = DAY.test(text) ? Date.parse(text) : Number.NaN;
    if (!Number.isNaN(at) && new Date(at).toISOString().startsWith(text)) return at;
    throw wrong(name, 'must be a day in UTC, such as 2026-11-01.');
  });
  const days = { from: first ?? 0, to: end ?? 0 };
  if (days.from >= days.to)
    throw wrong('from', 'must be before "to", which is exclusive: --from 2026-11-01 --to 2026-11-02 is one day.');
  if (days.to - days.from > MOST_DAYS * DAY_MS) throw wrong('to', `is more than ${MOST_DAYS} days after "from".`);
  return days;
}

/** Tolerated difference for a vendor's charge. */
type Bound = (vendorUsd: number) => number;

function readTolerance(text: string): Bound {
  const [, number = '', percent] = /^(\d{1,7}(?:\.\d{1,9})?)(%)?$/.exec(text) ?? [];
  if (number === '') throw wrong('tolerance', 'must be US dollars or a share, such as 0.50 or 0.5%.');
  return percent === undefined ? () => Number(number) : (usd) => (Math.abs(usd) * Number(number)) / 100;
}

function wrong(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', `"${param}" ${reason}`, { param });
}

interface Shown {
  readonly vendor: VendorName;
  readonly days: Days;
  readonly bound: Bound;
  readonly isAll: boolean;
}

/** Exit code of a command whose check failed. */
const CHECK_FAILED = 4;
/** Half of the smallest unit. */
const LEAST_USD = 0.5e-9;

/** Prints the comparison; returns true if it is within the tolerance. */
function show({ rows, notes }: Comparison, { vendor, days, bound, isAll }: Shown, io: CommandIo): boolean {
  const total = (side: 'here' | 'vendor'): number => rows.reduce((sum, row) => sum + row[side].usd, 0);
  const [here, charged] = [total('here'), total('vendor')];
  // Differences of days must not cancel out: the absolute values are summed.
  const differing = rows.reduce((sum, row) => sum + Math.abs(row.vendor.usd - row.here.usd), 0);
  const allowed = bound(charged);
  const isWithin = differing <= allowed + LEAST_USD;
  const shown = isAll ? rows : rows.filter(({ explanations }) => explanations.length > 0);
  const value = {
    object: 'list',
    provider: vendor,
    currency: 'USD',
    from: new Date(days.from).toISOString(),
    to: new Date(days.to).toISOString(),
    data: shown.map(tellRow),
    totals: {
      ledger_usd: usd(here),
      vendor_usd: usd(charged),
      difference_usd: usd(charged - here),
      sum_of_differences_usd: usd(differing),
      unexplained_usd: usd(unexplained(rows)),
    },
    tolerance_usd: usd(allowed),
    is_within_tolerance: isWithin,
    notes,
  };
  io.result(value, [table(shown, [here, charged], io), verdict(isWithin, differing, allowed)].join('\n'));
  for (const note of notes) io.note(note);
  return isWithin;
}

const unexplained = (rows: readonly Row[]): number =>
  rows
    .flatMap(({ explanations }) => explanations)
    .filter(({ cause }) => cause === 'unexplained')
    .reduce((sum, each) => sum + Math.abs(each.usd), 0);

function verdict(isWithin: boolean, differing: number, allowed: number): string {
  return `${isWithin ? 'Within' : 'Not within'} the tolerance: total difference of days and models ${usd(differing)} USD, allowed ${usd(allowed)} USD.`;
}

function tellRow({ day, model, here, vendor, owners, explanations }: Row) {
  const side = ({ calls, units, usd: amount }: Row['here']) => ({ calls: calls ?? null, units, usd: usd(amount) });
  return {
    day,
    model,
    ledger: side(here),
    vendor: side(vendor),
    difference_usd: usd(vendor.usd - here.usd),
    owners: owners.map(({ name, calls, units }) => ({ name, calls: calls ?? null, units })),
    explanations: explanations.map(({ usd: amount, ...each }) => ({ ...each, usd: usd(amount) })),
  };
}

/** US dollars with two to nine decimals, as everywhere. */
function usd(amount: number): string {
  const text = (Math.abs(amount) < LEAST_USD ? 0 : amount).toFixed(9);
  return text.replace(/(\.\d\d\d*?)0+$/, '$1');
}

const HEAD = Object.freeze([
  ...['DAY UTC', 'MODEL', 'CALLS GATEWAY', 'CALLS VENDOR', 'USD GATEWAY', 'USD VENDOR', 'DIFFERENCE USD', 'WHY'],
]);

function table(rows: readonly Row[], [here, charged]: readonly [number, number], io: CommandIo): string {
  const why = ({ text, usd: amount }: Explanation): string => `${usd(amount)}: ${printable(text, 400)}`;
  const lines = rows.flatMap(({ day, model, here: ours, vendor, explanations }) => {
    const cells = [day, printable(model || '(all models)'), String(ours.calls ?? '-'), String(vendor.calls ?? '-')];
    const amounts = [usd(ours.usd), usd(vendor.usd), usd(vendor.usd - ours.usd)];
    const [first, ...more] = explanations.map(why);
    return [[...cells, ...amounts, first ?? ''], ...more.map((each) => [...Array<string>(7).fill(''), each])];
  });
  const total = ['TOTAL', '', '', '', usd(here), usd(charged), usd(charged - here), ''];
  return io.table(HEAD, [...lines, total]);
}
