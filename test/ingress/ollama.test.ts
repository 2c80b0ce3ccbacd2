import { expect } from 'chai';
import { Ollama } from 'ollama';
import { type IngressRig, MODEL_OF, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const TOOLS = ['read', 'list'].map((name) => ({
  type: 'function',
  function: { name, description: 'Reads.', parameters: { type: 'object', properties: { path: { type: 'string' } } } },
}));

describe('Ollama’s own client', () => {
  let rig: IngressRig;
  let ollama: Ollama;

  before(async () => {
    rig = await startIngressRig({ dialects: { ollama: { models: { 'llama3.2': MODEL_OF.openai } } } });
    const { url, key } = rig.gateway;
    ollama = new Ollama({ host: url, headers: { authorization: `Bearer ${key}` } });
  });
  after(() => rig.stop());

  for (const wire of WIRES) {
    const model = MODEL_OF[wire];
    const messages = [{ role: 'user', content: 'Hi' }];

    it(`chats with ${wire}`, async () => {
      rig.say(wire, { pieces: [{ text: 'Hello there' }] });
      const { message, done, done_reason, prompt_eval_count, eval_count, ...head } = await ollama.chat({
        model,
        messages,
      });
      expect({ message, done, done_reason }).to.deep.equal({
        message: { role: 'assistant', content: 'Hello there' },
        ...{ done: true, done_reason: 'stop' },
      });
      expect(prompt_eval_count + eval_count).to.equal(25);
      expect([head.model, Number.isNaN(Date.parse(String(head.created_at)))]).to.deep.equal([model, false]);
    });

    it(`streams from ${wire}`, async () => {
      rig.say(wire, { pieces: [{ text: 'Hello there' }] }, 7);
      const lines = [];
      for await (const line of await ollama.chat({ model, messages, stream: true })) lines.push(line);
      expect(lines.map(({ message }) => message.content).join('')).to.equal('Hello there');
      const last = lines.at(-1);
      expect([last?.done, last?.done_reason]).to.deep.equal([true, 'stop']);
      expect((last?.prompt_eval_count ?? 0) + (last?.eval_count ?? 0)).to.equal(25);
      expect(lines.slice(0, -1).every(({ done }) => !done)).to.equal(true);
    });

    it(`completes a streamed tool loop with ${wire}, without ids`, async () => {
      const calls = [
        { call: 'read', id: 'c0', arguments: '{"path":"/a"}' },
        { call: 'list', id: 'c1', arguments: '{"path":"/b"}' },
      ];
      rig.say(wire, [{ pieces: [{ text: 'Reading both.' }, ...calls] }, { pieces: [{ text: 'Done.' }] }], 7);
      const called = [];
      for await (const { message } of await ollama.chat({ model, messages, tools: TOOLS, stream: true }))
        called.push(...(message.tool_calls ?? []));
      expect(called.map(({ function: { name, arguments: values } }) => [name, values])).to.deep.equal([
        ['read', { path: '/a' }],
        ['list', { path: '/b' }],
      ]);
      const history = [
        ...messages,
        { role: 'assistant', content: '', tool_calls: called.map(({ function: one }) => ({ function: one })) },
        { role: 'tool', tool_name: 'list', content: 'entries of /b' },
        { role: 'tool', tool_name: 'read', content: 'text of /a' },
      ];
      const { message } = await ollama.chat({ model, messages: history, tools: TOOLS });
      expect(message.content).to.equal('Done.');
      const sent = JSON.stringify(rig.lastBody(wire));
      for (const text of ['text of /a', 'entries of /b']) expect(sent).to.include(text);
    });
  }

  it('sends images, a schema, options and thinking if the vendor supports them, and reports dropped ones', async () => {
    rig.say('openai', { pieces: [{ text: '{"age":22}' }] });
    const format = { type: 'object', properties: { age: { type: 'integer' } }, required: ['age'] };
    const body = {
      ...{ model: 'llama3.2', stream: false, format, think: 'low', keep_alive: '10m' },
      messages: [{ role: 'user', content: 'How old?', images: [PNG] }],
      options: { num_predict: 50, num_ctx: 4096 },
    };
    const response = await rig.gateway.post('/api/chat', body);
    const dropped = response.headers.get('x-tollgate-dropped');
    expect(dropped).to.include('keep_alive').and.include('options.num_ctx');
    const said = (await response.json()) as { model: string; message: { content: string } };
    expect([said.model, said.message.content]).to.deep.equal(['llama3.2', '{"age":22}']);
    const sent = rig.lastBody('openai');
    expect(sent).to.include({ max_completion_tokens: 50, reasoning_effort: 'low' });
    expect(JSON.stringify(sent)).to.include(`data:image/png;base64,${PNG}`).and.include('"required":["age"]');
  });

  it('returns thinking separately, and not if the caller disables it', async () => {
    const said = { pieces: [{ reasoning: 'A greeting.' }, { text: 'Hello' }] };
    for (const stream of [false, true] as const)
      for (const think of [undefined, true, false] as const) {
        rig.say('deepseek', said);
        const body = { model: MODEL_OF.deepseek, prompt: 'Hi', stream, ...(think !== undefined && { think }) };
        const text = await (await rig.gateway.post('/api/generate', body)).text();
        const lines = text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as { response: string; thinking?: string });
        expect(lines.map(({ response }) => response).join('')).to.equal('Hello');
        const thinking = lines.map((line) => line.thinking ?? '').join('');
        expect(thinking).to.equal(think === false ? '' : 'A greeting.');
      }
  });

  it('generates, with a system prompt and a suffix', async () => {
    rig.say('openai', { pieces: [{ text: 'n = 1' }] });
    const { response, done } = await ollama.generate({ model: 'llama3.2', system: 'Be brief.', prompt: 'Hi' });
    expect([response, done]).to.deep.equal(['n = 1', true]);
    expect(rig.lastBody('openai')['messages']).to.deep.equal([
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]);
    await ollama.generate({ model: 'llama3.2', prompt: 'def f(n):', suffix: 'return n' });
    expect(JSON.stringify(rig.lastBody('openai'))).to.include('<prefix>def f(n):</prefix><suffix>return n</suffix>');
  });

  it('reports unsupported features: loading models, raw prompts, templates, contexts, foreign results, odd images', async () => {
    const cases: readonly (readonly [path: string, body: object, param: string])[] = [
      ['chat', { messages: [] }, 'messages'],
      ['generate', {}, 'prompt'],
      ['generate', { prompt: 'Hi', raw: true }, 'raw'],
      ['generate', { prompt: 'Hi', template: '{{ .Prompt }}' }, 'template'],
      ['generate', { prompt: 'Hi', context: [1, 2, 3] }, 'context'],
      ['generate', { prompt: 'Hi', images: ['Zm9v'] }, 'images[0]'],
      ['generate', { prompt: 'Hi', images: [PNG], suffix: 'x' }, 'images'],
      ['generate', { prompt: 'Hi', think: 'loudly' }, 'think'],
      ['generate', { prompt: 'Hi', format: 'xml' }, 'format'],
      ['generate', { prompt: 'Hi', options: { temperature: 3 } }, 'options.temperature'],
      ['chat', { messages: [{ role: 'tool', content: 'x' }] }, 'messages[0]'],
    ];
    for (const [path, body, param] of cases) {
      const response = await rig.gateway.post(`/api/${path}`, { model: 'llama3.2', ...body });
      expect(response.status, JSON.stringify(body)).to.equal(400);
      expect(await response.json()).to.include({ code: 'invalid_request', param });
    }
  });

  it('throws the message of an error, before a stream and in the middle of one', async () => {
    rig.script('openai', respondWith(429, { error: { message: 'slow down' } }));
    const messages = [{ role: 'user', content: 'Hi' }];
    const thrown = await ollama.chat({ model: 'llama3.2', messages }).catch((error: Error) => error);
    expect(thrown).to.be.instanceOf(Error).with.property('status_code', 429);
    expect(String(thrown)).to.not.include('[object');
    const anonymous = await ollama.chat({ model: 'missing/none', messages }).catch((error: Error) => error);
    expect(anonymous).to.have.property('status_code', 404);
    const failed = await ollama.pull({ model: 'llama3.2', stream: false }).catch((error: Error) => error);
    expect(failed).to.have.property('status_code', 404);
    expect(String(failed)).to.not.include('[object');
  });

  it('lists models that the key may use, shows one, and returns its version and the running ones', async () => {
    const { models } = await ollama.list();
    expect(models.map(({ name }) => name)).to.include('echo/echo');
    const { capabilities, details } = await ollama.show({ model: 'echo/echo' });
    expect([capabilities, details.family]).to.deep.equal([['completion', 'tools'], 'echo']);
    expect((await ollama.show({ model: 'llama3.2' })).capabilities).to.include('completion');
    const unknown = await ollama.show({ model: 'missing/none' }).catch((error: Error) => error);
    expect(unknown).to.have.property('status_code', 404);
    expect((await ollama.version()).version).to.match(/^\d+\.\d+\.\d+$/);
    expect((await ollama.ps()).models).to.deep.equal([]);
    const { url } = rig.gateway;
    for (const path of ['tags', 'version', 'ps'])
      expect((await fetch(`${url}/api/${path}`)).status, path).to.equal(401);
  });

  it('embeds one text and several, and in the legacy format', async () => {
    const { embeddings, model } = await ollama.embed({ model: 'echo/echo-embedding', input: ['one', 'two'] });
    expect([embeddings.length, model]).to.deep.equal([2, 'echo/echo-embedding']);
    const { embedding } = await ollama.embeddings({ model: 'echo/echo-embedding', prompt: 'one' });
    expect(embedding).to.deep.equal(embeddings[0]);
    const body = { model: 'echo/echo-embedding', input: 'one', truncate: true, keep_alive: '5m' };
    const response = await rig.gateway.post('/api/embed', body);
    expect(response.headers.get('x-tollgate-dropped')).to.include('truncate').and.include('keep_alive');
    const wrong = await rig.gateway.post('/api/embed', { model: 'echo/echo-embedding', input: [] });
    expect([wrong.status, typeof ((await wrong.json()) as { error: unknown }).error]).to.deep.equal([400, 'string']);
  });
});
