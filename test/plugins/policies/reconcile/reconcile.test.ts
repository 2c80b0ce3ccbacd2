import { expect } from 'chai';
import type { CallFacts, CommandInput, CostPart, Store } from '../../../../contract/index.ts';
import { createHttpClient } from '../../../../egress/http-client.ts';
import reconcile from '../../../../plugins/policies/reconcile/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { readBlocks } from '../../../support/pages/read-blocks.ts';
import { registerPlugins } from '../../../support/plugins/fake-api.ts';
import { fakeIo } from '../../../support/plugins/fake-io.ts';
import {
  ADMIN_KEY,
  type BillingVendor,
  type Served,
  startBillingVendor,
} from '../../../support/vendors/billing-vendor.ts';

type Vendor = 'openai' | 'anthropic' | 'openrouter';

const DAY = '2026-11-02';
const NOON = Date.parse(`${DAY}T12:00:00Z`);

/** Call in the gateway's ledger: units with their costs, or without a price. */
interface Ours {
  readonly vendor?: Vendor;
  readonly model?: string;
  readonly at?: number;
  readonly parts?: readonly CostPart[];
  readonly facts?: Partial<CallFacts>;
  /** Nano-dollars. Default: the sum of the parts. */
  readonly cost?: number;
}

const part = (unit: string, quantity: number, usd: number | null): CostPart => ({ unit, quantity, usd });
/** A thousand tokens in at 5 dollars per million, a hundred out at 30. */
const PARTS = [part('input_tokens', 1000, 0.005), part('output_tokens', 100, 0.003)];
const UNITS = { input_tokens: 1000, output_tokens: 100 };
const USD = { input_tokens: 0.005, output_tokens: 0.003 };
const served = (more: Partial<Served> = {}): Served => ({
  ...{ day: DAY, model: 'gpt-5.5-2026-04-23', project: 'proj_a', key: 'key_a', calls: 1, units: UNITS, usd: USD },
  ...more,
});

interface Reported {
  readonly json: {
    readonly data: readonly {
      readonly day: string;
      readonly model: string;
      readonly difference_usd: string;
      readonly explanations: readonly Readonly<Record<string, unknown>>[];
    }[];
    readonly totals: Readonly<Record<string, string>>;
    readonly is_within_tolerance: boolean;
    readonly notes: readonly string[];
  };
  readonly text: string;
  readonly failed: boolean;
}

