import { expect } from 'chai';
import { partOf } from '../../../support/generated-cases.ts';
import { fixture } from '../../../support/speech/sound.ts';
import {
  type RecordedRequest,
  respondWith,
  type Script,
  startScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';
import { type AiRig, fileOf, KEY, startAi } from './rig.ts';

const IMAGE = 'iVBORw0KGgo=';
const SPOKEN = {
  ...{ text: 'People were swimming.', language: 'english', duration: 8.47, x_groq: { id: 'req_1' } },
  segments: [
    {
      ...{ id: 0, seek: 0, start: 0, end: 2.5, text: 'People were', tokens: [1], temperature: 0 },
      ...{ avg_logprob: -0.1, compression_ratio: 1, no_speech_prob: 0 },
    },
  ],
};
/** Vector of a text, so that a test sees which text it belongs to. */
const vectorOf = (text: string): readonly number[] => [text.length, 0.5];

const textsOf = ({ body }: RecordedRequest): readonly string[] => {
  const sent = JSON.parse(body.toString()) as Record<string, unknown>;
  return (sent['input'] ?? sent['texts'] ?? []) as readonly string[];
};

/** Answers as the vendors of the packages do, by path. */
const vendor: Script = ({ request, send }) => {
  const { path: sent } = request;
  if (/\/embeddings$/.test(sent)) {
    const data = textsOf(request).map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }));
    return send(respondWith(200, { object: 'list', data, model: 'm', usage: { prompt_tokens: 7, total_tokens: 7 } }));
  }
  if (/\/embed$/.test(sent)) {
    const float = textsOf(request).map(vectorOf);
    return send(respondWith(200, { id: 'e', embeddings: { float }, meta: { billed_units: { input_tokens: 7 } } }));
  }
  if (/\/inference\//.test(sent)) return send(respondWith(200, { images: [`data:image/png;base64,${IMAGE}`] }));
  if (/\/images\//.test(sent)) {
    const usage = { input_tokens: 20, output_tokens: 30, total_tokens: 50 };
    return send(respondWith(200, { created: 1_713_833_628, data: [{ b64_json: IMAGE }], usage }));
  }
  if (/\/audio\/speech$/.test(sent)) return send(respondWith(200, fixture('hi.wav'), { 'content-type': 'audio/wav' }));
  return send(respondWith(200, SPOKEN));
};

const EMBEDDING_PACKAGES = ['openai-compatible', 'deepinfra', 'cohere', 'mistral', 'openai'];
const OPTIONS: Readonly<Record<string, object>> = { 'openai-compatible': { name: 'acme' } };

function form(fields: Readonly<Record<string, string>>, file: string, type: string): FormData {
  const body = new FormData();
  for (const [name, value] of Object.entries({ model: 'acme/m-1', ...fields })) body.append(name, value);
  body.append(file, new Blob([Buffer.alloc(400, 7)], { type }), 'sound.wav');
  return body;
}

