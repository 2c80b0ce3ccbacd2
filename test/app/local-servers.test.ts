import { expect } from 'chai';
import OpenAI from 'openai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const REQUEST = { model: 'local/qwq', messages: [{ role: 'user' as const, content: 'How many?' }] };
const USAGE = { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 };
const HEAD = { id: 'c', created: 1, model: 'qwq' };

/** [text of the server, its thinking, the remaining text] */
const SAID = [
  ['<think>\nTwo and two.\n</think>\n\nFour.', '\nTwo and two.\n', 'Four.'],
  ['  <think>Hm < 5, </thin k></think>Four.', 'Hm < 5, </thin k>', 'Four.'],
  ['<think>cut off', 'cut off', ''],
  ['<thin air> is four.', undefined, '<thin air> is four.'],
  ['The tag <think>x</think> is HTML.', undefined, 'The tag <think>x</think> is HTML.'],
  ['<', undefined, '<'],
] as const;

describe('a self-hosted server', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    upstream = await startScriptedUpstream();
    const local = { plugin: 'openai-compatible', baseUrl: upstream.url, models: ['*'] };
    gateway = await startGateway({ providers: { local } });
    client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  /** Sends the content whole, or one character per event. */
  function say(content: string, isStream: boolean, reason = 'stop', isRead = Promise.resolve()): void {
    if (!isStream) {
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: reason }];
      upstream.script(respondWith(200, { ...HEAD, object: 'chat.completion', choices, usage: USAGE }));
      return;
    }
    const event = (delta: object, finish_reason: string | null) =>
      chunk(
        `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      );
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(event({ role: 'assistant', content: '' }, null));
      for (const letter of content) await wire.send(event({ content: letter }, null));
      await isRead;
      await wire.send(event({}, reason));
      await wire.send(chunk(`data: ${JSON.stringify({ ...HEAD, choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`));
      await wire.send(LAST_CHUNK);
    });
  }

  type Spoken = { readonly content?: string | null; readonly reasoning_content?: string };

  for (const [content, reasoning, words] of SAID) {
    it(`has its thinking in "${content.replaceAll('\n', ' ')}" separated (E20)`, async () => {
      say(content, false);
      const { choices } = await client.chat.completions.create(REQUEST);
      const message = choices[0]?.message as Spoken;
      expect([message.reasoning_content, message.content]).to.deep.equal([reasoning, words]);
    });

    it(`has its thinking in a stream of "${content.replaceAll('\n', ' ')}" separated (E20)`, async () => {
      say(content, true);
      let [reported, said] = ['', ''];
      for await (const { choices } of await client.chat.completions.create({ ...REQUEST, stream: true })) {
        const { reasoning_content: more = '', content: further } = (choices[0]?.delta ?? {}) as Spoken;
        reported += more;
        said += further ?? '';
      }
      expect([reported, said]).to.deep.equal([reasoning ?? '', words]);
    });
  }

  it('does not complete a response with a finish reason for a failure (E19)', async () => {
    say('Half of a', false, 'network_error');
    const whole = await client.chat.completions.create(REQUEST).catch((error: unknown) => error);
    expect(whole).to.be.instanceOf(OpenAI.APIError).with.property('status', 503);
    let [said, markRead] = ['', (): void => {}];
    const isRead = new Promise<void>((resolve) => {
      markRead = resolve;
    });
    say('Half of a', true, 'network_error', isRead);
    const read = async () => {
      for await (const { choices } of await client.chat.completions.create({ ...REQUEST, stream: true })) {
        expect(choices[0]?.finish_reason ?? null).to.equal(null);
        said += choices[0]?.delta.content ?? '';
        if (said === 'Half of a') markRead();
      }
    };
    const thrown = await read().catch((error: unknown) => error);
    expect(said).to.equal('Half of a');
    expect(String(thrown)).to.include('network_error');
  });
});
