import { expect } from 'chai';
import { startGateway } from '../support/gateways/gateway.ts';

interface Row {
  readonly id: string;
  readonly is_callable: boolean;
  readonly problem: string | null;
}

/**
 * Reads the data of the console's Home and Models pages by model, as an operator. Also calls each model named, and
 * returns the status of each call.
 */
async function look(config: object, calls: readonly string[] = []) {
  const gateway = await startGateway({ billing: 'track', ...config });
  try {
    const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
    const headers = { authorization: `Bearer ${key}` };
    const response = await gateway.get('/api/core/admin/catalog?limit=1000', headers);
    expect(response.status).to.equal(200);
    const { data } = (await response.json()) as { readonly data: readonly Row[] };
    const statuses: number[] = [];
    for (const model of calls) {
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
      });
      await reply.text();
      statuses.push(reply.status);
    }
    return { rows: new Map(data.map((row) => [row.id, row])), statuses };
  } finally {
    await gateway.stop();
  }
}

const local = (more: object) => ({
  providers: {
    echo: {},
    local: { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'sk-local', ...more },
  },
});
const BUDGET = { name: 'house', amount_usd: 5, every: 'day' };

describe('G41: the operators’ catalog shows the problems of a model', () => {
  it('a model without a price under enforced billing, and its alias', async () => {
    const { rows, statuses } = await look(
      { ...local({ models: ['mine'] }), billing: 'enforce', models: { best: 'local/mine' } },
      ['local/mine'],
    );
    const problem =
      '"local/mine" has no known price, and billing is "enforce", so its calls return 403. Set providers.local.prices, such as { "mine": { input: 1, output: 2 } } in US dollars per million tokens; 0 is free.';
    expect(rows.get('local/mine')).to.include({ is_callable: false, problem });
    expect(rows.get('best')).to.include({ is_callable: false, problem });
    expect(rows.get('echo/echo')).to.include({ is_callable: true, problem: null });
    expect(statuses).to.deep.equal([403]);
  });

  it('a model without a price under a budget of all calls', async () => {
    const { rows, statuses } = await look({ ...local({ models: ['mine'] }), budgets: [BUDGET] }, ['local/mine']);
    expect(rows.get('local/mine')?.problem).to.include('a budget limits its calls, so its calls return 403');
    expect(rows.get('local/mine')?.is_callable).to.equal(false);
    expect(statuses).to.deep.equal([403]);
  });

  it('a model without a price under a budget of some calls stays callable', async () => {
    const { rows } = await look({ ...local({ models: ['mine'] }), budgets: [{ ...BUDGET, user: 'ann' }] });
    expect(rows.get('local/mine')?.problem).to.include('so the limited calls return 403');
    expect(rows.get('local/mine')?.is_callable).to.equal(true);
  });

  it('an alias with an unlisted target, whose calls are 404', async () => {
    const config = {
      ...local({ models: ['mine'] }),
      models: { best: ['local/none', 'echo/echo'], worst: 'local/none' },
    };
    const { rows, statuses } = await look(config, ['best']);
    expect(statuses).to.deep.equal([404]);
    expect(rows.get('best')).to.include({ is_callable: false });
    expect(rows.get('best')?.problem).to.match(/^"local\/none" is not in the list of models of the provider "local"/);
    expect(rows.get('worst')).to.include({ is_callable: false });
  });

  const options: readonly (readonly [title: string, more: object, says: RegExp, isCallable: boolean])[] = [
    [
      'a base URL with the path of a call, whose credentials it does not repeat',
      { baseUrl: 'http://bob:pass@127.0.0.1:9/v1/chat/completions' },
      /^providers\.local\.baseUrl ends with "\/chat\/completions".* Write http:\/\/127\.0\.0\.1:9\/v1\.$/,
      false,
    ],
    [
      'a key in quotes',
      { apiKey: '"sk-secret"' },
      /^providers\.local\.apiKey has quotes around it, .* Remove them/,
      false,
    ],
    ['a key with CR LF within', { apiKey: 'sk-sec\r\nret' }, /^providers\.local\.apiKey has line ends/, false],
    ['a key with a CR at its end', { apiKey: 'sk-secret\r' }, /^providers\.local\.apiKey has line ends/, false],
    [
      'a price by the token',
      { prices: { mine: { input: 0.0000025, output: 10 } } },
      /^providers\.local\.prices\.mine\.input is .* write 2\.5\.$/,
      true,
    ],
  ];
  for (const [title, more, says, isCallable] of options)
    it(title, async () => {
      const { rows } = await look(local({ models: ['mine'], ...more }));
      const row = rows.get('local/mine');
      expect(row?.problem)
        .to.match(says)
        .and.not.match(/sk-sec|bob|pass/);
      expect(row?.is_callable).to.equal(isCallable);
      expect(rows.get('echo/echo')?.problem).to.equal(null);
    });

  it('no problem if all models can be called', async () => {
    const { rows } = await look({
      ...local({ models: ['mine'], prices: { mine: { input: 1, output: 2 } } }),
      billing: 'enforce',
    });
    expect([...rows.values()].filter(({ problem }) => problem !== null)).to.deep.equal([]);
  });
});