describe('an operation by a package of the AI SDK', () => {
  let rig: AiRig | undefined;
  afterEach(async () => {
    await rig?.stop();
    rig = undefined;
  });
  const start = async (
    name: string,
    more: object = {},
    options: Parameters<typeof startAi>[2] = {},
  ): Promise<AiRig> => {
    const known = /^\./.test(name) ? {} : { package: fileOf(`@ai-sdk/${name}`), options: OPTIONS[name] ?? {} };
    rig = await startAi(name, { ...known, ...more }, options);
    rig.vendor.script(vendor);
    return rig;
  };
  const send = async (path: string, fields: object): Promise<{ status: number; headers: Headers; text: string }> => {
    const { gateway } = rig as AiRig;
    const response =
      fields instanceof FormData
        ? await fetch(gateway.url + path, {
            ...{ method: 'POST', body: fields, headers: { authorization: `Bearer ${gateway.key}` } },
          })
        : await gateway.post(path, { model: 'acme/m-1', ...fields });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  describe('that embeds texts', () => {
    for (const name of EMBEDDING_PACKAGES)
      it(`44: gets vectors, usage and the bill by ${name}`, async () => {
        const { gateway, vendor: acme } = await start(name);
        const input = ['one', 'three'];
        const { data, usage } = await gateway.openai().embeddings.create({ model: 'acme/m-1', input });
        expect(data.map(({ embedding }) => embedding)).to.deep.equal(input.map(vectorOf));
        expect(usage).to.deep.include({ prompt_tokens: 7, total_tokens: 7 });
        const [line] = gateway.logs.filter(({ msg }) => msg === 'request').slice(-1);
        expect(line).to.deep.include({ provider: 'acme', cost_usd: '0.000007', outcome: 'ok' });
        expect(acme.requests.at(-1)?.headers['authorization']).to.equal(`Bearer ${KEY}`);
      });

    it('44: splits inputs by the limit of the package, in order, and adds the tokens', async () => {
      const { vendor: acme } = await start('mistral');
      const input = Array.from({ length: 40 }, (_, at) => 'x'.repeat(at + 1));
      const { text } = await send('/v1/embeddings', { input });
      const { data, usage } = JSON.parse(text) as { data: { embedding: number[] }[]; usage: object };
      expect(data.map(({ embedding }) => embedding[0])).to.deep.equal(input.map(({ length }) => length));
      expect(acme.requests.map((request) => textsOf(request).length)).to.deep.equal([32, 8]);
      expect(usage).to.deep.include({ prompt_tokens: 14 });
    });

    it('44: reports fields that the specification does not have', async () => {
      await start('cohere');
      const { headers } = await send('/v1/embeddings', { input: 'a', dimensions: 2, user: 'me' });
      expect(headers.get('x-tollgate-dropped')).to.equal('user, dimensions');
    });

    it('44: refuses token ids', async () => {
      const { vendor: acme } = await start('cohere');
      const { status, text } = await send('/v1/embeddings', { input: [1, 2] });
      expect([status, JSON.parse(text).error.code, acme.requests.length]).to.deep.equal([404, 'unsupported_model', 0]);
      expect(text).to.include('Send texts');
    });

    it('44: tries the next target after a wrong number of vectors', async () => {
      await start(
        'cohere',
        {},
        { config: { models: { both: ['acme/m-1', 'echo/echo-embedding'] }, providers: { echo: {} } } },
      );
      const body = { id: 'e', embeddings: { float: [[1, 2]] }, meta: { billed_units: { input_tokens: 7 } } };
      rig?.vendor.script((wire) => wire.send(respondWith(200, body)));
      const alone = await send('/v1/embeddings', { input: ['a', 'b'] });
      expect([alone.status, rig?.gateway.logText()]).to.satisfy(
        ([status, log]: [number, string]) => status === 503 && log.includes('returned 1 embeddings for 2 inputs'),
      );
      const both = await send('/v1/embeddings', { model: 'both', input: ['a', 'b'] });
      expect(both.headers.get('x-tollgate-provider')).to.equal('echo');
    });
  });

  describe('that makes images', () => {
    for (const name of ['openai-compatible', 'openai', 'deepinfra'])
      it(`44: gets an image by ${name}`, async () => {
        const { gateway, vendor: acme } = await start(name, {
          prices: { '*': { input: 0, output: 0, fees: { images: 0.04 } } },
        });
        const { status, text, headers } = await send('/v1/images/generations', {
          prompt: 'A beach',
          size: '512x512',
          quality: 'high',
        });
        expect([status, JSON.parse(text).data], text).to.deep.equal([200, [{ b64_json: IMAGE }]]);
        expect(headers.get('x-tollgate-dropped')).to.equal('quality');
        expect(headers.get('x-tollgate-cost-usd')).to.equal('0.04');
        expect(JSON.stringify(acme.requests.at(-1)?.json())).to.include('512');
        expect(gateway.logText()).not.to.include(KEY);
      });

    it('44: reads the tokens of an image', async () => {
      await start('openai', { prices: { '*': { input: 1, output: 2, image_output: 2 } } });
      const { text, headers } = await send('/v1/images/generations', { prompt: 'A beach' });
      expect(JSON.parse(text).usage).to.deep.include({ input_tokens: 20, output_tokens: 30 });
      expect(headers.get('x-tollgate-cost-usd')).to.equal('0.00008');
    });

    it('44: makes several images by the limit of the package', async () => {
      const { vendor: acme } = await start('deepinfra');
      const { text } = await send('/v1/images/generations', { prompt: 'A beach', n: 3 });
      expect([JSON.parse(text).data.length, acme.requests.length]).to.deep.equal([3, 3]);
    });

    it('44: aborts the other calls if one of several fails, and charges the next target alone', async () => {
      const prices = { '*': { input: 0, output: 0, fees: { images: 0.04 } } };
      const other = await startScriptedUpstream(vendor);
      try {
        const second = { plugin: 'ai-sdk', package: fileOf('@ai-sdk/deepinfra'), baseUrl: other.url, apiKey: KEY };
        const providers = { second: { ...second, models: ['m-1'], prices } };
        const { gateway, vendor: acme } = await start(
          'deepinfra',
          { prices },
          { config: { models: { both: ['acme/m-1', 'second/m-1'] }, providers } },
        );
        let calls = 0;
        acme.script(async (wire) => {
          calls += 1;
          if (calls < 3) return wire.hang();
          return wire.send(respondWith(400, { error: { message: 'This prompt is refused', code: 'model_not_found' } }));
        });
        const response = await send('/v1/images/generations', { model: 'both', prompt: 'A beach', n: 3 });
        expect([response.status, JSON.parse(response.text).data.length], response.text).to.deep.equal([200, 3]);
        expect(response.headers.get('x-tollgate-provider')).to.equal('second');
        expect(response.headers.get('x-tollgate-cost-usd')).to.equal('0.12');
        expect([acme.requests.length, other.requests.length]).to.deep.equal([3, 3]);
        // The vendor sees the end of the calls that were running.
        await Promise.all(acme.requests.slice(0, 2).map(({ closed }) => closed));
        const lines = gateway.logs.filter(({ msg }) => msg === 'request');
        expect(lines.map((line) => line['cost_usd'])).to.deep.equal(['0.12']);
      } finally {
        await other.close();
      }
    });

    it('44: gets images from another host that `hosts` names, without the key, by replicate', async () => {
      const files = await startScriptedUpstream(({ send: reply }) =>
        reply(respondWith(200, Buffer.from(IMAGE, 'base64'), { 'content-type': 'image/png' })),
      );
      const acme = await startScriptedUpstream(({ send: reply }) =>
        reply(respondWith(200, { status: 'succeeded', output: [`${files.url}/a.png`], urls: { get: files.url } })),
      );
      try {
        const own = [acme, files].map(({ port }) => `127.0.0.1:${port}`);
        for (const hosts of [undefined, own]) {
          await start('replicate', { baseUrl: acme.url, ...(hosts && { hosts }) });
          const { status, text } = await send('/v1/images/generations', { prompt: 'A beach' });
          expect(status, text).to.equal(hosts ? 200 : 503);
          expect(files.requests.length).to.equal(hosts ? 1 : 0);
          await rig?.stop();
        }
        expect(acme.requests[0]?.headers['authorization']).to.equal(`Bearer ${KEY}`);
        expect(JSON.stringify(files.requests[0]?.headers)).not.to.include(KEY).and.not.to.include('tollgate-key');
      } finally {
        await Promise.all([files, acme].map((server) => server.close()));
      }
    });

    it('44: sends a complete image as an event of a stream', async () => {
      await start('openai');
      const { text } = await send('/v1/images/generations', { prompt: 'A beach', stream: true });
      expect(text).to.include('image_generation.completed').and.include(IMAGE);
    });

    it('44: edits files, or refuses them by a package without edits', async () => {
      const { vendor: acme } = await start('openai-compatible');
      const edit = form({ prompt: 'Rain' }, 'image', 'image/png');
      expect((await send('/v1/images/edits', edit)).status).to.equal(200);
      expect(acme.requests.at(-1)?.path).to.equal('/images/edits');
      await rig?.stop();
      await start('deepinfra');
      const { status, text } = await send('/v1/images/edits', edit);
      expect([status, JSON.parse(text).error.code, rig?.vendor.requests.length]).to.deep.equal([
        404,
        'unsupported_model',
        0,
      ]);
    });
  });

  describe('that speaks', () => {
    it('44: gets sound, by the vendor’s path and by OpenAI’s', async () => {
      const { gateway, vendor: acme } = await start('openai', {
        prices: { '*': { input: 0, output: 0, characters: 15 } },
      });
      const own = { text: 'Hello', model: 'm-1', format: 'wav', voice: 'ash', speed: 1.5, language: 'de-AT' };
      const spoken = await gateway.post('/acme/tts', { ...own, stream: false });
      expect(spoken.status, gateway.logText()).to.equal(200);
      expect(
        Buffer.from(await spoken.arrayBuffer())
          .subarray(0, 4)
          .toString(),
      ).to.equal('RIFF');
      expect(acme.requests.at(-1)?.json()).to.deep.equal({
        ...{ model: 'm-1', input: 'Hello', voice: 'ash', response_format: 'wav', speed: 1.5 },
      });
      expect(spoken.headers.get('x-tollgate-dropped')).to.equal('language');
      expect(spoken.headers.get('x-tollgate-cost-usd')).to.equal('0.000075');
      const same = await send('/v1/audio/speech', { input: 'Hello', response_format: 'wav', instructions: 'Slowly' });
      expect([same.status, same.headers.get('content-type')]).to.deep.equal([200, 'audio/wav']);
      expect(acme.requests.at(-1)?.json()).to.deep.include({ voice: 'alloy', instructions: 'Slowly' });
    });

    for (const [what, name, more] of [
      ['a speech model of the package', 'cohere', {}],
      ['`models` of the operator', 'openai', { models: undefined }],
    ] as const)
      it(`44: is no speech provider without ${what}`, async () => {
        await start(name, more);
        const { status, text } = await send('/v1/audio/speech', { input: 'Hello', voice: 'x' });
        expect([status, JSON.parse(text).error.code]).to.deep.equal([404, 'unsupported_model']);
      });

    it('44: asks for a model if any is allowed', async () => {
      const { gateway } = await start('openai', { models: ['*'] });
      const response = await gateway.post('/acme/tts', { text: 'Hello' });
      const { error } = (await response.json()) as { error: { code: string; param: string } };
      expect([error.code, error.param]).to.deep.equal(['invalid_request', 'model']);
    });
  });

  describe('that transcribes', () => {
    for (const name of ['openai', 'groq'])
      it(`44: gets text, times and the bill by ${name}`, async () => {
        await start(name, { prices: { '*': { input: 0, output: 0, fees: { seconds: 0.001 } } } });
        const json = await send('/v1/audio/transcriptions', form({ prompt: 'Names' }, 'file', 'audio/wav'));
        expect(JSON.parse(json.text), json.text).to.deep.include({ text: SPOKEN.text });
        expect(json.headers.get('x-tollgate-dropped')).to.equal('prompt');
        expect(json.headers.get('x-tollgate-cost-usd')).to.equal('0.009');
        const srt = await send('/v1/audio/transcriptions', form({ response_format: 'srt' }, 'file', 'audio/wav'));
        expect(srt.text).to.equal('1\n00:00:00,000 --> 00:00:02,500\nPeople were\n\n');
      });

    it('44: asks for times by the operator’s options', async () => {
      const { vendor: acme } = await start('openai', {
        providerOptions: { openai: { timestampGranularities: ['segment'] } },
      });
      await send('/v1/audio/transcriptions', form({ response_format: 'srt' }, 'file', 'audio/wav'));
      expect(acme.requests.at(-1)?.body.toString()).to.include('verbose_json').and.include('segment');
    });

    it('44: refuses what the AI SDK does not have', async () => {
      await start('openai');
      const translated = await send('/v1/audio/translations', form({}, 'file', 'audio/wav'));
      const speakers = await send(
        '/v1/audio/transcriptions',
        form({ response_format: 'diarized_json' }, 'file', 'audio/wav'),
      );
      for (const { status, text } of [translated, speakers])
        expect([status, JSON.parse(text).error.code], text).to.deep.equal([404, 'unsupported_model']);
      expect(rig?.vendor.requests).to.deep.equal([]);
    });
  });

  /** Package of specification v4 whose models do what their id says. */
  const ODD = `export function createOdd(settings) {
    const send = () => settings.fetch(settings.baseURL + '/x', { method: 'POST', body: '{}' });
    const warnings = [{ type: 'unsupported', feature: 'files' }, { type: 'unsupported', feature: 'outputFormat' }];
    const work = {
      hangs: () => new Promise(() => {}),
      throws: () => { throw new TypeError('undefined is not a function'); },
      'returns nothing': async () => { await send(); return { embeddings: [], images: [], audio: '', warnings: [] }; },
      'ignores what matters': async () => { await send(); return { images: ['iVBORw0KGgo='], audio: 'SUQz', warnings }; },
      repeats: async (options) => { await send(); return { warnings: [],
        embeddings: (options.values ?? []).map(() => [options.dimensions]), text: JSON.stringify(options.timestampGranularities) }; },
    };
    const model = (id) => ({ specificationVersion: 'v4', modelId: id, doEmbed: work[id], doGenerate: work[id] });
    return { specificationVersion: 'v4', languageModel: model, embeddingModel: model, imageModel: model, speechModel: model, transcriptionModel: model };
  }`;
  const CALLS: Readonly<Record<string, (model: string) => readonly [string, object]>> = {
    embeddings: (model) => ['/v1/embeddings', { model, input: 'Hi' }],
    images: (model) => ['/v1/images/generations', { model, prompt: 'A beach' }],
    'image edits': (model) => ['/v1/images/edits', form({ model, prompt: 'Rain' }, 'image', 'image/png')],
    speech: (model) => ['/v1/audio/speech', { model, input: 'Hello', response_format: 'wav' }],
    transcription: (model) => ['/v1/audio/transcriptions', form({ model }, 'file', 'audio/wav')],
  };

  describe('whose package behaves badly', () => {
    beforeEach(() =>
      start('./odd.mjs', { models: ['*'], timeouts: { firstByte: '300ms' } }, { files: { 'odd.mjs': ODD } }),
    );

    const BAD = [
      ['hangs', 'provider_timeout', Object.keys(CALLS)],
      ['throws', 'provider_unavailable', Object.keys(CALLS)],
      ['returns nothing', 'provider_unavailable', Object.keys(CALLS)],
      ['ignores what matters', 'unsupported_model', ['image edits', 'speech']],
    ] as const;
    for (const [at, [model, code, of]] of BAD.entries())
      for (const operation of partOf<string>(of, at))
        it(`44: gives ${code} for ${operation} by a package that ${model}`, async () => {
          const { status, text } = await send(...(CALLS[operation] as (typeof CALLS)[string])(`acme/${model}`));
          expect([status, JSON.parse(text).error.code], text + rig?.gateway.logText()).to.deep.equal([
            code === 'unsupported_model' ? 404 : 503,
            code,
          ]);
        });

    it('44: gets dimensions and times by specification v4', async () => {
      const { text, headers } = await send('/v1/embeddings', {
        model: 'acme/repeats',
        input: ['a', 'b'],
        dimensions: 3,
      });
      expect(JSON.parse(text).data.map((each: { embedding: unknown }) => each.embedding)).to.deep.equal([[3], [3]]);
      expect(headers.get('x-tollgate-dropped')).to.equal(null);
      const words = form({ model: 'acme/repeats', 'timestamp_granularities[]': 'word' }, 'file', 'audio/wav');
      expect(JSON.parse((await send('/v1/audio/transcriptions', words)).text).text).to.equal('["word"]');
    });
  });

  for (const [operation, path] of partOf(Object.entries(CALLS)))
    it(`44: passes on errors of ${operation} with the time of a retry`, async () => {
      const { vendor: acme } = await start('openai');
      const error = { error: { type: 'rate_limit_error', message: 'Slow down', code: 'rate_limit' } };
      acme.script((wire) => wire.send(respondWith(429, error, { 'retry-after': '7' })));
      const { status, headers, text } = await send(...path('acme/m-1'));
      expect([status, headers.get('retry-after')], text).to.deep.equal([429, '7']);
    });
});
