import { expect } from 'chai';
import { renderTop, type TopReport } from '../../cli/top.ts';

const TARGET: TopReport['targets'][number] = {
  ...{ target: 'openai/gpt-6', provider: 'openai', model: 'gpt-6', state: 'closed', error_ratio: 0, attempts: 9 },
  whole_ms: 812.4,
};

const REPORT: TopReport = {
  at: '2026-11-23T15:20:01.000Z',
  gateways: [{ pid: 4711, processes: 2, store: 'ok' }],
  in_flight: 4,
  calls: { per_second: 12.3, count: 640, failed: 2, p50_ms: 812, p95_ms: 3200 },
  today: { spent_usd: '12.34', calls: 5120 },
  budgets: [
    {
      ...{ budget: 'search-day', of: 'tag', whose: 'team=search', used: 0.76, amount_usd: '2.00', spent_usd: '1.52' },
      resets_at: '2026-11-24T00:00:00.000Z',
    },
  ],
  targets: [
    TARGET,
    {
      ...{ ...TARGET, target: 'groq/llama', provider: 'groq', model: 'llama', state: 'open', cause: 'credential' },
      ...{ error_ratio: 0.5, open_until: '2026-11-23T15:20:28.000Z' },
      last_error: { at: '2026-11-23T15:19:58.000Z', message: 'Invalid API Key', status: 401 },
    },
  ],
  failures: [
    {
      ...{ at: '2026-11-23T15:19:58.000Z', user: 'ann', target: 'groq/llama', outcome: 'error' },
      ...{ code: 'provider_unavailable', message: 'No provider could respond.', request_id: 'req_1' },
    },
  ],
};

describe('the output of top', () => {
  it('is a frame of the current state, failures first, within 80 columns', () => {
    expect(renderTop(REPORT, { columns: 80, rows: 24 })).to.deep.equal([
      '2026-11-23 15:20:01 UTC   process 4711 (2 serving, store ok)',
      'in flight 4',
      'calls     12.3/s   p50 812 ms   p95 3.2 s   2 of 640 failed in the last minute',
      'today     12.34 USD   5120 calls   (UTC)',
      '',
      'BUDGET      OF               USED %  SPENT  OF USD  RESETS UTC',
      'search-day  tag team=search  76      1.52   2.00    2026-11-24 00:00',
      '',
      'TARGET        STATE      WHY         ERR %  MS   LAST ERROR',
      'groq/llama    open 27 s  credential  50     812  401 Invalid API Key',
      'openai/gpt-6  closed                 0      812',
      '',
      'FAILED    TARGET      USER  CODE                  MESSAGE',
      '15:19:58  groq/llama  ann   provider_unavailable  No provider could respond.',
    ]);
  });

  it('contains no character that moves a cursor, for any names of models, users and vendors', () => {
    const evil = 'x\u001b[2J\u0007\u202e\ny';
    const [failure] = REPORT.failures;
    const [budget] = REPORT.budgets;
    const hostile = {
      ...REPORT,
      problem: evil,
      budgets: [{ ...budget, budget: evil, whose: evil }],
      targets: [
        { ...TARGET, target: evil, state: 'open', last_error: { at: REPORT.at, message: evil, errno: 'ECONNRESET' } },
      ],
      failures: [{ ...failure, target: evil, user: evil, message: evil }],
    } as TopReport;
    const lines = renderTop(hostile, { columns: 80, rows: 40 });
    expect(lines.join('')).to.not.match(/[\p{Cc}\p{Cf}]/u);
    expect(lines.filter((line) => line.includes('x?[2J'))).to.have.lengthOf(4);
  });

  it('fits into a small terminal: lines are truncated, and each part keeps some of its rows', () => {
    const targets = Array.from({ length: 50 }, (_, at) => ({ ...TARGET, target: `openai/${'m'.repeat(60)}-${at}` }));
    const lines = renderTop({ ...REPORT, targets }, { columns: 60, rows: 20 });
    expect(lines).to.have.length.of.at.most(20);
    for (const line of lines) expect(line).to.have.length.of.at.most(60);
    for (const head of ['BUDGET', 'TARGET', 'FAILED'])
      expect(lines.some((line) => line.startsWith(head))).to.equal(true);
  });

  it('reports missing data, and that no gateway runs', () => {
    const lines = renderTop({
      ...REPORT,
      gateways: [],
      calls: null,
      today: null,
      budgets: [],
      targets: [],
      failures: [],
    });
    expect(lines).to.deep.equal([
      '2026-11-23 15:20:01 UTC   no running gateway',
      'in flight 4',
      'calls     unknown: the store is in the gateway’s own process',
      '',
      'No targets used yet.',
    ]);
  });
});
