import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { type ModelServer, startModelServer } from '../support/agents/model-server.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { eventually } from '../support/wait.ts';

// biome-ignore lint/suspicious/noExplicitAny: responses of every shape
type Loose = any;

const FILES: Readonly<Record<string, string>> = Object.freeze({
  'colds.md': '# Colds\n\nA runny nose passes within ten days.',
  'secret/trial.md': '# Trial\n\nThe trial drug zorbidin dries a runny nose within ten minutes.',
  'staff/rota.md': '# Rota\n\nWho has a runny nose tells the ward before nine.',
});

const TRIAGE = { urgency: 'routine', complexity: 'simple', specialties: ['general'], language: 'en', red_flags: [] };
const DRAFT = {
  urgency: 'routine',
  summary: 'It passes.',
  considerations: [],
  recommended_next_steps: ['Rest.'],
  questions: [],
  red_flags: [],
  source_numbers: [1],
  disclaimer: '',
};

describe('folders of the knowledge base with rules', () => {
  const folder = useTempFolder('rag-folders');
  const documents = path.join(folder, 'documents');
  let gateway: TestGateway;
  let vendor: ModelServer;
  const keys: Record<'ann' | 'bob', string> = { ann: '', bob: '' };

  before(async () => {
    for (const [name, text] of Object.entries(FILES)) {
      mkdirSync(path.dirname(path.join(documents, name)), { recursive: true });
      writeFileSync(path.join(documents, name), text);
    }
    vendor = await startModelServer([
      { schema: 'assignments', reply: { agents: [{ agent: 'clerk', instruction: 'find out about a runny nose' }] } },
      { schema: 'report', reply: { summary: 'seen', confidence: 1 } },
      { schema: 'result', reply: { answer: 'ok' } },
      { schema: 'triage', reply: TRIAGE },
      { schema: 'opinion', reply: { opinion: 'A cold.', considerations: [] } },
      { schema: 'answer', reply: DRAFT },
      { schema: 'verdict', reply: { verdict: 'pass', reasons: [] } },
    ]);
    const clerk = { when: 'all', instructions: 'Answer from the handbook.', tools: ['rag'] };
    gateway = await startGateway({
      providers: {
        echo: {},
        scripted: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] },
      },
      plans: { staff: {}, guest: {} },
      agents: {
        rag: {
          folder: documents,
          embeddings: 'echo/echo-embedding',
          watch: '50ms',
          access: { secret: { users: ['ann'] }, staff: { plans: ['staff'] } },
        },
        team: { model: 'scripted/m', agents: { clerk } },
        medical: { model: 'scripted/m' },
      },
    });
    for (const user of ['ann', 'bob'] as const)
      keys[user] = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', user)).api_key;
    await eventually(async () => expect((await look('ann', 'nose')).mode).to.equal('hybrid'));
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const as = (user: 'ann' | 'bob') => ({ authorization: `Bearer ${keys[user]}` });
  const look = async (user: 'ann' | 'bob', query: string): Promise<Loose> =>
    (await gateway.get(`/api/core/rag?k=50&q=${encodeURIComponent(query)}`, as(user))).json();
  const sources = async (user: 'ann' | 'bob', query: string): Promise<readonly string[]> =>
    (await look(user, query)).data.map(({ source }: Loose) => source).sort();
  const shownTo = async (user: 'ann' | 'bob', where: string, message: string): Promise<string> => {
    const before = vendor.model.calls.length;
    const response = await gateway.post(where, { message }, as(user));
    const body = await response.text();
    expect(response.status, body).to.equal(200);
    const calls = vendor.model.calls.slice(before).map(({ request }) => JSON.stringify(request.messages));
    return `${body}\n${calls.join('\n')}`;
  };

  it('D30 are found only by the named user, also when both search in turn', async () => {
    for (const _ of [1, 2]) {
      expect(await sources('ann', 'zorbidin runny nose')).to.deep.equal(['colds.md', 'secret/trial.md']);
      expect(await sources('bob', 'zorbidin runny nose')).to.deep.equal(['colds.md']);
    }
  });

  it('D30 reveal nothing to others: no passage, title, count or score', async () => {
    const body = await look('bob', 'zorbidin trial runny nose');
    expect(JSON.stringify({ ...body, query: '' })).not.to.match(/secret|staff|trial|zorbidin|rota/i);
    // Two of four words match, plus the cosine of a word-based embedding: the same score as without the secret passage.
    expect(body.data).to.have.length(1);
    expect(body.data[0].score).to.be.within(0.2, 0.6);
    expect(await look('bob', 'zorbidin')).to.deep.include({ mode: 'hybrid' });
  });

  it('D30 are searched by an agent with the rights of its caller', async () => {
    const ann = await shownTo('ann', '/api/core/agent', 'What helps a runny nose?');
    expect(ann).to.include('secret/trial.md#0').and.include('zorbidin');
    const bob = await shownTo('bob', '/api/core/agent', 'What helps a runny nose?');
    expect(bob)
      .to.include('colds.md#0')
      .and.not.match(/secret|zorbidin|rota/);
  });

  it('D30 are searched by the medical team with the rights of its caller', async () => {
    expect(await shownTo('ann', '/api/core/agent/medical', 'I have a runny nose.')).to.include('zorbidin');
    const bob = await shownTo('bob', '/api/core/agent/medical', 'I have a runny nose.');
    expect(bob)
      .to.include('Colds')
      .and.not.match(/secret|zorbidin|rota/);
  });

  it('D30 are found by the plan that an operator gave the account', async () => {
    expect(await sources('bob', 'rota ward')).not.to.include('staff/rota.md');
    await gateway.command('accounts', 'plan', 'bob', 'staff');
    expect(await sources('bob', 'rota ward')).to.include('staff/rota.md');
    await gateway.command('accounts', 'plan', 'bob', 'guest');
    expect(await sources('bob', 'rota ward')).not.to.include('staff/rota.md');
  });

  it('D30 are found by the key named by its id in `keys list`, and by no other key of its user', async () => {
    const store = `sqlite:${path.join(folder, 'keys')}`;
    const first = await startGateway({ store });
    const named = await first.command<{ api_key: string }>('keys', 'create', '--user', 'carl', '--name', 'named');
    const other = await first.command<{ api_key: string }>('keys', 'create', '--user', 'carl', '--name', 'other');
    const listed = await first.command<Loose>('keys', 'list', '--user', 'carl');
    await first.stop();
    const { prefix } = listed.data.find(({ name }: Loose) => name === 'named');
    const second = await startGateway({
      store,
      agents: { rag: { folder: documents, watch: '50ms', access: { secret: { keys: [prefix] } } } },
    });
    try {
      const count = async (apiKey: string): Promise<number> => {
        const response = await second.get('/api/core/rag?q=zorbidin+nose', { authorization: `Bearer ${apiKey}` });
        return ((await response.json()) as Loose).data.length;
      };
      await eventually(async () => expect(await count(named.api_key)).to.equal(3));
      expect(await count(other.api_key)).to.equal(2);
    } finally {
      await second.stop();
    }
  });

  const REFUSED: readonly (readonly [what: string, access: unknown, why: RegExp])[] = [
    ['an unknown plan', { secret: { plans: ['stuff'] } }, /refers to the plan "stuff", which is not in "plans"/],
    [
      'a folder that is not there',
      { secrets: { users: ['ann'] } },
      /access\.secrets: is not a folder of the knowledge base/,
    ],
    ['other capitals', { Secret: { users: ['ann'] } }, /access\.Secret: is not a folder of the knowledge base/],
    [
      'everybody and somebody',
      { secret: { everybody: true, users: ['ann'] } },
      /access\.secret: combines everybody with users/,
    ],
    ['missing', { secret: {} }, /agents\.rag\.access\.secret/],
    ['an empty list', { secret: { users: [] } }, /agents\.rag\.access\.secret\.users/],
    ['a misspelt list', { secret: { user: ['ann'] } }, /agents\.rag\.access\.secret/],
    ['a way out', { '../x': { users: ['ann'] } }, /access\["..\/x"\]: is not a path of a subfolder/],
    ['a slash at the end', { 'secret/': { users: ['ann'] } }, /access\["secret\/"\]: is not a path of a subfolder/],
  ];
  for (const [what, access, why] of REFUSED)
    it(`D30 keep the gateway from starting with ${what} in a rule, and the error names the place`, async () => {
      const config = { plans: { staff: {} }, agents: { rag: { folder: documents, access } } };
      const failure = await startGateway(config).then(
        (started) => started.stop().then(() => 'it started'),
        (error: Error) => String(error),
      );
      expect(failure).to.match(why);
    });
});
