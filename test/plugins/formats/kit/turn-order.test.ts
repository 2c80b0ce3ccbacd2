import { expect } from 'chai';
import fc from 'fast-check';
import { type ChatMessage, isGatewayError, type Plugin } from '../../../../contract/index.ts';
import anthropic from '../../../../plugins/providers/anthropic.ts';
import bedrock from '../../../../plugins/providers/bedrock.ts';
import gemini from '../../../../plugins/providers/gemini.ts';
import lmstudio from '../../../../plugins/providers/lmstudio.ts';
import mistral from '../../../../plugins/providers/mistral.ts';
import ollama from '../../../../plugins/providers/ollama.ts';
import openai from '../../../../plugins/providers/openai.ts';
import compatible from '../../../../plugins/providers/openai-compatible.ts';
import vllm from '../../../../plugins/providers/vllm.ts';
import { translate } from '../../../support/formats/translate.ts';
import { refusalOf, TEMPLATES } from '../../../support/vendors/chat-templates.ts';

const LOCAL = { baseUrl: 'http://127.0.0.1:8000/v1' };

const system = (content: ChatMessage['content']): ChatMessage => ({ role: 'system', content: content ?? null });
const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });
const call = (...ids: readonly string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
const result = (id: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'ok' });
const reminder = (text: string) => `<system-reminder>\n${text}\n</system-reminder>`;

const send = (messages: readonly ChatMessage[], turnOrder: object = {}, plugin: Plugin = vllm) => {
  const config = plugin === mistral ? { turnOrder } : { ...LOCAL, turnOrder };
  const { body, dropped } = translate(plugin, { messages }, config);
  return { messages: body['messages'] as readonly ChatMessage[], dropped };
};

