import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, MESSAGES } from '../support/vendors/bill-wires.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const SYSTEM = 'You write for the town hall.';

describe('the parameters of an alias', () => {
  let chat: ScriptedUpstream;
  let claude: ScriptedUpstream;
  let gateway: TestGateway;
  const vendors = () => ({
    local: { plugin: 'openai-compatible', baseUrl: chat.url, apiKey: 'k', models: ['*'] },
    claude: { plugin: 'anthropic', baseUrl: claude.url, apiKey: 'k' },
  });

  before(async () => {
    chat = await startScriptedUpstream(respondWith(200, CHAT.whole({ usage: USAGE })));
    claude = await startScriptedUpstream(
      respondWith(200, MESSAGES.whole({ usage: { input_tokens: 1, output_tokens: 1 } })),
    );
    gateway = await startGateway({
      providers: vendors(),
      models: { smart: 'local/m', plain: 'local/m', 'old-*': 'local/*', opus: 'claude/claude-haiku-4-5' },
      policies: {
        'alias-parameters': {
          models: {
            smart: { reasoning_effort: 'high', temperature: 0.2, system: SYSTEM },
            'old-*': { temperature: 0, override: true },
            opus: { temperature: 0.3, system: SYSTEM },
            plain: { top_k: 5, chat_template_kwargs: { enable_thinking: false } },
            'local/own': { extra_body: { min_p: 0.1 }, seed: 7 },
          },
        },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await chat?.close();
    await claude?.close();
  });

  const sent = async (upstream: ScriptedUpstream, path: string, body: object) => {
    const response = await gateway.post(path, body);
    expect(response.status, await response.clone().text()).to.equal(200);
    return upstream.requests.at(-1)?.json() as Record<string, unknown> & { readonly messages: readonly unknown[] };
  };
  const USER = { role: 'user', content: 'Hi' };

  it('are sent if the caller sets nothing, the system message first (E70)', async () => {
    const body = await sent(chat, CHAT.path, {
      model: 'smart',
      messages: [{ role: 'system', content: 'Be brief.' }, USER],
    });
    expect(body).to.include({ model: 'm', reasoning_effort: 'high', temperature: 0.2 });
    expect(body.messages).to.deep.equal([{ role: 'system', content: `${SYSTEM}\n\nBe brief.` }, USER]);
  });

  it('G52: may be any field of a vendor, for an alias or a model, and the caller’s go first', async () => {
    const own = { top_k: 5, chat_template_kwargs: { enable_thinking: false } };
    expect(await sent(chat, CHAT.path, { model: 'plain', messages: [USER] })).to.deep.include(own);
    expect(await sent(chat, CHAT.path, { model: 'plain', messages: [USER], top_k: 9 })).to.include({ top_k: 9 });
    expect(await sent(chat, CHAT.path, { model: 'local/own', messages: [USER] })).to.include({ min_p: 0.1, seed: 7 });
    expect(await sent(chat, CHAT.path, { model: 'local/other', messages: [USER] })).to.not.have.any.keys(
      'min_p',
      'seed',
    );
  });

  it('G52: may not be what only the caller sets', async () => {
    for (const field of ['model', 'messages', 'stream', 'tools']) {
      const started = startGateway({
        providers: vendors(),
        models: { smart: 'local/m' },
        policies: { 'alias-parameters': { models: { smart: { [field]: 'x' } } } },
      });
      const problem = await started.then(
        (one) => one.stop().then(() => ''),
        (error: Error) => error.message,
      );
      expect(problem).to.include(field);
    }
  });

  it('are overridden by the caller’s, unless the alias enforces them (E70)', async () => {
    const said = { temperature: 0.9, messages: [USER] };
    expect(await sent(chat, CHAT.path, { ...said, model: 'smart' })).to.include({
      temperature: 0.9,
      reasoning_effort: 'high',
    });
    expect(await sent(chat, CHAT.path, { ...said, model: 'old-model' })).to.include({
      temperature: 0,
      model: 'old-model',
    });
  });

  it('apply only to that alias (E70)', async () => {
    for (const model of ['plain', 'local/smart', 'local/m']) {
      const body = await sent(chat, CHAT.path, { model, messages: [USER] });
      expect(body.messages, model).to.deep.equal([USER]);
      expect(body, model).to.not.have.any.keys('temperature', 'reasoning_effort');
    }
    const body = await sent(chat, '/api/core/local/chat/completions', { model: 'm', messages: [USER] });
    expect(body.messages).to.deep.equal([USER]);
  });

  it('are sent in the Messages format too, with the rest of the request unchanged (E70)', async () => {
    const metadata = { user_id: 'u' };
    const body = await sent(claude, '/v1/messages', {
      ...{ model: 'opus', max_tokens: 100, system: 'Be brief.', metadata, messages: [USER] },
    });
    expect(body).to.deep.include({ temperature: 0.3, metadata });
    expect(JSON.stringify(body['system'])).to.match(/town hall.*Be brief/);
  });

  it('are refused at start for a name that is not an alias (E70)', async () => {
    const models = { smrt: { temperature: 0 } };
    const error = await startGateway({
      providers: vendors(),
      models: { smart: 'local/m' },
      policies: { 'alias-parameters': { models } },
    }).then(
      (started) => started.stop().then(() => 'started'),
      (thrown: unknown) => String(thrown),
    );
    expect(error).to.include('smrt').and.include('is not an alias in "models"').and.include('Aliases: smart');
  });
});
