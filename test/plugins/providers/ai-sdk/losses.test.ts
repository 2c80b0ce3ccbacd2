import { expect } from 'chai';
import { fixture } from '../../../support/speech/sound.ts';
import { respondWith, startScriptedUpstream } from '../../../support/vendors/scripted-upstream.ts';
import { type AiRig, PACKAGES, respondAs, startAi } from './rig.ts';

const MESSAGES = [{ role: 'user', content: 'Hi' }];
const WAV = { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } };
const PDF = { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQ=' } };

/** Package of specification v4 that sends what `keep` names of its options, and nothing else. */
const SPARSE = `export function createSparse({ fetch, baseURL, keep = [], rename = {}, defaults = {}, audio = 'SUQz' }) {
  const usage = { inputTokens: { total: 3 }, outputTokens: { total: 2 } };
  const finishReason = { unified: 'stop', raw: 'stop' };
  const write = async (options) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(options))
      if (value instanceof Uint8Array) form.append('file', new Blob([value]), 'a.wav');
      else if (value !== undefined && (['values', 'prompt', 'text', 'n', ...keep].includes(name))) form.append(name, JSON.stringify(value));
    await fetch(baseURL, { method: 'POST', body: form });
    return { warnings: [], embeddings: (options.values ?? []).map(() => [1]), images: ['iVBORw0KGgo='], audio, text: 'Hello' };
  };
  const model = (modelId) => ({ specificationVersion: 'v4', modelId, doEmbed: write, doGenerate: write });
  return {
    specificationVersion: 'v4',
    embeddingModel: model, imageModel: model, speechModel: model, transcriptionModel: model,
    languageModel: (id) => ({
      specificationVersion: 'v4', provider: 'sparse', modelId: id, supportedUrls: {},
      async doGenerate(options) {
        if (id === 'token') await fetch(baseURL + '/token', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
        const kept = Object.fromEntries(keep.flatMap((name) => name in options ? [[rename[name] ?? name, options[name]]] : []));
        const texts = options.prompt.flatMap(({ content }) => content).flatMap(({ text }) => text ?? []);
        await fetch(baseURL, { method: 'POST', body: JSON.stringify({ texts, ...defaults, ...kept }), headers: { 'content-type': 'application/json' } });
        return { content: [{ type: 'text', text: 'Done' }], finishReason, usage, warnings: [] };
      },
      async doStream(options) {
        const { content } = await this.doGenerate(options);
        return { stream: new ReadableStream({ start(controller) {
          controller.enqueue({ type: 'stream-start', warnings: [] });
          for (const piece of [{ type: 'text-start' }, { type: 'text-delta', delta: content[0].text }, { type: 'text-end' }]) controller.enqueue({ ...piece, id: '1' });
          controller.enqueue({ type: 'finish', usage, finishReason });
          controller.close();
        } }) };
      },
    }),
  };
}`;

const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
const SETTINGS = {
  max_tokens: 77,
  temperature: 0.3,
  top_p: 0.6,
  top_k: 9,
  stop: ['END'],
  seed: 4242,
  frequency_penalty: 0.5,
  presence_penalty: 0.25,
  reasoning_effort: 'high',
};
const OPTIONS = [
  ...['maxOutputTokens', 'temperature', 'topP', 'topK', 'stopSequences', 'seed', 'frequencyPenalty'],
  ...['presencePenalty', 'reasoning', 'tools', 'toolChoice', 'responseFormat'],
];

describe('what a package of the AI SDK drops without a warning', () => {
  let rig: AiRig | undefined;
  afterEach(async () => {
    await rig?.stop();
    rig = undefined;
  });
  const start = async (name: string, more: Readonly<Record<string, unknown>> = {}, config = {}): Promise<AiRig> => {
    const isOwn = !PACKAGES[name];
    const options = { config, ...(isOwn && { files: { 'sparse.mjs': SPARSE } }) };
    rig = await startAi(name, { ...(isOwn && { models: ['*'] }), ...more }, options);
    rig.vendor.script(respondAs(PACKAGES[name]?.wire ?? 'openai', { pieces: [{ text: 'Done' }] }));
    return rig;
  };
  const send = async (fields: object, model = 'acme/m-1') => {
    const response = await rig?.gateway.post('/v1/chat/completions', { model, messages: MESSAGES, ...fields });
    const text = (await response?.text()) ?? '';
    const [line] = rig?.gateway.logs.filter(({ msg }) => msg === 'request').slice(-1) ?? [];
    return {
      ...{ status: response?.status, text, logged: line?.['dropped'] },
      provider: response?.headers.get('x-tollgate-provider'),
      dropped: response?.headers.get('x-tollgate-dropped')?.split(', ') ?? [],
    };
  };

  for (const name of ['@ai-sdk/huggingface-latest', '@ai-sdk/openai-latest'].filter((each) => PACKAGES[each]))
    it(`44: ${name} drops reasoning_effort for a model that it does not know, which is reported`, async () => {
      await start(name);
      for (const stream of [false, true]) {
        const said = await send({ reasoning_effort: 'high', stream });
        expect([said.status, said.dropped], said.text).to.deep.equal([200, ['reasoning_effort']]);
        expect(said.logged).to.equal('reasoning_effort');
      }
      expect(rig?.vendor.requests, 'requests at the vendor').to.have.length(2);
      expect((await send({ max_tokens: 77 })).dropped).to.deep.equal([]);
    });

  for (const [what, part] of Object.entries({ sound: WAV, 'a PDF file': PDF }))
    it(`44: @ai-sdk/cohere-latest does not send ${what}, so the next target answers`, async function () {
      const name = '@ai-sdk/cohere-latest';
      if (!PACKAGES[name]) this.skip();
      const next = await startScriptedUpstream(respondAs('openai', { pieces: [{ text: 'Seen' }] }));
      const openai = { apiKey: 'k', baseUrl: `${next.url}/v1`, models: ['gpt-audio'] };
      const messages = [{ role: 'user', content: [{ type: 'text', text: 'See' }, part] }];
      try {
        await start(name, {}, { providers: { openai }, models: { both: ['acme/m-1', 'openai/gpt-audio'] } });
        for (const stream of [false, true]) {
          const said = await send({ messages, stream });
          expect([said.status, JSON.parse(said.text).error?.code], said.text).to.deep.equal([404, 'unsupported_model']);
          expect(said.text).to.include('Use another model');
          const other = await send({ messages, stream }, 'both');
          expect(other.provider, other.text).to.equal('openai');
        }
      } finally {
        await next.close();
      }
      expect(rig?.vendor.requests, 'requests at the vendor').to.have.length(0);
    });

  it('44: is reported field by field, whole and streamed, and costs the vendor one request', async () => {
    await start('./sparse.mjs');
    const tools = { tools: TOOLS, tool_choice: 'required' };
    for (const stream of [false, true]) {
      const said = await send({ ...SETTINGS, stream });
      expect(said.status, said.text).to.equal(200);
      expect(said.dropped).to.have.members(Object.keys(SETTINGS));
    }
    expect(rig?.vendor.requests).to.have.length(2);
    const refused = await send(tools);
    expect([refused.status, refused.text.includes('`tools`')], refused.text).to.deep.equal([404, true]);
    expect(rig?.vendor.requests).to.have.length(2);
  });

  it('44: is a tool choice, and the schema of a response', async () => {
    const schema = { type: 'object', properties: { day: { type: 'string' } } };
    const response_format = { type: 'json_schema', json_schema: { name: 'day', schema } };
    await start('./sparse.mjs', { options: { keep: ['tools'], defaults: { responseFormat: { type: 'json' } } } });
    const chosen = await send({ tools: TOOLS, tool_choice: 'none' });
    expect([chosen.status, chosen.dropped], chosen.text).to.deep.equal([200, ['tool_choice']]);
    const formed = await send({ response_format });
    expect([formed.status, formed.text.includes('response_format')], formed.text).to.deep.equal([404, true]);
  });

  it('44: is nothing that it sends under another name, or by default', async () => {
    const rename = Object.fromEntries(OPTIONS.map((name) => [name, `other_${name}`]));
    await start('./sparse.mjs', { options: { keep: OPTIONS, rename } });
    const all = { ...SETTINGS, tools: TOOLS, tool_choice: 'required' };
    const format = { response_format: { type: 'json_object' } };
    for (const fields of [all, format]) {
      const said = await send(fields);
      expect(said.dropped, said.text).to.deep.equal([]);
    }
    await rig?.stop();
    await start('./sparse.mjs', { options: { defaults: { limit: 77, mode: 'high' } } });
    expect((await send({ max_tokens: 77, reasoning_effort: 'high' })).dropped).to.deep.equal([]);
    expect((await send({ max_tokens: 78, reasoning_effort: 'none', presence_penalty: 0 })).dropped).to.deep.equal([
      'max_tokens',
    ]);
  });

  it('44: is also the dimensions of vectors', async function () {
    const name = '@ai-sdk/cohere-latest';
    if (!PACKAGES[name]) this.skip();
    await start(name);
    rig?.vendor.script(({ send: reply }) =>
      reply(respondWith(200, { embeddings: { float: [[0.5, 0.25]] }, meta: { billed_units: { input_tokens: 1 } } })),
    );
    const response = await rig?.gateway.post('/v1/embeddings', { model: 'acme/m-1', input: 'Hi', dimensions: 2 });
    expect(response?.status, await response?.text()).to.equal(200);
    expect(response?.headers.get('x-tollgate-dropped')).to.equal('dimensions');
    expect(rig?.vendor.requests).to.have.length(1);
  });

  const SOUND = fixture('hi.mp3').toString('base64');
  const SPEECH = { input: 'Hi', voice: 'ash', speed: 1.5, response_format: 'mp3' };
  const TIMES = new FormData();
  TIMES.append('model', 'acme/m-1');
  TIMES.append('timestamp_granularities[]', 'word');
  TIMES.append('file', new Blob([Buffer.from('RIFF')], { type: 'audio/wav' }), 'a.wav');
  for (const [path, body, fields, option] of [
    ['/v1/images/generations', { prompt: 'A beach', size: '512x768' }, 'size', 'size'],
    ['/v1/audio/speech', SPEECH, 'voice, speed', 'voice speed'],
    ['/v1/audio/transcriptions', TIMES, 'timestamp_granularities', 'timestampGranularities'],
  ] as const)
    for (const isKept of [false, true])
      it(`44: is ${isKept ? 'not ' : ''}${fields} of ${path}, in a form as well`, async () => {
        const keep = ['outputFormat', ...(isKept ? option.split(' ') : [])];
        const { gateway, vendor } = await start('./sparse.mjs', { options: { keep, audio: SOUND }, models: ['m-1'] });
        vendor.script(({ send: reply }) => reply(respondWith(200, {})));
        const response =
          body instanceof FormData
            ? await fetch(gateway.url + path, {
                method: 'POST',
                headers: { authorization: `Bearer ${gateway.key}` },
                body,
              })
            : await gateway.post(path, { model: 'acme/m-1', ...body });
        const dropped = response.headers.get('x-tollgate-dropped');
        expect([response.status, dropped], await response.text()).to.deep.equal([200, isKept ? null : fields]);
        expect(vendor.requests).to.have.length(1);
      });

  it('44: is a format of speech, so the next target answers', async () => {
    const { gateway } = await start('./sparse.mjs', { models: ['m-1'] });
    const response = await gateway.post('/v1/audio/speech', { model: 'acme/m-1', ...SPEECH });
    const { error } = (await response.json()) as { error: { message: string; code: string } };
    expect([response.status, error.code]).to.deep.equal([404, 'unsupported_model']);
    expect(error.message).to.include('no format "mp3"');
  });

  it('44: is not judged by a request of another kind, such as one for a token', async () => {
    await start('./sparse.mjs');
    const said = await send({ seed: 1 }, 'acme/token');
    expect([said.status, said.dropped], said.text).to.deep.equal([200, []]);
    expect(rig?.vendor.requests).to.have.length(2);
  });

  it('44: is not sought in a package with connections of its own', async () => {
    await start('./sparse.mjs', { ownTransport: true });
    expect((await send({ seed: 1 })).dropped).to.deep.equal([]);
    expect(rig?.vendor.requests).to.have.length(1);
  });
});
