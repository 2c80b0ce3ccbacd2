import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT } from '../support/vendors/bill-wires.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

describe('an alias that ends in *', () => {
  let first: ScriptedUpstream;
  let second: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    first = await startScriptedUpstream(respondWith(200, CHAT.whole({ usage: USAGE })));
    second = await startScriptedUpstream(respondWith(200, CHAT.whole({ usage: USAGE })));
    const provider = { plugin: 'openai-compatible', apiKey: 'k', models: ['*'] };
    gateway = await startGateway({
      providers: {
        one: { ...provider, baseUrl: first.url },
        two: { ...provider, baseUrl: second.url, models: ['claude-opus-5'] },
      },
      models: {
        'claude-*': 'one/*',
        'claude-haiku-*': ['two/claude-opus-5', 'one/anthropic.*'],
        'claude-haiku-3': 'one/llama',
        'old-*': { targets: ['one/new'], strategy: 'weighted' },
        'anthropic/*': 'one/*',
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await first?.close();
    await second?.close();
  });

  /** Vendor and model that a name resolves to; the status if no vendor got the request. */
  const arrived = async (model: string, headers: Record<string, string> = {}): Promise<string> => {
    const before = [first, second].map(({ requests }) => requests.length);
    const response = await gateway.post(CHAT.path, { ...CHAT.request, model }, headers);
    await response.text();
    const found = [first, second].flatMap(({ requests }, at) =>
      requests.slice(before[at]).map((request) => `${at + 1}/${(request.json() as { model: string }).model}`),
    );
    return found.join(' ') || String(response.status);
  };

  for (const [title, model, expected] of [
    ['stands for every name that begins so, and a * of its target is the name', 'claude-opus-5', '1/claude-opus-5'],
    ['gives way to one with a longer beginning', 'claude-haiku-5-5', '2/claude-opus-5'],
    ['gives way to an alias of the very name', 'claude-haiku-3', '1/llama'],
    ['may lead to one model', 'old-thing', '1/new'],
    ['leaves out what comes before its last slash', 'anthropic/claude-opus-5', '1/claude-opus-5'],
    ['means no name that begins otherwise', 'claud', '404'],
    ['never hides a model that names its provider', 'two/claude-opus-5', '2/claude-opus-5'],
    ['puts a name with signs of a replacement in as it is', 'claude-$&', '1/claude-$&'],
  ] as const)
    it(`${title} (E70)`, async () => {
      expect(await arrived(model)).to.equal(expected);
    });

  it('falls back to its next target with the name (E70)', async () => {
    second.script(respondWith(500, { error: { message: 'broken' } }));
    try {
      expect(await arrived('claude-haiku-5-5')).to.equal('1/anthropic.claude-haiku-5-5 2/claude-opus-5');
    } finally {
      second.script(respondWith(200, CHAT.whole({ usage: USAGE })));
    }
  });

  it('is not in the model list, and keys may be limited to its names (E70)', async () => {
    const { data } = (await (await gateway.get('/v1/models')).json()) as { data: readonly { id: string }[] };
    expect(data.map(({ id }) => id))
      .to.include('claude-haiku-3')
      .and.not.include('claude-*');
    const key = async (models: string) => {
      const { api_key } = await gateway.command<{ api_key: string }>(
        'keys',
        'create',
        '--user',
        'u',
        '--models',
        models,
      );
      return { authorization: `Bearer ${api_key}` };
    };
    const headers = await key('claude-opus-5');
    expect(await arrived('claude-opus-5', headers)).to.equal('1/claude-opus-5');
    expect(await arrived('claude-sonnet-5', headers)).to.equal('403');
  });
});
