import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { MINI_FILES } from '../support/plugins/mini-dialect.ts';
import { chatOf, pluginFile, startError } from '../support/plugins/plugin-file.ts';

/** Agent that calls the model named in its request. */
const CALLER = pluginFile({
  setup: `
    api.route({ method: 'POST', path: '/call', summary: 'x', auth: ['key'], responses: { 200: 'x' }, body: { type: 'object' },
      async handler(ctx) {
        const { principal, requestId, body } = ctx.state;
        ctx.body = await api.chat(body, { principal, requestId });
      } });`,
});

const MODELS_OF = {
  mine: 'local/small',
  ready: ['openai/gpt-5', 'local/small'],
  dead: 'openai/gpt-5',
  smart: 'local/small',
};

describe('the names of models', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        dialects: { mini: { plugin: './mini.mjs', models: MODELS_OF } },
        providers: {
          echo: {},
          // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration
          openai: { apiKey: '${OPENAI_API_KEY}' },
          local: { plugin: 'echo', models: ['small', 'gpt-5', 'both'] },
          other: { plugin: 'echo', models: ['both', 'local/small'] },
          any: { plugin: 'openai-compatible', baseUrl: 'http://127.0.0.1:1', models: ['*'] },
        },
        models: { smart: 'echo/echo', small: 'echo/echo' },
        policies: { probe: { plugin: './probe.mjs' } },
      },
      { files: { ...MINI_FILES, 'probe.mjs': CALLER } },
    );
  });
  after(() => gateway?.stop());

  const send = async (path: string, model: string) => {
    const response = await gateway.post(path, { ...chatOf('hi'), model, m: model, say: 'hi' });
    const { error } = (await response.clone().json()) as { error?: { code: string; message: string } };
    const { headers } = response;
    return error
      ? `${response.status} ${error.message}`
      : `${headers.get('x-tollgate-provider')}/${headers.get('x-tollgate-model')}`;
  };

  it('may omit the provider at /v1, if one provider with a key lists them', async () => {
    const chat = '/v1/chat/completions';
    expect(await send(chat, 'echo')).to.equal('echo/echo');
    expect(await send(chat, 'gpt-5'), 'openai lists it too, and has no key').to.equal('local/gpt-5');
    expect(await send(chat, 'gpt-5-2026-01-01')).to.equal('local/gpt-5-2026-01-01');
    expect(await send('/v1/embeddings', 'echo-embedding')).to.match(/^(echo|400)/);
  });

  it('that several providers list are 404 with the name of each', async () => {
    expect(await send('/v1/chat/completions', 'both')).to.equal(
      '404 More than one provider has a model "both". Use "local/both" or "other/both".',
    );
  });

  it('that no provider lists are 404 with similar ones, although a provider accepts any', async () => {
    expect(await send('/v1/chat/completions', 'bth')).to.match(
      /^404 The model "bth" does not exist.*Did you mean "(local|other)\/both"/,
    );
    expect(await send('/v1/chat/completions', 'gpt-5-nano-x')).to.match(/^404 The model/);
  });

  it('resolve to a provider and model first, then to aliases of the format, then of the configuration', async () => {
    expect(await send('/v1/chat/completions', 'local/small'), 'another provider lists the whole text').to.equal(
      'local/small',
    );
    expect(await send('/v1/chat/completions', 'smart')).to.equal('echo/echo');
    expect(await send('/v1/chat/completions', 'small'), 'an alias before a bare name').to.equal('echo/echo');
    expect(await send('/mini/chat', 'smart')).to.equal('local/small');
    expect(await send('/mini/chat', 'mine')).to.equal('local/small');
    expect(await send('/mini/chat', 'small')).to.equal('echo/echo');
    expect(await send('/v1/chat/completions', 'mine')).to.match(/^404/);
  });

  it('mean the same in a plugin’s own call', async () => {
    const { choices, model } = (await (await gateway.post('/call', chatOf('hi', { model: 'gpt-5' }))).json()) as {
      choices: unknown[];
      model: string;
    };
    expect(choices).to.have.length(1);
    expect(model).to.equal('gpt-5');
  });

  it('are checked against the key’s list, by alias and by target', async () => {
    const { api_key: key } = await gateway.command<{ api_key: string }>(
      ...['keys', 'create', '--user', 'u', '--models', 'local/small'],
    );
    const status = async (path: string, m: string) =>
      (await gateway.post(path, { ...chatOf('x'), m, say: 'x', model: m }, { authorization: `Bearer ${key}` })).status;
    expect(await status('/mini/chat', 'mine')).to.equal(200);
    expect(await status('/v1/chat/completions', 'gpt-5')).to.equal(403);
    expect(await status('/v1/chat/completions', 'smart')).to.equal(403);
  });

  describe('in lists', () => {
    const read = async (path: string, headers: Record<string, string> = {}) => {
      const response = await gateway.get(path, headers);
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const idsOf = ({ body }: { body: Record<string, unknown> }) =>
      (body['all'] as { mini: string }[]).map(({ mini }) => mini);

    it('of a client’s format have its aliases, and only what can be called', async () => {
      const ids = idsOf(await read('/mini/models'));
      expect(ids).to.include.members(['smart', 'small', 'mine', 'ready', 'echo/echo', 'local/small']);
      expect(ids).not.to.include.members(['dead']);
      expect(ids.filter((id) => id.startsWith('openai/'))).to.deep.equal([]);
    });

    it('have the format whose header the client sends, with the query', async () => {
      const { body } = await read('/v1/models?limit=2', { 'mini-version': '1' });
      expect(body).to.deep.equal({
        all: [
          { mini: 'smart', by: 'tollgate', window: null },
          { mini: 'small', by: 'tollgate', window: 1_000_000 },
        ],
        last: false,
      });
      expect((await read('/v1/models?limit=2')).body['object']).to.equal('list');
      expect(JSON.stringify((await read('/v1/models')).body)).not.to.include('"mine"');
    });

    it('show one model in the format, and return 404 for another one in it', async () => {
      const row = { mini: 'mine', by: 'tollgate', window: null };
      expect((await read('/mini/models/mine')).body).to.deep.equal(row);
      expect((await read('/v1/models/mine', { 'mini-version': '1' })).body).to.deep.equal(row);
      expect((await read('/v1/models/local/small', { 'mini-version': '1' })).body['mini']).to.equal('local/small');
      const missing = await read('/v1/models/dead', { 'mini-version': '1' });
      expect(missing.status).to.equal(404);
      expect(missing.body['mini']).to.equal('unsupported_model');
      expect((await read('/v1/models/mine')).body).to.have.nested.property('error.code', 'unsupported_model');
    });

    it('refuse a caller without a key in the format', async () => {
      const response = await fetch(`${gateway.url}/v1/models`, { headers: { 'mini-version': '1' } });
      expect(response.status).to.equal(401);
      expect(await response.json()).to.have.property('mini', 'missing_api_key');
    });
  });

  it('of a format’s aliases must have configured targets', async () => {
    const starts = (models: object) =>
      startError(startGateway({ dialects: { mini: { plugin: './mini.mjs', models } } }, { files: MINI_FILES }));
    expect(await starts({ mine: 'ehco/echo' }))
      .to.include('dialects.mini.models.mine')
      .and.include('ehco');
    expect(await starts({ mine: ['echo/echo', 'smart'] })).to.include('must be "provider/model"');
  });
});