describe('the order of turns', () => {
  for (const plugin of [compatible, vllm, lmstudio, ollama, mistral]) {
    it(`G1: ${plugin.name} gets leading system messages as one, and later ones in the next user turn`, () => {
      const { messages, dropped } = send(
        [
          system('One.'),
          { role: 'developer', content: 'Two.' },
          user('Hi'),
          assistant('Yes?'),
          system('Three.'),
          user('Go'),
        ],
        {},
        plugin,
      );
      expect(messages).to.deep.equal([
        { role: 'system', content: 'One.\n\nTwo.' },
        user('Hi'),
        assistant('Yes?'),
        user(`${reminder('Three.')}\n\nGo`),
      ]);
      expect(dropped).to.deep.equal(['messages.system']);
    });
  }

  it('G1: joining leading system messages loses nothing, and is not reported', () => {
    expect(send([system('One.'), system('Two.'), user('Hi')]).dropped).to.deep.equal([]);
  });

  it('G1: a system message with no user turn after it becomes one, at its place', () => {
    expect(send([user('Hi'), system('Now.')]).messages).to.deep.equal([user('Hi'), user(reminder('Now.'))]);
    expect(send([user('Hi'), system('Now.'), call('a'), result('a')]).messages.map(({ role }) => role)).to.deep.equal([
      ...['user', 'user', 'assistant', 'tool'],
    ]);
  });

  it('G1: a system message between a call and its results moves after all of them', () => {
    const { messages } = send([user('Hi'), call('a', 'b'), system('Now.'), result('a'), system('Then.'), result('b')]);
    expect(messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'tool', 'user']);
    expect(messages.at(-1)?.content).to.equal(`${reminder('Now.')}\n\n${reminder('Then.')}`);
  });

  it('G1: tags of the same name within a system message are escaped', () => {
    const [, joined] = send([
      user('Hi'),
      system('a </system-reminder> b <System-Reminder> c < / system-reminder>'),
    ]).messages;
    expect(joined?.content).to.equal(reminder('a &lt;/system-reminder> b &lt;System-Reminder> c < / system-reminder>'));
  });

  it('G1: parts and cache marks stay with their text', () => {
    const mark = { type: 'ephemeral' };
    const marked = system([{ type: 'text', text: 'Now.', cache_control: mark }]);
    const parts = [{ type: 'text', text: 'Go' }] as const;
    const { body } = translate(anthropic, { messages: [user('Hi'), marked, { role: 'user', content: parts }] });
    expect((body['messages'] as ChatMessage[])[0]?.content).to.deep.equal([
      { type: 'text', text: 'Hi' },
      { type: 'text', text: reminder('Now.'), cache_control: mark },
      { type: 'text', text: 'Go' },
    ]);
  });

  it('G1: `none` merges all, and `anywhere` changes nothing', () => {
    const messages = [system('One.'), user('Hi'), system('Two.'), user('Go')];
    expect(send(messages, { systemMessages: 'none' }).messages).to.deep.equal([
      user(`${reminder('One.')}\n\nHi`),
      user(`${reminder('Two.')}\n\nGo`),
    ]);
    expect(send(messages, { systemMessages: 'anywhere' })).to.deep.equal({ messages, dropped: [] });
  });

  it('G1: an operator’s rule for models wins over that for the provider, the longest name first', () => {
    const turnOrder = {
      systemMessages: 'none',
      models: {
        '*': { systemMessages: 'first' },
        qwen: { systemMessages: 'first' },
        'qwen-x': { systemMessages: 'anywhere' },
      },
    };
    const messages = [user('Hi'), system('Now.'), user('Go')];
    const rolesOf = (model: string) =>
      (translate(vllm, { messages, model }, { ...LOCAL, turnOrder }).body['messages'] as ChatMessage[]).map(
        ({ role }) => role,
      );
    expect(rolesOf('qwen-x-1')).to.deep.equal(['user', 'system', 'user']);
    expect(rolesOf('qwen-2')).to.deep.equal(['user', 'user']);
    expect(rolesOf('other')).to.deep.equal(['user', 'user']);
  });

  it('G1: OpenAI gets system messages at their place', () => {
    const messages = [system('One.'), user('Hi'), system('Two.'), user('Go')];
    expect(translate(openai, { messages, model: 'gpt-4o' })).to.deep.include({ dropped: [] });
    expect(translate(openai, { messages, model: 'gpt-4o' }).body['messages']).to.deep.equal(messages);
  });

  it('G1: Gemini, Bedrock and Claude get leading system messages as the system prompt, and later ones in place', () => {
    const messages = [system('One.'), system('Two.'), user('Hi'), assistant('Yes?'), system('Three.'), user('Go')];
    const google = translate(gemini, { messages });
    expect(google.body['systemInstruction']).to.deep.equal({ parts: [{ text: 'One.' }, { text: 'Two.' }] });
    expect((google.body['contents'] as object[]).at(-1)).to.deep.equal({
      role: 'user',
      parts: [{ text: `${reminder('Three.')}\n\nGo` }],
    });
    const amazon = translate(bedrock, { messages, model: 'amazon.nova-pro-v1:0' }, { region: 'eu-central-1' });
    expect(amazon.body['system']).to.deep.equal([{ text: 'One.' }, { text: 'Two.' }]);
    expect((amazon.body['messages'] as object[]).at(-1)).to.deep.equal({
      role: 'user',
      content: [{ text: `${reminder('Three.')}\n\nGo` }],
    });
    const claude = translate(anthropic, { messages, model: 'claude-sonnet-4-5' });
    expect(claude.body['system']).to.deep.equal([
      { type: 'text', text: 'One.' },
      { type: 'text', text: 'Two.' },
    ]);
    expect(claude.dropped).to.include('messages.system');
    expect((claude.body['messages'] as ChatMessage[]).at(-1)?.content).to.deep.equal([
      { type: 'text', text: `${reminder('Three.')}\n\nGo` },
    ]);
  });

  it('G1: a conversation that ends with an assistant’s turn gets a user turn, which is reported to the caller', () => {
    const { messages, dropped } = send([user('Hi'), assistant('I th')]);
    expect(messages.at(-1)).to.deep.equal(user('Continue.'));
    expect(dropped).to.deep.equal(['messages.prefix']);
    expect(send([user('Hi'), assistant('I th')], { lastRole: 'any' }).messages).to.have.length(2);
  });

  it('G1: a prefilled response stays last if the model continues it: at Mistral, by `continues`, by the caller’s own field', () => {
    const begun = [user('Hi'), assistant('I th')];
    expect(send(begun, {}, mistral).messages.at(-1)).to.deep.equal({ ...assistant('I th'), prefix: true });
    const lastOf = (fields: object, config: object = {}) =>
      (translate(vllm, { messages: begun, ...fields }, { ...LOCAL, ...config }).body['messages'] as ChatMessage[]).at(
        -1,
      );
    expect(lastOf({}, { continues: 'last_message' })).to.deep.equal(begun[1]);
    expect(lastOf({ messages: [user('Hi'), { ...assistant('I th'), prefix: true }] })?.role).to.equal('assistant');
    expect(lastOf({ continue_final_message: true })).to.deep.equal(begun[1]);
  });

  it('G1: `alternate` joins neighbours of one role, and bridges a result and the user turn after it', () => {
    const { messages } = send(
      [user('A'), user('B'), assistant('C'), assistant('D'), user('E'), call('a'), result('a'), user('F')],
      { alternate: true },
    );
    expect(messages.map(({ role, content }) => [role, content])).to.deep.equal([
      ['user', 'A\n\nB'],
      ['assistant', 'C\n\nD'],
      ['user', 'E'],
      ['assistant', null],
      ['tool', 'ok'],
      ['assistant', 'OK.'],
      ['user', 'F'],
    ]);
  });

  for (const model of ['mistralai/Mistral-Small-4', 'gemma-4-27b']) {
    it(`G1: ${model} at vllm gets alternating roles without an option`, () => {
      const { body } = translate(vllm, { model, messages: [user('A'), system('B')] }, LOCAL);
      expect(body['messages']).to.deep.equal([user(`A\n\n${reminder('B')}`)]);
    });
  }

  it('G1: an error names the place in the request that the caller sent', () => {
    const bad = { type: 'input_audio', input_audio: { data: '!', format: 'tar' } };
    const messages = [
      system('One.'),
      user('Hi'),
      system('Two.'),
      { role: 'user', content: [{ type: 'text', text: 'x' }, bad] },
    ];
    for (const plugin of [gemini, mistral])
      try {
        translate(plugin, { messages: plugin === mistral ? withFile(messages) : messages });
        expect.fail(`${plugin.name} took it`);
      } catch (thrown) {
        if (!isGatewayError(thrown)) throw thrown;
        expect(thrown.param).to.match(/^messages\[3\]\.content\[1\]/);
        expect(thrown.message).to.include('messages[3].content[1]');
      }
  });

  it('G1: a longer conversation begins with the bytes of the shorter one, so that caches hold', () => {
    fc.assert(
      fc.property(conversations, (turns) => {
        const sent = turns.map((_, at) => send(turns.slice(0, at + 1).flat()).messages);
        for (const [at, longer] of sent.entries()) {
          const shorter = sent[at - 1] ?? [];
          expect(JSON.stringify(longer.slice(0, shorter.length))).to.equal(JSON.stringify(shorter));
        }
      }),
    );
  });

  for (const template of TEMPLATES) {
    it(`G1: any conversation in order is accepted by the template of ${template}`, () => {
      fc.assert(
        fc.property(conversations, fc.boolean(), (turns, isLed) => {
          const messages = [...(isLed ? [system('One.'), system('Two.')] : []), ...turns.flat()];
          const { body } = translate(vllm, { messages, model: `${template}-1` }, LOCAL);
          expect(refusalOf(template, body)).to.equal(undefined);
        }),
      );
    });
  }
});

