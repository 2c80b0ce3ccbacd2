import { expect } from 'chai';
import { startGateway } from '../support/gateways/gateway.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { pluginFile, startError } from '../support/plugins/plugin-file.ts';

const words = (list: string, rest: object) => ({ plugin: 'words', words: [list], sides: ['request'], ...rest });

describe('E66: a policy for some calls', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      tags: { team: '*' },
      plans: { staff: {}, guest: {} },
      defaultPlan: 'guest',
      models: { fast: [MODEL_OF.openai], slow: [MODEL_OF.anthropic, MODEL_OF.openai] },
      policies: {
        'of-team': words('apple', { when: { tags: ['team=search'] } }),
        'of-provider': words('banana', { when: { providers: ['anthropic'] } }),
        'of-model': words('cherry', { when: { models: ['fast', 'openai/gpt-5-*'] } }),
        'of-format': words('date', { when: { dialects: ['messages'], operations: ['chat'] } }),
        'of-plan': words('elder', { when: { plans: ['staff'] } }),
        'of-key': words('fig', { when: { keys: ['named'] } }),
        'of-both': words('grape', { when: { tags: ['team=search'], models: ['slow'] } }),
      },
    });
    rig.say('openai', { pieces: [{ text: 'Fine.' }] });
    rig.say('anthropic', { pieces: [{ text: 'Fine.' }] });
  });
  after(() => rig.stop());

  const call = async (
    content: string,
    { model = 'openai/gpt-5', path = '/v1/chat/completions', key = rig.gateway.key, headers = {}, stream = false } = {},
  ) => {
    const body = { model, stream, max_tokens: 50, messages: [{ role: 'user', content }] };
    const response = await rig.gateway.post(path, body, { authorization: `Bearer ${key}`, ...headers });
    await response.text();
    return response.status;
  };

  for (const stream of [false, true])
    it(`runs only for matching calls${stream ? ', streamed' : ''}`, async () => {
      const team = { headers: { 'x-tollgate-tag': 'team=search' }, stream };
      expect(await call('apple', { stream }), 'no tag').to.equal(200);
      expect(await call('apple', team), 'its tag').to.equal(400);
      expect(await call('banana', { stream }), 'another provider').to.equal(200);
      expect(await call('banana', { model: 'slow', stream }), 'a target of the alias').to.equal(400);
      expect(await call('cherry', { stream }), 'another model').to.equal(200);
      expect(await call('cherry', { model: 'fast', stream }), 'its alias').to.equal(400);
      expect(await call('cherry', { model: 'openai/gpt-5-mini', stream }), 'names that begin so').to.equal(400);
      expect(await call('date', { stream }), 'another format').to.equal(200);
      expect(await call('date', { path: '/v1/messages', stream }), 'its format').to.equal(400);
      expect(await call('grape', team), 'one of two').to.equal(200);
      expect(await call('grape', { ...team, model: 'slow' }), 'both').to.equal(400);
    });

  it('matches the plan of an account, and the key by its name', async () => {
    const { api_key: key } = await rig.gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'ann',
      '--name',
      'named',
    );
    expect(await call('fig', { key })).to.equal(400);
    expect(await call('fig')).to.equal(200);
    expect(await call('elder'), 'the default plan').to.equal(200);
    const staff = await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', 'bob', '--plan', 'staff');
    expect(await call('elder', { key: staff.api_key })).to.equal(400);
  });
});

describe('E66: a policy in log mode', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      policies: {
        trial: { plugin: 'pii', action: 'block', kinds: ['email'], mode: 'log' },
        masks: { plugin: 'words', words: ['apple'], action: 'mask', mode: 'log' },
        holds: { plugin: 'words', words: ['today never', 'for all'], action: 'mask', mode: 'log' },
      },
    });
  });
  after(() => rig.stop());

  for (const stream of [false, true])
    it(`passes all calls unchanged, and reports its verdicts in the record and the log${stream ? ', streamed' : ''}`, async () => {
      rig.say('openai', { pieces: [{ text: 'An apple for bob@acme.example today.' }] });
      const seen = rig.gateway.logs.length;
      const body = {
        model: MODEL_OF.openai,
        stream,
        messages: [{ role: 'user', content: 'To ann@acme.example: apple?' }],
      };
      const response = await rig.gateway.post('/v1/chat/completions', body);
      expect(response.status).to.equal(200);
      const text = [...(await response.text()).matchAll(/"content":"([^"]*)"/g)].map(([, part = '']) => part).join('');
      expect(text).to.equal('An apple for bob@acme.example today.');
      expect(rig.lastBody<{ messages: { content: string }[] }>('openai').messages[0]?.content).to.include(
        'ann@acme.example: apple?',
      );
      const lines = rig.gateway.logs.slice(seen);
      const verdicts = lines
        .filter(({ verdict }) => verdict !== undefined)
        .map(({ plugin, hook, verdict }) => `${String(plugin)} ${String(hook)} ${String(verdict)}`);
      const way = stream ? 'stream' : 'receive';
      const expected = [
        'trial prepare would_refuse',
        'masks prepare would_change',
        `trial ${way} would_refuse`,
        `masks ${way} would_change`,
      ];
      expect(verdicts).to.have.members(expected);
      const record = lines.find(({ hooks }) => hooks !== undefined);
      expect(JSON.stringify(record?.['hooks'])).to.include('would_refuse').and.include('would_change');
      expect(JSON.stringify(lines)).to.not.include('bob@acme');
    });
});