describe('tollgate reconcile', () => {
  let vendor: BillingVendor;
  let store: Store;
  let calls = 0;
  before(async () => {
    vendor = await startBillingVendor();
  });
  after(() => vendor.close());
  beforeEach(async () => {
    store = await openMemory();
    vendor.respond(undefined);
    vendor.serve();
  });
  afterEach(() => store.close());

  const settle = async ({
    vendor: provider = 'openai',
    model = 'gpt-5.5',
    at = NOON,
    parts = PARTS,
    ...rest
  }: Ours = {}) => {
    const units = {
      prompt_tokens: parts.reduce((sum, { unit, quantity }) => sum + (/input|cache/.test(unit) ? quantity : 0), 0),
      completion_tokens: parts.reduce((sum, { unit, quantity }) => sum + (unit === 'output_tokens' ? quantity : 0), 0),
    };
    const facts: CallFacts = {
      ...{ requestId: 'req_1', userId: 'ann', key: 'k', tags: [], operation: 'chat', provider, model, stream: false },
      ...{ outcome: 'ok', attempts: [], startedAt: at, durationMs: 12, units, costParts: parts },
      ...{ estimated: false, priced: parts.every(({ usd }) => usd !== null), ...rest.facts },
    };
    const amount =
      rest.cost ?? Math.ceil(parts.reduce((sum, { usd }) => sum + Math.round((usd ?? 0) * 1e12), 0) / 1000);
    const call = { account: 'ann', requestId: `call_${String(calls++).padStart(22, '0')}`, amount, facts, now: at };
    await store.ledger.reserve({ ...call, floor: Number.NEGATIVE_INFINITY, expiresAt: at + 60_000 });
    await store.ledger.settle({ ...call, now: at + 1000 });
  };

  const run = async (of: Vendor, options: CommandInput['options'] = {}, config: object = {}): Promise<Reported> => {
    const http = await createHttpClient(new Set([new URL(vendor.url).host]), '0.0.0');
    const plugin = {
      ...reconcile,
      setup: (api: never, own: never) => reconcile.setup({ ...(api as object), http: async () => http } as never, own),
    };
    const access = { baseUrl: vendor.url, adminKey: ADMIN_KEY, ...config };
    const offers = { openai: { anyModel: true }, anthropic: { anyModel: true }, openrouter: { anyModel: true } };
    const { commands } = await registerPlugins(store, [{ plugin, config: { [of]: access } }], { offers });
    let reported: Reported | undefined;
    const notes: string[] = [];
    const io = fakeIo({
      result: (value, text) => {
        reported = { json: value as Reported['json'], text, failed: false };
      },
      note: (text) => void notes.push(text),
    });
    const range = { provider: of, from: DAY, to: '2026-11-03' };
    const input = { args: [], options: { ...range, ...options }, io, signal: new AbortController().signal };
    const code = await commands[0]?.run?.({ ...input, actor: { via: 'cli' } });
    if (!reported) throw new Error('the command reported nothing');
    return { ...reported, failed: code === 4 };
  };

  const explained = async (of: Vendor, options: CommandInput['options'] = {}, config: object = {}) => {
    const { json, failed } = await run(of, options, config);
    return {
      causes: json.data.map(({ model, explanations }) => [
        model,
        ...explanations.map(({ cause, unit, usd }) => [cause, ...(unit === undefined ? [] : [unit]), usd].join(' ')),
      ]),
      unexplained: json.totals['unexplained_usd'],
      failed,
    };
  };

  it('finds no difference between equal sides, over days, pages, keys and names with a date', async () => {
    const days = ['2026-11-02', '2026-11-03', '2026-11-04', '2026-11-05', '2026-11-06'];
    for (const day of days) {
      await settle({ at: Date.parse(`${day}T00:00:00Z`) });
      await settle({ at: Date.parse(`${day}T23:59:59Z`) });
    }
    vendor.serve(...days.flatMap((day) => [served({ day }), served({ day, key: 'key_b' })]));
    const { json, text, failed } = await run('openai', { to: '2026-11-07', all: true, tolerance: '0' });
    expect(json.data.map(({ day, model, difference_usd: difference }) => [day, model, difference])).to.deep.equal(
      days.map((day) => [day, 'gpt-5.5', '0.00']),
    );
    expect([json.totals['ledger_usd'], json.totals['vendor_usd'], failed]).to.deep.equal(['0.08', '0.08', false]);
    expect(text).to.include('Within the tolerance');
  });

  /** Planted difference, and its explanation. */
  const PLANTED: readonly {
    readonly title: string;
    readonly ours?: readonly Ours[];
    readonly served: readonly Served[];
    readonly causes: readonly string[];
  }[] = [
    {
      title: 'input',
      served: [served({ units: { ...UNITS, input_tokens: 1200 }, usd: { ...USD, input_tokens: 0.006 } })],
      causes: ['quantity input_tokens 0.001'],
    },
    {
      title: 'output',
      served: [served({ units: { ...UNITS, output_tokens: 50 }, usd: { ...USD, output_tokens: 0.0015 } })],
      causes: ['quantity output_tokens -0.0015'],
    },
    {
      title: 'cached input',
      served: [
        served({
          units: { input_tokens: 400, cached_tokens: 600, output_tokens: 100 },
          usd: { input_tokens: 0.002, cached_tokens: 0.0003, output_tokens: 0.003 },
        }),
      ],
      causes: ['quantity input_tokens -0.003', 'quantity cached_tokens 0.0003'],
    },
    {
      title: 'cache writes',
      served: [
        served({
          units: { ...UNITS, cache_write_tokens: 800 },
          usd: { ...USD, cache_write_tokens: 0.005 },
        }),
      ],
      causes: ['quantity cache_write_tokens 0.005'],
    },
    {
      title: 'sound',
      served: [served({ units: { ...UNITS, audio_input_tokens: 100 }, usd: { ...USD, audio_input_tokens: 0.0032 } })],
      causes: ['quantity audio_input_tokens 0.0032'],
    },
    {
      title: 'searches',
      served: [served({ units: { ...UNITS, web_search_requests: 2 }, usd: { ...USD, web_search_requests: 0.02 } })],
      causes: ['quantity web_search_requests 0.02'],
    },
    {
      title: 'searches that have no price in the gateway',
      ours: [{ parts: [...PARTS, part('web_search_requests', 2, null)] }],
      served: [served({ units: { ...UNITS, web_search_requests: 2 }, usd: { ...USD, web_search_requests: 0.02 } })],
      causes: ['unknown_cost 0.00', 'no_price web_search_requests 0.02'],
    },
    {
      title: 'a cost that is not known here, charged at what was held',
      ours: [{ parts: [...PARTS, part('web_search_requests', 2, null)], cost: 100_000_000 }],
      served: [served({ units: { ...UNITS, web_search_requests: 2 }, usd: { ...USD, web_search_requests: 0.02 } })],
      causes: ['unknown_cost -0.092', 'no_price web_search_requests 0.02'],
    },
    {
      title: 'a tier',
      served: [served({ tier: 'priority', usd: { input_tokens: 0.0125, output_tokens: 0.0075 } })],
      causes: ['tier 0.012'],
    },
    {
      title: 'no tier under its other name',
      ours: [
        {
          parts: [part('input_tokens', 1000, 0.0125), part('output_tokens', 100, 0.0075)],
          facts: { serviceTier: 'fast' },
        },
      ],
      served: [served({ tier: 'priority', usd: { input_tokens: 0.0125, output_tokens: 0.0075 } })],
      causes: [],
    },
    {
      title: 'a price of a unit',
      served: [served({ usd: { ...USD, output_tokens: 0.0036 } })],
      causes: ['price output_tokens 0.0006'],
    },
    {
      title: 'calls that the ledger lacks',
      served: [served(), served({ key: 'key_other', calls: 2 })],
      causes: ['ledger_lacks_calls 0.008'],
    },
    {
      title: 'a model that the ledger lacks',
      ours: [],
      served: [served()],
      causes: ['ledger_lacks_calls 0.008'],
    },
    { title: 'calls that the vendor lacks', served: [], causes: ['vendor_lacks_calls -0.008'] },
    {
      title: 'a cost of nothing that was counted',
      served: [served({ usd: { ...USD, storage: 0.01 } })],
      causes: ['quantity storage 0.01'],
    },
  ];
  for (const { title, ours = [{}], served: all, causes } of PLANTED)
    it(`explains ${title}`, async () => {
      for (const call of ours) await settle(call);
      vendor.serve(...all);
      const found = await explained('openai', { tolerance: '0' });
      expect(found.causes.flatMap(([, ...rest]) => rest)).to.deep.equal(causes);
      expect(found).to.include({ unexplained: '0.00', failed: causes.length > 0 });
    });

  it('explains cache writes of 12 hours, which have no price in the gateway, apart from those of 30 minutes', async () => {
    const written = { cache_write_tokens: 200 };
    await settle({ parts: [...PARTS, part('cache_write_tokens', 200, 0.001_25)] });
    vendor.serve(
      served({
        units: { ...UNITS, ...written, cache_write_12h_tokens: 500 },
        usd: { ...USD, cache_write_tokens: 0.001_25, cache_write_12h_tokens: 0.005 },
      }),
    );
    expect(await explained('openai', { tolerance: '0' })).to.deep.equal({
      causes: [['gpt-5.5', 'quantity cache_write_12h_tokens 0.005']],
      unexplained: '0.00',
      failed: true,
    });
  });

  it('explains a price and a quantity of the same day by themselves, to the nano-dollar', async () => {
    await settle();
    await settle();
    vendor.serve(
      served({
        calls: 2,
        units: { input_tokens: 2001, output_tokens: 200 },
        usd: { input_tokens: 0.010_005, output_tokens: 0.0072 },
      }),
    );
    expect(await explained('openai', { tolerance: '0' })).to.deep.equal({
      causes: [['gpt-5.5', 'quantity input_tokens 0.000005', 'price output_tokens 0.0012']],
      unexplained: '0.00',
      failed: true,
    });
  });

  it('names the vendor’s key and project of calls that the ledger lacks', async () => {
    await settle();
    vendor.serve(served(), served({ project: 'proj_b', key: 'key_b', units: { ...UNITS, input_tokens: 10 } }));
    const { text } = await run('openai');
    expect(text).to.match(
      /the ledger lacks 1 call \(10 input_tokens, 100 output_tokens\), as many as proj_b key_b has/,
    );
    expect(await explained('openai', {}, { keys: ['key_a'], projects: ['proj_a'] })).to.include({ failed: false });
  });

  it('separates unknown costs: searches of several models are charged by their numbers', async () => {
    const search = [...PARTS, part('web_search_requests', 1, 0.01)];
    await settle({ parts: search });
    await settle({ model: 'gpt-6.1-sol', parts: search });
    const one = { units: { ...UNITS, web_search_requests: 1 }, usd: { ...USD, web_search_requests: 0.01 } };
    vendor.serve(
      served(one),
      served({
        ...one,
        model: 'gpt-6.1-sol',
        units: { ...UNITS, web_search_requests: 3 },
        usd: { ...USD, web_search_requests: 0.03 },
      }),
    );
    expect((await explained('openai', { tolerance: '0' })).causes).to.deep.equal([
      ['gpt-6.1-sol', 'quantity web_search_requests 0.02'],
    ]);
  });

  describe('with Anthropic', () => {
    const claude = (more: Partial<Served> = {}): Served =>
      served({ model: 'claude-opus-5', project: 'wrkspc_a', ...more });
    const ours = { vendor: 'anthropic', model: 'claude-opus-5' } as const;

    it('finds no difference between equal sides, caches of both lifetimes and searches included', async () => {
      const more = { cached_tokens: 50, cache_write_tokens: 30, cache_write_1h_tokens: 20, web_search_requests: 1 };
      const usd = {
        cached_tokens: 0.000_025,
        cache_write_tokens: 0.000_1875,
        cache_write_1h_tokens: 0.0002,
        web_search_requests: 0.01,
      };
      const parts = Object.entries(more).map(([unit, quantity]) => part(unit, quantity, usd[unit as keyof typeof usd]));
      await settle({ ...ours, parts: [...PARTS, ...parts] });
      vendor.serve(claude({ units: { ...UNITS, ...more }, usd: { ...USD, ...usd } }));
      expect(await explained('anthropic', { tolerance: '0' })).to.deep.equal({
        causes: [],
        unexplained: '0.00',
        failed: false,
      });
    });

    it('explains cache writes of an hour that were priced as those of five minutes', async () => {
      await settle({ ...ours, parts: [...PARTS, part('cache_write_tokens', 1000, 0.006_25)] });
      vendor.serve(
        claude({ units: { ...UNITS, cache_write_1h_tokens: 1000 }, usd: { ...USD, cache_write_1h_tokens: 0.01 } }),
      );
      expect((await explained('anthropic', { tolerance: '0' })).causes).to.deep.equal([
        ['claude-opus-5', 'quantity cache_write_tokens -0.00625', 'quantity cache_write_1h_tokens 0.01'],
      ]);
    });

    it('explains a model that only one of both has, though calls are not counted there', async () => {
      await settle(ours);
      vendor.serve(claude({ model: 'claude-haiku-4-5' }));
      expect((await explained('anthropic')).causes).to.deep.equal([
        ['claude-haiku-4-5', 'ledger_lacks_calls 0.008'],
        ['claude-opus-5', 'vendor_lacks_calls -0.008'],
      ]);
    });

    it('compares only quantities, by key, for which there are no costs', async () => {
      await settle(ours);
      vendor.serve(claude({ units: { ...UNITS, output_tokens: 200 } }), claude({ key: 'key_other' }));
      const { causes } = await explained('anthropic', {}, { keys: ['key_a'] });
      expect(causes).to.deep.equal([['claude-opus-5', 'quantity output_tokens 0.003']]);
      expect(vendor.requests.at(-1)).to.not.include('cost_report');
    });
  });

  describe('with OpenRouter', () => {
    const ours = { vendor: 'openrouter', model: 'openai/gpt-5.5', parts: [part('vendor_charge', 1, 0.008)] } as const;
    const facts = { units: { prompt_tokens: 1000, completion_tokens: 100 } };
    const routed = (more: Partial<Served> = {}): Served =>
      served({
        model: 'openai/gpt-5.5',
        units: { prompt_tokens: 1000, completion_tokens: 100 },
        usd: { all: 0.008 },
        ...more,
      });

    it('finds no difference between equal sides, a day at a time', async () => {
      await settle({ ...ours, facts });
      vendor.serve(routed());
      expect(await explained('openrouter', { tolerance: '0' })).to.deep.include({ causes: [], failed: false });
      expect(vendor.requests.at(-1)).to.include('date=2026-11-02');
    });

    for (const [title, all, cause] of [
      ['calls that the ledger lacks', [routed(), routed({ project: 'b' })], 'ledger_lacks_calls 0.008'],
      ['calls that the vendor lacks', [], 'vendor_lacks_calls -0.008'],
      ['another sum for as many tokens', [routed({ usd: { all: 0.009 } })], 'price 0.001'],
      [
        'other tokens',
        [routed({ units: { prompt_tokens: 2000, completion_tokens: 100 }, usd: { all: 0.013 } })],
        'quantity prompt_tokens 0.005',
      ],
    ] as const)
      it(`explains ${title}`, async () => {
        await settle({ ...ours, facts });
        vendor.serve(...all);
        expect(await explained('openrouter', { tolerance: '0' })).to.deep.include({
          causes: [['openai/gpt-5.5', cause]],
          unexplained: '0.00',
        });
      });
  });

  it('reports calls without a record, and omits calls that the vendor did not serve', async () => {
    await settle();
    await settle({ facts: { saved: 8_000_000 }, cost: 0 });
    await settle({ facts: { outcome: 'refused', units: {} }, parts: [], cost: 0 });
    const own = { units: { prompt_tokens: 1000, completion_tokens: 100 } };
    await settle({ facts: own, parts: [part('own_subscription', 1, 0)] });
    vendor.serve(served());
    expect(await explained('openai', { tolerance: '0' })).to.deep.include({ causes: [], failed: false });
    await store.ledger.forgetCalls(NOON + 86_400_000);
    const { json } = await run('openai');
    expect(json.notes.join('\n')).to.include('4 calls of these days have no records');
  });

  it('ends with exit code 4 beyond the tolerance, in dollars or as a share, and not by days that make up for one another', async () => {
    await settle();
    await settle({ at: NOON + 86_400_000 });
    const more = { ...USD, output_tokens: 0.004 };
    const less = { ...USD, output_tokens: 0.002 };
    vendor.serve(served({ usd: more }), served({ day: '2026-11-03', usd: less }));
    const range = { to: '2026-11-04' };
    for (const [tolerance, failed] of [
      ['0.001999', true],
      ['0.002', false],
      ['12%', true],
      ['12.5%', false],
    ] as const)
      expect(await explained('openai', { ...range, tolerance }), tolerance).to.include({ failed });
  });

  it('prints the example of docs/money.md', async () => {
    const sol = 'gpt-6.1-sol';
    const cheap = [part('input_tokens', 20_000, 0.04), part('output_tokens', 1000, 0.01)];
    for (const day of [2, 3]) await settle({ at: Date.parse(`2026-11-0${day}T10:00:00Z`) });
    await settle({ model: sol, at: Date.parse('2026-11-03T11:00:00Z'), parts: cheap });
    const units = { input_tokens: 20_000, output_tokens: 1000, web_search_requests: 2 };
    const usd = { input_tokens: 0.04, output_tokens: 0.01, web_search_requests: 0.02 };
    vendor.serve(
      served(),
      served({ day: '2026-11-03', tier: 'priority', usd: { input_tokens: 0.0125, output_tokens: 0.0075 } }),
      served({ day: '2026-11-03', model: sol, units, usd }),
      served({ day: '2026-11-03', model: 'gpt-5.4-2026-03-05', key: 'key_b', calls: 3 }),
    );
    const { text } = await run('openai', { to: '2026-11-04' });
    const example = readBlocks().find((block) => block.text.startsWith('$ tollgate usage reconcile'));
    expect(example?.text.trimEnd().split('\n').slice(1)).to.deep.equal(text.split('\n'));
  });

  it('refuses unsupported requests with an explanation, and never shows the key', async () => {
    const refused = async (options: CommandInput['options'], config: object = {}): Promise<string> =>
      run('openai', options, config).then(
        () => 'it ran',
        (error: Error) => error.message,
      );
    expect(await refused({ provider: 'acme' })).to.include('must be one of openai, anthropic, openrouter');
    expect(await refused({ from: '2026-11-31' })).to.include('"from" must be a day in UTC');
    expect(await refused({ to: DAY })).to.include('must be before "to"');
    expect(await refused({ to: '2027-11-03' })).to.include('more than 100 days');
    expect(await refused({ tolerance: 'much' })).to.include('"tolerance" must be US dollars or a share');
    expect(await refused({}, { providers: ['missing'] })).to.include('provider "missing" not found');
    const wrongKey = await refused({}, { adminKey: 'sk-wrong-0123456789' });
    expect(wrongKey)
      .to.include('openai returned status 401')
      .and.include('Only admin keys')
      .and.not.include('sk-wrong');
    const noKey = await run('openai', {}, { adminKey: undefined }).catch((error: Error) => error.message);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what to write.
    expect(noKey).to.include('policies.reconcile.openai.adminKey').and.include('${OPENAI_ADMIN_KEY}');
  });

  for (const [title, status, body] of [
    ['HTML', 200, '<html>Sign in</html>'],
    ['an invalid list', 200, '{"data":{"a":1}}'],
    [
      'a count below nothing',
      200,
      '{"data":[{"start_time":1793577600,"results":[{"input_tokens":-5,"num_model_requests":1}]}]}',
    ],
    [
      'a count that is a text',
      200,
      '{"data":[{"start_time":1793577600,"results":[{"input_tokens":"5","num_model_requests":1}]}]}',
    ],
    ['pages without an end', 200, '{"data":[],"has_more":true,"next_page":"again"}'],
    ['an error of the server', 503, '{"error":{"message":"overloaded"}}'],
  ] as const)
    it(`refuses ${title} of the vendor, and compares nothing`, async () => {
      vendor.respond({ status, body });
      expect(await codeOf(run('openai'))).to.be.oneOf(['provider_invalid_response', 'provider_unavailable']);
    });
});