/** Exchanges as agents send them: each list ends at the end of a request. */
const exchange: fc.Arbitrary<readonly ChatMessage[]> = fc.oneof(
  fc.constant([user('Hi')]),
  fc.constant([user('Hi'), system('Now.')]),
  fc.constant([system('Now.'), user('Hi')]),
);
const step: fc.Arbitrary<readonly ChatMessage[]> = fc.oneof(
  fc.constant([assistant('Yes?'), user('Go')]),
  fc.constant([assistant('Yes?'), system('Now.'), user('Go')]),
  fc.constant([assistant('Yes?'), user('Go'), system('Now.')]),
  fc.constant([call('abcdefgh1'), result('abcdefgh1')]),
  fc.constant([call('abcdefgh1'), result('abcdefgh1'), system('Now.')]),
  fc.constant([call('abcdefgh1'), system('Now.'), result('abcdefgh1')]),
);
const conversations = fc
  .tuple(exchange, fc.array(step, { maxLength: 5 }))
  .map(([first, steps]): readonly (readonly ChatMessage[])[] => [first, ...steps]);

/** The same messages with a document, which Mistral rejects with its place. */
function withFile(messages: readonly object[]): readonly object[] {
  const file = { type: 'file', file: { file_data: 'data:application/zip;base64,AAAA' } };
  return [...messages.slice(0, 3), { role: 'user', content: [{ type: 'text', text: 'x' }, file] }];
}
