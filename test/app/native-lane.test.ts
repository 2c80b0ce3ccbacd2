import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';

/** Client format with five fields: `{ m, say, seal?, tool?, stream? }`. Unknown fields are passed through natively. */
const DIALECT = pluginFile({
  name: 'tiny',
  kind: 'dialect',
  setup: `
    const usage = { in: 1, out: 1 };
    const reasoning = ({ sealed }) => (sealed ? [{ kind: 'encrypted', format: 'tiny', data: sealed }] : []);
    const frame = (value) => 'data: ' + JSON.stringify(value) + '\\n\\n';
    const sealedOf = (context, value) => (value.secret ? { ...value, secret: context.seal(value.secret) } : value);
    api.dialect({
      name: 'tiny',
      request: { type: 'object', required: ['m', 'say'], properties: { m: { type: 'string' } } },
      response: { type: 'object' },
      routes: [{ path: '/tiny', summary: 'Tiny' }],
      keepAlive: ': tiny\\n\\n',
      read({ body }) {
        const content = body.image
          ? [{ type: 'image_url', image_url: { url: body.image } }]
          : body.say;
        const first = { role: 'assistant', content: 'x', reasoning_details: reasoning(body) };
        return {
          request: {
            model: body.m,
            messages: [...(body.sealed ? [first] : []), { role: 'user', content }],
            ...(body.hot !== undefined && { temperature: body.hot }),
            stream: body.stream === true,
          },
          dropped: ['nuance'],
          needs: [
            ...(body.file ? [{ kind: 'reference', name: 'file', param: 'file' }] : []),
            ...(body.only ? [{ kind: 'native', name: 'only', param: 'only' }] : []),
            ...(body.other ? [{ kind: 'model', name: body.other, param: 'other' }] : []),
          ],
          place: (param) => param.replace('temperature', 'hot').replace(/^messages\\[0\\]\\.content\\[0\\].*/, 'image'),
        };
      },
      write: (response) => ({ written: response.choices[0].message.content }),
      stream: () => ({
        push: (chunk) => (chunk.choices.length > 0 ? frame({ written: chunk.choices[0].delta.content ?? '' }) : ''),
        end: () => 'data: end\\n\\n',
        fail: (error) => frame({ failed: error.code }),
      }),
      native: {
        headers: ['x-tiny'],
        patch(body, { before, after, model, open }) {
          const hot = after.temperature !== before.temperature ? { hot: after.temperature } : {};
          const sealed = body.sealed ? { sealed: open(body.sealed) ?? null } : {};
          return { body: { ...body, m: model, ...hot, ...sealed } };
        },
        write: (body, context) => sealedOf(context, body),
        stream: (context) => ({
          push: ({ data }) => frame(sealedOf(context, JSON.parse(data))),
          end: () => '',
          fail: (error) => frame({ failed: error.code }),
        }),
      },
      error: (error) => ({ body: { tiny: error.code, at: error.param ?? null, message: error.message } }),
    });`,
});

/** Vendor with the format tiny, which returns the request it received. */
const VENDOR = pluginFile({
  name: 'vendor',
  kind: 'provider',
  more: `configSchema: { type: 'object', properties: { native: { type: 'boolean' }, references: { type: 'boolean' } } },`,
  setup: `
    const usage = { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 };
    const head = (call) => ({ id: call.id, created: call.created, model: call.model });
    const chunk = (call, delta, finish_reason = null) =>
      ({ ...head(call), object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason, logprobs: null }] });
    const codec = {
      request: (input) => {
        if (input.temperature === 2) throw new GatewayError('invalid_request', '\`temperature\` is too high here.', { param: 'temperature' });
        return { path: '/translated', body: { canonical: input } };
      },
      response: (body, call) => ({
        ...head(call), object: 'chat.completion', usage,
        choices: [{ index: 0, message: { role: 'assistant', content: 'said', refusal: null }, finish_reason: 'stop', logprobs: null }],
      }),
      stream(call) {
        let done = false;
        return {
          push({ data }) {
            const event = JSON.parse(data);
            if (event.text) return [chunk(call, { content: event.text })];
            if (event.bye) { done = true; return [chunk(call, {}, 'stop'), { ...chunk(call, {}), choices: [], usage }]; }
            return [];
          },
          end: () => ({ chunks: [], complete: done }),
        };
      },
    };
    const row = {
      path: '/native',
      headers: ({ 'x-tiny': tiny }) => ({ 'x-vendor': 'v1', ...(tiny && { 'x-tiny': tiny }) }),
      references: config.references === true,
    };
    api.provider({
      specVersion: 1, vendor: api.instance, baseUrl: 'http://127.0.0.1:1', anyModel: true, chat: codec,
      ...(config.native !== false && { native: () => ({ tiny: row }) }),
      error: () => ({ class: 'upstream_error', message: 'no' }),
      async transport(request) {
        const seen = { path: request.path, headers: request.headers ?? {}, body: request.body };
        const wantsStream = (request.body.canonical ?? request.body).stream === true;
        const events = [{ hello: 'unknown' }, { text: 'one' }, { text: 'two', secret: 'cipher' }, { bye: true, seen }];
        const text = wantsStream
          ? events.map((event) => 'data: ' + JSON.stringify(event) + '\\n\\n').join('')
          : JSON.stringify({ zebra: 1, seen, secret: 'cipher', alpha: 2 });
        return {
          status: 200,
          headers: { 'content-type': wantsStream ? 'text/event-stream' : 'application/json' },
          body: (async function* () { yield Buffer.from(text); })(),
        };
      },
    });`,
});

