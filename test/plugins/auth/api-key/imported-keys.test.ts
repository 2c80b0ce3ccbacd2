import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../../../support/folders.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { eventually } from '../../../support/wait.ts';

const OLD = 'sk-Fq2vXnUw9uT4lRkEzXo1pA';
const tokenOf = (key: string): string => createHash('sha256').update(key).digest('hex');
const BODY = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] };

/** Row in LiteLLM's response to `GET /key/list?return_full_object=true`. */
const row = (key: string, rest: Record<string, unknown> = {}) => ({
  token: tokenOf(key),
  key_name: `sk-...${key.slice(-4)}`,
  key_alias: 'laptop',
  spend: 0,
  expires: null,
  models: [],
  user_id: 'ada',
  team_id: null,
  max_budget: null,
  budget_duration: null,
  tpm_limit: null,
  rpm_limit: null,
  blocked: null,
  ...rest,
});

interface Outcome {
  readonly key: string;
  readonly user: string;
  readonly state: string;
  readonly note: string;
}

describe('keys of LiteLLM', () => {
  const folder = useTempFolder('imported-keys');
  let gateway: TestGateway;
  const start = (apiKey: Record<string, unknown>): Promise<TestGateway> =>
    startGateway({
      providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
      auth: { 'api-key': apiKey },
    });
  before(async () => {
    gateway = await start({ importedKeys: 'litellm' });
  });
  after(() => gateway.stop());

  async function importRows(rows: unknown): Promise<readonly Outcome[]> {
    const file = path.join(folder, 'keys.json');
    await writeFile(file, JSON.stringify(rows));
    return (await gateway.command<{ keys: readonly Outcome[] }>('keys', 'import', file)).keys;
  }
  const call = (key: string, body: object = BODY): Promise<Response> =>
    gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });

  it('have the same rights, for the same user, and are in no store in LiteLLM’s form', async () => {
    const [outcome] = await importRows({ keys: [row(OLD)], total_count: 1 });
    expect(outcome).to.include({ user: 'ada', state: 'imported' });
    expect((await call(`${OLD}x`)).status).to.equal(401);
    const right = await call(OLD);
    expect(right.status).to.equal(200);
    const { api_key: admin } = await gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'root',
      '--admin',
    );
    const listed = await gateway.get('/api/core/admin/keys', { authorization: `Bearer ${admin}` });
    expect(await listed.text())
      .to.include('"user_id":"ada"')
      .and.not.include(tokenOf(OLD));
  });

  it('keep models, rates, budgets, ends and blocks', async () => {
    const keys = [
      'sk-models-1',
      'sk-spent-22',
      'sk-daily-333',
      'sk-blocked-4',
      'sk-past-5555',
      'sk-odd-66666',
    ] as const;
    const [models, spent, daily, blocked, past, odd] = keys;
    const outcomes = await importRows([
      row(models, { models: ['echo/*'], rpm_limit: 3 }),
      row(spent, { max_budget: 1, spend: 1 }),
      row(daily, { max_budget: 0.5, spend: 9, budget_duration: '1d' }),
      row(blocked, { blocked: true }),
      row(past, { expires: '2020-01-01T00:00:00Z' }),
      row(odd, { models: ['no-such-model'] }),
      { key_alias: 'nothing' },
    ]);
    expect(outcomes.map(({ state }) => state)).to.deep.equal([
      'imported',
      'imported',
      'imported',
      'imported',
      'left out',
      'left out',
      'left out',
    ]);
    expect(outcomes[2]?.note).to.include('a budget each day');
    const statuses = [await call(models), await call(models), await call(models), await call(models)];
    expect(statuses.map(({ status }) => status)).to.deep.equal([200, 200, 200, 429]);
    expect((await call(spent)).status).to.equal(402);
    expect((await call(daily)).status).to.equal(200);
    expect((await call(blocked)).status).to.equal(403);
    expect((await call(past)).status).to.equal(401);
    expect((await call(odd)).status).to.equal(401);
  });

  it('are imported once, and end as any key does @slow', async () => {
    const key = 'sk-twice-7777';
    const [first] = await importRows([row(key)]);
    const [second] = await importRows([row(key)]);
    const id = /tg_\w+/.exec(first?.note ?? '')?.[0] ?? '';
    expect(second).to.include({ state: 'already here', note: id });
    expect((await call(key)).status).to.equal(200);
    await gateway.command('keys', 'revoke', id);
    await eventually(async () => expect((await call(key)).status).to.equal(401));
  });

  it('are refused without the option, by calls and by the command', async () => {
    const plain = await start({});
    try {
      expect((await plain.post('/v1/chat/completions', BODY, { authorization: `Bearer ${OLD}` })).status).to.equal(401);
      const error = await plain.command('keys', 'import', path.join(folder, 'keys.json')).then(
        () => undefined,
        (thrown: Error) => thrown,
      );
      expect(error?.message).to.include('Set "importedKeys: litellm"');
    } finally {
      await plain.stop();
    }
  });

  it('of a file without keys are refused with an explanation', async () => {
    for (const [rows, words] of [
      [{ keys: ['abc'] }, /return_full_object/],
      [{}, /return_full_object/],
    ] as const) {
      const error = await importRows(rows).then(
        () => undefined,
        (thrown: Error) => thrown,
      );
      expect(error?.message).to.match(words);
    }
  });
});
