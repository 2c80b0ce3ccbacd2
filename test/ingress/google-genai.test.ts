import { ApiError, GoogleGenAI } from '@google/genai';
import { expect } from 'chai';
import { cutScript, type IngressRig, MODEL_OF, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

describe('Google’s own client, @google/genai', () => {
  let rig: IngressRig;
  let client: GoogleGenAI;

  before(async () => {
    rig = await startIngressRig();
    const { url, key } = rig.gateway;
    const headers = { authorization: `Bearer ${key}` };
    client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url, headers } });
  });
  after(() => rig.stop());

  const config = {
    tools: [{ functionDeclarations: [{ name: 'read', parametersJsonSchema: { type: 'object', properties: {} } }] }],
  };

  for (const wire of WIRES) {
    const model = MODEL_OF[wire];

    it(`generates with ${wire}`, async () => {
      rig.say(wire, { pieces: [{ text: 'Hello there' }] });
      const response = await client.models.generateContent({ model, contents: 'Hi' });
      expect(response.text).to.equal('Hello there');
      expect(response.usageMetadata?.totalTokenCount).to.equal(25);
      expect(response.candidates?.[0]?.finishReason).to.equal('STOP');
    });

    it(`streams from ${wire}`, async () => {
      rig.say(wire, { pieces: [{ text: 'Hello there' }] }, 7);
      let text = '';
      for await (const response of await client.models.generateContentStream({ model, contents: 'Hi' }))
        text += response.text ?? '';
      expect(text).to.equal('Hello there');
    });

    it(`gets one call an element from ${wire}, and no empty text after calls (G25)`, async function () {
      // Google's own elements are passed on as they are.
      if (wire === 'gemini') this.skip();
      const calls = ['/a', '/b'].map((path, at) => ({
        call: 'read',
        id: `call_${at}`,
        arguments: JSON.stringify({ path }),
      }));
      rig.say(wire, { pieces: calls }, 7);
      const elements: unknown[][] = [];
      const contents = 'Read them';
      for await (const { candidates } of await client.models.generateContentStream({ model, contents, config }))
        elements.push((candidates?.[0]?.content?.parts ?? []).map((part) => part.functionCall?.args ?? part.text));
      // An SDK before this one reads the last call of an element, and forgets a turn that has an empty text.
      expect(elements).to.deep.equal([[{ path: '/a' }], [{ path: '/b' }]]);
    });

    it(`completes a streamed tool loop with ${wire} in a stored chat`, async () => {
      const chat = client.chats.create({ model, config });
      const calls = ['/a', '/b'].map((path, at) => ({
        ...{ call: 'read', id: `call_${at}`, arguments: JSON.stringify({ path }) },
      }));
      rig.say(wire, [{ pieces: [{ text: 'Reading both.' }, ...calls] }, { pieces: [{ text: 'Done.' }] }], 7);
      const called: { id?: string; args?: Record<string, unknown> }[] = [];
      for await (const response of await chat.sendMessageStream({ message: 'Read them' }))
        called.push(...(response.functionCalls ?? []));
      expect(called.map(({ args }) => args)).to.deep.equal([{ path: '/a' }, { path: '/b' }]);
      const message = called.map(({ id, args }) => ({
        functionResponse: {
          ...(id !== undefined && { id }),
          name: 'read',
          response: { output: `text of ${args?.['path']}` },
        },
      }));
      const { text } = await chat.sendMessage({ message });
      expect(text).to.equal('Done.');
      const body = JSON.stringify(rig.lastBody(wire));
      // The client stores each chunk of a stream as a separate content, and sends them to Google in this form.
      const sent =
        wire === 'gemini' ? [...body.matchAll(/"(?:text|output)":"([^"]*)"/g)].map(([, text]) => text).join('') : body;
      for (const words of ['Reading both.', 'text of /a', 'text of /b']) expect(sent).to.include(words);
    });
  }

  it('throws its own error with the status of a failure', async () => {
    rig.script('openai', respondWith(400, { error: { message: 'That is wrong.', type: 'invalid_request_error' } }));
    const error = await client.models
      .generateContent({ model: MODEL_OF.openai, contents: 'Hi' })
      .catch((thrown) => thrown);
    expect(error).to.be.instanceOf(ApiError);
    expect(error).to.include({ status: 400 });
    expect(String(error)).to.include('INVALID_ARGUMENT').and.include('That is wrong.');
  });

  it('throws where a vendor breaks off after content, so that no short response looks complete', async () => {
    for (const wire of ['openai', 'gemini'] as const) {
      rig.script(wire, cutScript(wire, { pieces: [{ text: 'half a response' }] }, 4));
      let text = '';
      const read = async (): Promise<void> => {
        const stream = await client.models.generateContentStream({ model: MODEL_OF[wire], contents: 'Hi' });
        for await (const response of stream) text += response.text ?? '';
      };
      const error = await read().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(text).not.to.equal('');
      expect(error, wire).to.be.instanceOf(Error);
    }
  });

  it('42: ends a stream after its error for Gemini CLI, which tries again then, and closes it for others', async () => {
    for (const [agent, isComplete] of [
      ['GeminiCLI/0.61.0/gemini-3.5-pro (linux; x64; terminal)', true],
      ['google-genai-sdk/3.3.0 gl-node/v24.21.0', false],
    ] as const) {
      rig.script('openai', cutScript('openai', { pieces: [{ text: 'half a response' }] }, 4));
      const response = await fetch(
        `${rig.gateway.url}/v1beta/models/${MODEL_OF.openai}:streamGenerateContent?alt=sse`,
        {
          method: 'POST',
          headers: {
            ...{ 'x-goog-api-key': rig.gateway.key, 'content-type': 'application/json', 'user-agent': agent },
          },
          body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
        },
      );
      const text = await response.text().catch(() => undefined);
      expect(text !== undefined, agent).to.equal(isComplete);
      if (isComplete) expect(text).to.include('"error"').and.not.include('finishReason');
    }
  });

  it('lists the models, page by page', async () => {
    const names: string[] = [];
    for await (const model of await client.models.list({ config: { pageSize: 1 } })) names.push(model.name ?? '');
    expect(names).to.include('models/echo/echo');
    expect(new Set(names).size).to.equal(names.length);
  });

  it('counts tokens', async () => {
    const few = await client.models.countTokens({ model: MODEL_OF.openai, contents: 'Hi' });
    const many = await client.models.countTokens({ model: MODEL_OF.openai, contents: 'Hi '.repeat(1000) });
    expect(few.totalTokens).to.be.within(1, 20);
    expect(many.totalTokens).to.be.greaterThan(500);
  });

  it('E73: embeds one text and several, with any provider of embeddings', async () => {
    const { embeddings = [] } = await client.models.embedContent({
      model: 'echo/echo-embedding',
      contents: ['one', 'two'],
      config: { outputDimensionality: 8, taskType: 'RETRIEVAL_QUERY' },
    });
    expect(embeddings.map(({ values }) => values?.length)).to.deep.equal([8, 8]);
    const one = { content: { parts: [{ text: 'one' }] }, output_dimensionality: 8 };
    const path = '/v1beta/echo/echo-embedding';
    const whole = await rig.gateway.post(`${path}:embedContent`, one);
    const { embedding, usageMetadata } = (await whole.json()) as Record<string, Record<string, unknown>>;
    expect(embedding?.['values']).to.deep.equal(embeddings[0]?.values);
    expect(usageMetadata?.['promptTokenCount']).to.equal(1);
    expect(whole.headers.get('x-tollgate-provider')).to.equal('echo');
  });

  it('E73: refuses embeddings that one request cannot represent, with the place', async () => {
    const post = async (method: string, body: unknown) => {
      const response = await rig.gateway.post(`/v1beta/models/echo/echo-embedding:${method}`, body);
      const { error } = (await response.json()) as { error: { status: string; message: string } };
      return [response.status, error.status, error.message].join(' ');
    };
    const content = { parts: [{ text: 'one' }] };
    const image = { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] };
    expect(await post('embedContent', { content: image })).to.match(/400 INVALID_ARGUMENT .*content\.parts\[0\]/);
    expect(await post('embedContent', { content, model: 'models/other' })).to.match(
      /400 .*`model` must be the model in the path/,
    );
    const differing = [{ content }, { content, taskType: 'CLUSTERING' }];
    expect(await post('batchEmbedContents', { requests: differing })).to.match(/400 .*requests\[1\]\.taskType/);
    expect(await post('batchEmbedContents', { requests: [] })).to.match(/^400 INVALID_ARGUMENT/);
  });
});