const FILES = { 'tiny.mjs': DIALECT, 'vendor.mjs': VENDOR };

function start(policy?: string): Promise<TestGateway> {
  return startGateway(
    {
      dialects: { tiny: { plugin: './tiny.mjs' } },
      providers: {
        one: { plugin: './vendor.mjs' },
        two: { plugin: './vendor.mjs', references: true },
        plain: { plugin: './vendor.mjs', native: false },
      },
      models: { both: ['plain/m', 'one/m'], readers: ['two/m', 'one/m'] },
      ...(policy && { policies: { probe: { plugin: './probe.mjs' } } }),
    },
    { files: { ...FILES, ...(policy && { 'probe.mjs': pluginFile({ setup: policy }) }) } },
  );
}

interface Reported {
  readonly seen: { path: string; headers: Record<string, string>; body: Record<string, unknown> };
  readonly secret: string;
}

describe('native passthrough', () => {
  let gateway: TestGateway;

  const post = async (body: object, headers: Record<string, string> = {}) => {
    const response = await gateway.post('/tiny', { say: 'hi', ...body }, headers);
    const text = await response.text();
    return {
      status: response.status,
      lane: response.headers.get('x-tollgate-lane'),
      dropped: response.headers.get('x-tollgate-dropped'),
      skipped: response.headers.get('x-tollgate-skipped'),
      text,
      json: () => JSON.parse(text) as Reported & Record<string, unknown>,
    };
  };

  describe('without active hooks', () => {
    before(async () => {
      gateway = await start();
    });
    after(() => gateway.stop());

    it('sends the caller’s own body with the model changed, with unknown fields and key order, and returns the vendor’s response', async () => {
      const { lane, dropped, text, json } = await post({ zulu: { deep: [1] }, m: 'one/m', alpha: true });
      expect([lane, dropped]).to.deep.equal(['native', null]);
      expect(JSON.stringify(json().seen.body)).to.equal('{"say":"hi","zulu":{"deep":[1]},"m":"m","alpha":true}');
      expect(json().seen.path).to.equal('/native');
      expect(text).to.match(/^\{"zebra":1,.*"alpha":2\}$/);
    });

    it('passes only the headers that the dialect and the provider name', async () => {
      const sent = { 'x-tiny': 'beta', cookie: 'a=b', 'x-forwarded-for': '10.0.0.1', 'openai-organization': 'o' };
      const { headers } = (await post({ m: 'one/m' }, sent)).json().seen;
      expect(headers).to.deep.equal({ 'x-vendor': 'v1', 'x-tiny': 'beta' });
    });

    it('passes the vendor’s events unchanged, unknown ones too, and counts them', async () => {
      const { lane, text } = await post({ m: 'one/m', stream: true });
      const events = text.split('\n\n').filter(Boolean);
      expect(lane).to.equal('native');
      expect(events.slice(0, 2)).to.deep.equal(['data: {"hello":"unknown"}', 'data: {"text":"one"}']);
      expect(events).to.have.length(4);
      const line = gateway.logs.filter(({ route }) => route === 'POST /tiny').at(-1);
      expect(line).to.include({ tokens_in: 2, tokens_out: 3 });
    });

    it('translates for a vendor without the dialect, and reports the loss', async () => {
      const whole = await post({ m: 'plain/m', zulu: 1 });
      expect([whole.lane, whole.dropped]).to.deep.equal(['translated', 'nuance']);
      expect(whole.json()).to.deep.equal({ written: 'said' });
      const stream = await post({ m: 'plain/m', stream: true });
      expect(stream.lane).to.equal('translated');
      expect(stream.text).to.equal(
        'data: {"written":"one"}\n\ndata: {"written":"two"}\n\ndata: {"written":""}\n\ndata: end\n\n',
      );
    });

    it('skips a target that cannot represent the request, and refuses it when no target is left', async () => {
      const skipped = await post({ m: 'both', hot: 2 });
      expect(skipped).to.include({ status: 200, lane: 'native', skipped: 'plain' });
      const refused = await post({ m: 'plain/m', hot: 2 });
      expect([refused.status, refused.json()]).to.deep.equal([
        400,
        { tiny: 'invalid_request', at: 'hot', message: '`hot` is too high here.' },
      ]);
    });

    it('refuses features of vendors with the dialect, and data in the operator’s account there', async () => {
      expect(await post({ m: 'one/m', only: true })).to.include({ status: 200, lane: 'native' });
      const only = await post({ m: 'plain/m', only: true });
      expect([only.status, only.json()['at']]).to.deep.equal([400, 'only']);
      const file = await post({ m: 'one/m', file: 'file_1' });
      expect([file.status, file.json()['at']]).to.deep.equal([400, 'file']);
      expect(await post({ m: 'two/m', file: 'file_1' })).to.include({ status: 200, lane: 'native' });
    });

    it('decrypts a sealed text only for its own deployment, tries that target first, and sends it to no other', async () => {
      const { secret } = (await post({ m: 'one/m' })).json();
      expect(secret).to.match(/^tg1\.one\..*\.cipher$/);
      const back = await post({ m: 'readers', sealed: secret });
      expect(back.json().seen.body['sealed']).to.equal('cipher');
      const two = await post({ m: 'two/m', sealed: secret });
      expect(two.json().seen.body['sealed']).to.equal(null);
      const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'other');
      const stolen = await post({ m: 'readers', sealed: secret }, { authorization: `Bearer ${key}` });
      expect(stolen.json().seen.body['sealed']).to.equal(null);
      const forged = await post({ m: 'one/m', sealed: secret.replace('cipher', 'other') });
      expect(forged.json().seen.body['sealed']).to.equal(null);
    });

    it('passes no image URL that is not https on a public host', async () => {
      for (const image of [
        'http://example.com/a.png',
        'https://127.0.0.1/a',
        'https://[::1]/a',
        'file:///etc/passwd',
        'https://box.internal/a',
      ])
        expect((await post({ m: 'one/m', image })).status, image).to.equal(400);
      const refused = await post({ m: 'one/m', image: 'https://10.1.2.3/a' });
      expect(refused.json()['at']).to.equal('image');
      expect((await post({ m: 'one/m', image: 'https://example.com/a.png' })).status).to.equal(200);
      expect((await post({ m: 'one/m', image: 'data:image/png;base64,AA==' })).status).to.equal(200);
    });

    it('checks a model that the vendor would call against the key’s list', async () => {
      const { api_key: key } = await gateway.command<{ api_key: string }>(
        'keys',
        'create',
        '--user',
        'u',
        '--models',
        'one/m',
      );
      const authorization = `Bearer ${key}`;
      expect((await post({ m: 'one/m', other: 'm' }, { authorization })).status).to.equal(200);
      expect((await post({ m: 'one/m', other: 'dear' }, { authorization })).status).to.equal(403);
    });
  });

  describe('with hooks', () => {
    afterEach(() => gateway.stop());

    it('stays native when a hook changes a field that the dialect can patch', async () => {
      gateway = await start(`api.hook('prepare', (call, request) => ({ ...request, temperature: 0.5 }));`);
      const { lane, json } = await post({ m: 'one/m', zulu: 1 });
      expect(lane).to.equal('native');
      expect(json().seen.body).to.deep.equal({ say: 'hi', zulu: 1, m: 'm', hot: 0.5 });
    });

    it('stays native when hooks only observe, and they see every chunk as the provider sent it', async () => {
      gateway = await start(`
        const seen = [];
        api.hook('receive', (call, response) => void seen.push(response.choices[0].message.content));
        api.hook('stream', () => ({ observes: true, push(chunk) { seen.push(chunk.usage?.total_tokens ?? chunk.choices[0].delta.content ?? chunk.choices[0].finish_reason); return [{ choices: [] }]; } }));
        api.hook('stream', () => ({ observes: true, push() { throw new Error('it cannot watch'); } }));
        api.route({ method: 'GET', path: '/seen', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = seen; } });`);
      expect((await post({ m: 'one/m' })).lane).to.equal('native');
      const stream = await post({ m: 'one/m', stream: true });
      expect(stream.lane).to.equal('native');
      expect(stream.text)
        .to.include('data: {"hello":"unknown"}')
        .and.to.include('"bye":true')
        .and.not.include('written');
      expect(await (await gateway.get('/seen')).json()).to.deep.equal(['said', 'one', 'two', 'stop', 5]);
      expect(gateway.logText()).to.include('it cannot watch');
    });

    it('is replaced by a translation when a hook changes anything else', async () => {
      gateway = await start(
        `api.hook('prepare', (call, request) => ({ ...request, messages: request.messages.map((m) => ({ ...m, content: 'changed' })) }));`,
      );
      expect(await post({ m: 'one/m' })).to.include({ lane: 'translated', text: '{"written":"said"}' });
    });

    it('is mixed when a hook changes the response, with and without a stream', async () => {
      gateway = await start(`
        api.hook('receive', (call, response) => ({ ...response, choices: response.choices.map((choice) => ({ ...choice, message: { ...choice.message, content: 'masked' } })) }));
        api.hook('stream', () => ({ push: (chunk) => [chunk] }));`);
      expect(await post({ m: 'one/m' })).to.include({ lane: 'mixed', text: '{"written":"masked"}' });
      const stream = await post({ m: 'one/m', stream: true });
      expect(stream.lane).to.equal('mixed');
      expect(stream.text).to.include('data: {"written":"one"}').and.to.include('data: end');
    });
  });
});
