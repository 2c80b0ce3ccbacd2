import { expect } from 'chai';
import type { CallFacts, CommandInput, Store } from '../../../../contract/index.ts';
import { callsCommand, usageCommand } from '../../../../plugins/policies/usage/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { fakeIo } from '../../../support/plugins/fake-io.ts';
import { eventually } from '../../../support/wait.ts';

const FACTS: CallFacts = {
  ...{ requestId: 'req_1', userId: 'ann', key: 'k', tags: [], operation: 'chat', provider: 'p', model: 'm' },
  ...{
    stream: false,
    outcome: 'ok',
    attempts: [{ target: 'p/m', status: 200, ms: 9 }],
    startedAt: 0,
    durationMs: 12,
    estimated: false,
    priced: true,
  },
  units: { prompt_tokens: 7, completion_tokens: 3 },
};

describe('the commands about usage', () => {
  let store: Store;
  let calls = 0;
  beforeEach(async () => {
    store = await openMemory();
    calls = 0;
  });
  afterEach(() => store.close());

  const settle = async (facts: Partial<CallFacts>, micro: number): Promise<string> => {
    const requestId = `call_${String(calls++).padStart(22, '0')}`;
    const now = Date.now();
    const whole = { ...FACTS, ...facts };
    const of = { account: whole.userId, requestId, amount: micro * 1000, facts: whole, now };
    await store.ledger.reserve({ ...of, floor: Number.NEGATIVE_INFINITY, expiresAt: now + 60_000 });
    await store.ledger.settle(of);
    return requestId;
  };
  /** Output of a command in a terminal. */
  const run = async (
    name: 'usage' | 'calls',
    options: CommandInput['options'],
    { signal = new AbortController().signal, json = false, onLine = () => {} }: Running = {},
  ): Promise<string> => {
    let out = '';
    const io = fakeIo({
      json,
      write(bytes) {
        out += String(bytes);
        onLine(out);
      },
      result(_value, text) {
        out += text;
      },
    });
    const command = name === 'usage' ? usageCommand(store.ledger) : callsCommand(store.ledger, async () => undefined);
    await command.run?.({ args: [], options, io, signal, actor: { via: 'cli' } });
    return out;
  };

  it('print a report as a table with units in its head and a total below', async () => {
    await settle({}, 1_500_000);
    await settle({ userId: 'bob\u001b[2J', units: { prompt_tokens: 1 } }, 20);
    const lines = (await run('usage', { by: 'user', last: '1h' })).split('\n');
    expect(lines.map((line) => line.split(/ {2,}/))).to.deep.equal([
      ['USER', 'REQUESTS', 'TOKENS IN', 'TOKENS OUT', 'COST USD'],
      ['ann', '1', '7', '3', '1.50'],
      ['bob?[2J', '1', '1', '0', '0.00002'],
      ['TOTAL', '2', '8', '3', '1.50002'],
    ]);
  });

  it('report the amount in several rows, by tag', async () => {
    await settle({ tags: ['team=search', 'project=x'] }, 30);
    const text = await run('usage', { by: 'tag', last: '1h' });
    expect(text).to.match(/TOTAL +1 .* 0\.00003\n1 requests \(0\.00003 USD\) have several tags/);
  });

  it('print all rows as CSV that no spreadsheet runs', async () => {
    await settle({ userId: '=HYPERLINK("http://evil")', model: '@m' }, 5);
    const csv = await run('usage', { by: 'user,model', last: '1h', csv: true });
    expect(csv)
      .to.match(/^user,model,requests,errors,/)
      .and.to.include(`"'=HYPERLINK(""http://evil"")",'@m,1,0,7`);
  });

  it('list calls with units in the heading, and mark estimates and missing prices', async () => {
    await settle({ estimated: true, priced: false, outcome: 'error', errorCode: 'provider_timeout' }, 0);
    const [head, line] = (await run('calls', {})).split('\n');
    expect(head).to.match(/^TIME UTC +ID +USER +KEY +PROVIDER\/MODEL +OUTCOME +ATTEMPTS +LATENCY MS +TOKENS IN/);
    expect(line).to.include('error provider_timeout').and.to.include('unknown unpriced estimated');
  });

  it('follow calls until Ctrl-C: the newest first, then each one once, a line of JSON each with --json', async () => {
    const first = await settle({}, 1);
    const interrupt = new AbortController();
    let out = '';
    const running = run(
      'calls',
      { follow: true },
      {
        signal: interrupt.signal,
        json: true,
        onLine(text) {
          out = text;
        },
      },
    );
    const ids = () =>
      out
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { id: string }).id);
    await eventually(async () => expect(ids()).to.deep.equal([first]));
    const more = [await settle({}, 1), await settle({}, 1)];
    await eventually(async () => expect(ids()).to.deep.equal([first, ...more]));
    interrupt.abort();
    await running;
  });

  const WRONG: readonly (readonly ['usage' | 'calls', CommandInput['options']])[] = [
    ['usage', { by: 'nothing' }],
    ['usage', { csv: true, limit: '5' }],
    ['usage', { from: 'never' }],
    ['calls', { since: '1h', last: '2h' }],
    ['calls', { since: 'never' }],
    ['calls', { follow: true, since: '1h' }],
    ['calls', { outcome: 'fine' }],
    ['calls', { limit: '0' }],
  ];
  it('refuse a number without a unit, and show both readings', async () => {
    const error = await run('calls', { since: '60' }).then(() => 'done', String);
    expect(error).to.include('"since" is invalid: "60" is not a duration').and.include('"60s" for seconds or "60ms"');
  });

  for (const [name, options] of WRONG)
    it(`refuse ${name} ${JSON.stringify(options)}`, async () =>
      expect(await codeOf(run(name, options))).to.equal('invalid_request'));

  for (const since of ['60', '2026-13-01'])
    it(`name the option of a wrong --since ${since}`, async () => {
      const problem = await run('calls', { since }).catch((error: Error) => error.message);
      expect(problem).to.match(/^"since" /);
    });
});

interface Running {
  readonly signal?: AbortSignal;
  readonly json?: boolean;
  readonly onLine?: (text: string) => void;
}