describe('E66: invalid `when` and `mode`', () => {
  const start = (options: object): Promise<string> =>
    startGateway({ policies: { guard: { plugin: 'words', words: ['apple'], ...options } }, tags: { team: '*' } }).then(
      async (gateway) => {
        await gateway.stop();
        return '';
      },
      (error: Error) => error.message,
    );

  it('stop the start, with the reason', async () => {
    expect(await start({ when: { providers: ['openia'] } }))
      .to.include('openia')
      .and.include('guard');
    expect(await start({ when: {} })).to.include('when');
    expect(await start({ when: { plan: ['a'] } })).to.include('plan');
    expect(await start({ mode: 'warn' })).to.include('mode');
    expect(await start({ when: { providers: ['echo'], tags: ['team=a'] }, mode: 'log' })).to.equal('');
  });
});

describe('a policy with visible verdicts', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      policies: {
        shown: { ...words('apple', { action: 'mask', showVerdicts: true }), sides: ['request', 'response'] },
        judge: words('cherry', { showVerdicts: true }),
        trial: words('date', { showVerdicts: true, mode: 'log' }),
        hidden: words('elder', { action: 'mask' }),
      },
    });
    rig.say('openai', { pieces: [{ text: 'An apple a day.' }] });
  });
  after(() => rig.stop());

  const model = MODEL_OF.openai;
  const ways: readonly (readonly [path: string, body: (content: string, stream: boolean) => object])[] = [
    ['/v1/chat/completions', (content, stream) => ({ model, stream, messages: [{ role: 'user', content }] })],
    ['/v1/messages', (content, stream) => ({ model, stream, max_tokens: 50, messages: [{ role: 'user', content }] })],
    ['/v1/responses', (input, stream) => ({ model, stream, input })],
    ['/v1/completions', (prompt, stream) => ({ model, stream, prompt })],
    ['/api/chat', (content, stream) => ({ model, stream, messages: [{ role: 'user', content }] })],
    ['/api/generate', (prompt, stream) => ({ model, stream, prompt })],
    ['/v1beta/models/{model}', (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] })],
  ];

  for (const [path, body] of ways)
    for (const stream of [false, true])
      it(`has them in a header of ${path}, on errors too${stream ? ', streamed' : ''}`, async () => {
        const method = stream ? ':streamGenerateContent?alt=sse' : ':generateContent';
        const url = path.replace('{model}', `${model}${method}`);
        const send = async (content: string) => {
          const response = await rig.gateway.post(url, body(content, stream));
          await response.text();
          return [response.status, response.headers.get('x-tollgate-verdicts')] as const;
        };
        const [status, verdicts = ''] = await send('an apple, a date and an elder');
        expect(status).to.equal(200);
        expect(verdicts).to.include('shown prepare changed').and.include('trial prepare would_refuse');
        expect(verdicts).to.not.include('hidden');
        if (!stream) expect(verdicts).to.include('shown receive changed');
        expect(await send('an elder and a cherry')).to.deep.equal([400, 'judge prepare refused']);
        const [, none] = await send('an elder');
        expect(none ?? '').to.not.include('prepare');
      });

  it('reveals nothing to a client that sends headers of that name, and stops the start if there is nothing to show', async () => {
    rig.say('openai', { pieces: [{ text: 'Fine.' }] });
    const response = await rig.gateway.post('/v1/chat/completions', ways[0]?.[1]('a fig', false), {
      'x-tollgate-verdicts': 'hidden prepare changed',
    });
    expect(response.headers.get('x-tollgate-verdicts')).to.equal(null);
    await response.text();
    const started = startGateway(
      { policies: { empty: { plugin: './empty.mjs', showVerdicts: true } } },
      { files: { 'empty.mjs': pluginFile({ name: 'empty', setup: '' }) } },
    );
    expect(await startError(started)).to.include('showVerdicts');
  });
});