describe('G41: one function answers which models a caller can call', () => {
  const MODELS = { models: ['mine', 'priced'], prices: { priced: { input: 1, output: 1 } } };
  const config = {
    ...local(MODELS),
    billing: 'track',
    models: { best: ['local/priced', 'local/mine'], safe: ['local/priced', 'echo/echo'] },
    plans: { small: { models: ['echo/*'] } },
  };
  interface Shown {
    readonly callable_models: {
      readonly callable: readonly string[];
      readonly stopped: readonly { readonly id: string; readonly problem: string }[];
    };
  }

  it('as keys show, accounts show and calls agree: price under a budget, lists of the key, its plan @slow', async () => {
    const gateway = await startGateway(config);
    try {
      const make = async (...options: readonly string[]) => {
        const { api_key: key, api_key_info: info } = await gateway.command<{
          api_key: string;
          api_key_info: { id: string };
        }>('keys', 'create', '--user', 'ann', ...options);
        const { callable_models: shown } = await gateway.command<Shown>('keys', 'show', info.id);
        for (const id of ['best', 'safe', 'echo/echo', 'local/mine', 'local/priced']) {
          const response = await gateway.post(
            '/v1/chat/completions',
            { model: id, messages: [{ role: 'user', content: 'Hi' }] },
            { authorization: `Bearer ${key}` },
          );
          await response.text();
          // The server of `local` does not exist, so that an admitted call ends there.
          expect(response.status !== 403, `${id} ${response.status}`).to.equal(shown.callable.includes(id));
        }
        return new Map(shown.stopped.map(({ id, problem }) => [id, problem]));
      };
      const limited = await make('--budget', '1');
      expect([...limited.keys()]).to.deep.equal(['best', 'local/mine']);
      expect(limited.get('best')).to.match(
        /^"local\/mine" has no known price, and a balance or budget limits its calls/,
      );
      expect([...(await make()).keys()]).to.deep.equal([]);
      const listed = await make('--models', 'local/priced,safe');
      expect(listed.get('best')).to.include('This key may not use "local/mine"');
      const planned = await make('--plan', 'small');
      expect(planned.get('safe')).to.include('The plan "small" does not include "local/priced"');
      const account = await gateway.command<Shown>('accounts', 'show', 'ann');
      expect(account.callable_models.callable).to.include.members(['best', 'local/mine']);
    } finally {
      await gateway.stop();
    }
  });

  it('in the catalog too: a target without a price stops its alias under a limit of all calls', async () => {
    const { rows, statuses } = await look({ ...config, budgets: [BUDGET] }, ['best']);
    expect(statuses).to.deep.equal([403]);
    expect(rows.get('best')).to.include({ is_callable: false });
  });
});
