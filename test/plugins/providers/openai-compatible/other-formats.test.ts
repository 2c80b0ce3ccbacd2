/** Features of requests in other formats, as sent to vendors with OpenAI's format. */
import { expect } from 'chai';
import fc from 'fast-check';
import { type ChatRequest, isGatewayError, type Plugin } from '../../../../contract/index.ts';
import deepseek from '../../../../plugins/providers/deepseek.ts';
import mistral from '../../../../plugins/providers/mistral.ts';
import openai from '../../../../plugins/providers/openai.ts';
import compatible from '../../../../plugins/providers/openai-compatible.ts';
import openrouter from '../../../../plugins/providers/openrouter.ts';
import { messagesOf, translate } from '../../../support/formats/translate.ts';

const PDF = 'data:application/pdf;base64,JVBERi0=';
const TEXT = `data:text/plain;base64,${Buffer.from('Grüße').toString('base64')}`;
const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const image = { type: 'image_url', image_url: { url: PIXEL } };
const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } });
const user = (...content: readonly object[]) => [{ role: 'user', content }];
const file = (fields: object, more: object = {}) => ({ type: 'file', file: fields, ...more });
const fileOf = (plugin: Plugin, part: object, config: Readonly<Record<string, unknown>> = {}) =>
  (translate(plugin, { messages: user(part) }, config).body['messages'] as ChatRequest['messages'])[0]?.content;
const refusalOf = (send: () => unknown): string | undefined => {
  try {
    send();
  } catch (error) {
    if (isGatewayError(error)) return error.param;
    throw error;
  }
  return undefined;
};

describe('fields of other formats', () => {
  const foreign = {
    role: 'assistant',
    content: [{ type: 'text', text: 'x', annotations: [{}], dialect_fields: { messages: { a: 1 } } }],
    order: ['tool:0', 'content:0'],
    is_error: true,
    opaque: [{ type: 'opaque', dialect: 'messages', value: {} }],
    dialect_fields: { responses: { phase: 'final' } },
    reasoning_details: [{ kind: 'text', text: 'Hm', signature: 'SECRET', format: 'anthropic' }],
  };
  const vendors: readonly (readonly [string, Plugin, object])[] = [
    ['openai', openai, {}],
    ['deepseek', deepseek, { reasoning_content: 'Hm' }],
    ['mistral', mistral, {}],
    ['openrouter', openrouter, { reasoning: 'Hm' }],
  ];

  for (const [name, plugin, thought] of vendors)
    it(`do not reach ${name}, except a thought’s text if it is needed`, () => {
      const messages = [{ role: 'user', content: 'Hi' }, foreign, { role: 'user', content: 'So?' }];
      const sent = translate(plugin, { messages, dialect_fields: { messages: { betas: ['x'] } } });
      expect((sent.body['messages'] as object[])[1]).to.deep.equal({
        ...{ role: 'assistant', content: [{ type: 'text', text: 'x' }], ...thought },
      });
      expect(sent.body).not.to.have.property('dialect_fields');
      expect(sent.dropped).to.deep.equal(['reasoning']);
    });

  it('become text if they have a description, otherwise they are dropped and reported', () => {
    const value = { type: 'server_tool_use' };
    const reported = { type: 'opaque', dialect: 'messages', value, text: '[server_tool_use] {}' };
    const { body, dropped } = translate(openai, {
      messages: user({ type: 'text', text: 'x' }, reported, {
        type: 'opaque',
        dialect: 'messages',
        value: { type: 'magic' },
      }),
    });
    expect(body['messages']).to.deep.equal(
      user({ type: 'text', text: 'x' }, { type: 'text', text: '[server_tool_use] {}' }),
    );
    expect(dropped).to.deep.equal(['magic']);
  });

  it('that are tools are left out, and with the last one the choice of tools', () => {
    const tool = { type: 'function', function: { name: 'look' } };
    const opaque = { type: 'opaque', dialect: 'messages', value: {} };
    const both = { tools: [{ ...tool, dialect_fields: { messages: { defer_loading: true } } }, opaque] };
    expect(translate(openai, both).body['tools']).to.deep.equal([tool]);
    expect(translate(openai, { tools: [opaque], tool_choice: 'auto' }).body).not.to.have.any.keys(
      'tools',
      'tool_choice',
    );
  });
});

describe('a document', () => {
  it('is data with a name for OpenAI', () => {
    const sent = { type: 'file', file: { filename: 'document.pdf', file_data: PDF } };
    expect(fileOf(openai, file({ file_data: PDF }))).to.deep.equal([sent]);
  });

  it('is data or an address for OpenRouter and Mistral, in their own parts', () => {
    const url = 'https://files.example/a/report.pdf';
    expect(fileOf(openrouter, file({ file_url: url }))).to.deep.equal([
      { type: 'file', file: { filename: 'report.pdf', file_data: url } },
    ]);
    expect(fileOf(openrouter, file({ file_url: 'https://' }))).to.deep.equal([
      { type: 'file', file: { filename: 'document', file_data: 'https://' } },
    ]);
    expect(fileOf(mistral, file({ file_url: url, filename: 'R' }))).to.deep.equal([
      { type: 'document_url', document_url: url, document_name: 'R' },
    ]);
  });

  it('is refused by its place if the vendor does not support it', () => {
    for (const [plugin, fields] of [
      [openai, { file_url: 'https://files.example/a.pdf' }],
      [deepseek, { file_data: PDF }],
      [deepseek, { file_id: 'file-1' }],
      [openai, { file_data: 'data:application/zip;base64,UEs=' }],
      [openrouter, { file_url: 'http://files.example/a.txt' }],
      [mistral, { file_data: 'JVBERi0=' }],
    ] as const)
      expect(refusalOf(() => fileOf(plugin, file(fields)))).to.equal('messages[0].content[0].file');
  });

  it('becomes text everywhere if its content is text', () => {
    for (const plugin of [openai, deepseek, mistral, openrouter])
      expect(fileOf(plugin, file({ file_data: TEXT, filename: 'n.txt' }))).to.deep.equal([
        { type: 'text', text: 'Document "n.txt":\nGrüße' },
      ]);
    expect(fileOf(openai, file({ file_data: 'data:text/csv,a%2Cb' }))).to.deep.equal([
      { type: 'text', text: 'Document:\na,b' },
    ]);
  });

  it('is an image if it is one, and unchanged for a self-hosted server', () => {
    expect(fileOf(deepseek, file({ file_data: PIXEL }))).to.deep.equal([image]);
    const zip = file({ filename: 'z', file_data: 'data:application/zip;base64,UEs=' });
    expect(fileOf(compatible, zip, { baseUrl: 'http://127.0.0.1:1/v1' })).to.deep.equal([zip]);
  });

  it('is sent with the caller’s description, with a report that it will not be cited', () => {
    const part = file({ file_data: PDF, filename: 'a.pdf' }, { context: 'old', citations: { enabled: true } });
    const { body, dropped } = translate(openai, { messages: user(part) });
    expect((body['messages'] as ChatRequest['messages'])[0]?.content).to.deep.equal([
      { type: 'text', text: 'About the document "a.pdf": old' },
      file({ filename: 'a.pdf', file_data: PDF }),
    ]);
    expect(dropped).to.deep.equal(['citations']);
  });
});

describe('any content in the fields of other formats', () => {
  it('becomes a request or a refusal, never a crash', () => {
    const json = fc.jsonValue();
    const part = fc.oneof(
      fc.record({ type: fc.constantFrom('opaque', 'file', 'text', 'image_url'), text: json, file: json, value: json }),
      fc.record({ type: fc.constant('file'), file: fc.record({ file_data: fc.string(), file_url: fc.string() }) }),
      fc.record({
        type: fc.constant('file'),
        file: fc.record({ file_data: fc.string().map((text) => `data:${text}`) }),
      }),
    );
    const message = fc.record({
      role: fc.constantFrom('user', 'assistant', 'tool', 'system'),
      content: fc.oneof(fc.string(), fc.array(part)),
      tool_call_id: fc.string(),
      ...{ reasoning_details: json, thinking_blocks: json, order: json, cache_control: json, dialect_fields: json },
    });
    fc.assert(
      fc.property(
        fc.array(message),
        json,
        fc.constantFrom(openai, openrouter, mistral, deepseek),
        (list, mark, plugin) => {
          const messages = [{ role: 'user', content: 'Hi' }, ...list];
          refusalOf(() => translate(plugin, { messages, cache_control: mark, dialect_fields: mark }));
        },
      ),
    );
  });
});

describe('images in tools’ results', () => {
  const messages = [
    { role: 'user', content: 'Look' },
    { role: 'assistant', content: null, tool_calls: [call('call_one1'), call('call_two2')] },
    { role: 'tool', tool_call_id: 'call_one1', content: [{ type: 'text', text: 'a' }, image] },
    { role: 'tool', tool_call_id: 'call_two2', content: [image, file({ file_data: TEXT })] },
    { role: 'user', content: 'And?' },
  ];

  it('follow in one user message after all results of the turn, each under the name of its call', () => {
    expect(messagesOf(openai, messages).slice(2)).to.deep.equal([
      { role: 'tool', tool_call_id: 'call_one1', content: [{ type: 'text', text: 'a' }] },
      { role: 'tool', tool_call_id: 'call_two2', content: [{ type: 'text', text: 'Document:\nGrüße' }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Result of call call_one1:' },
          image,
          { type: 'text', text: 'Result of call call_two2:' },
          image,
        ],
      },
      { role: 'user', content: 'And?' },
    ]);
  });

  it('leave a placeholder if there is no text', () => {
    const [result, , last] = messagesOf(openai, [...messages.slice(0, 2), { ...messages[3], content: [image] }]).slice(
      2,
    );
    expect(result).to.include({ content: 'The result follows in the next user message.' });
    expect(last).to.equal(undefined);
  });

  it('are in one user turn after an assistant’s word at Mistral, which demands alternating roles', () => {
    const roles = messagesOf(mistral, messages).map(({ role }) => role);
    expect(roles).to.deep.equal(['user', 'assistant', 'tool', 'tool', 'assistant', 'user']);
  });
});

describe('G26: ids of calls', () => {
  it('that others refuse are hashed completely, the same in call and result', () => {
    const ids = ['functions.look:0', 'functions:look.0', `x${'y'.repeat(80)}`];
    for (const [plugin, valid] of [
      [openai, /^[A-Za-z0-9_-]{1,40}$/],
      [deepseek, /^[A-Za-z0-9_-]{1,64}$/],
      [mistral, /^[A-Za-z0-9]{9}$/],
    ] as const) {
      const sent = messagesOf(plugin, [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: null, tool_calls: ids.map(call) },
        ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'x' })),
      ]);
      const calls = ((sent[1]?.['tool_calls'] ?? []) as readonly { readonly id: string }[]).map(({ id }) => id);
      expect(new Set(calls).size).to.equal(3);
      for (const id of calls) expect(id).to.match(valid);
      expect(sent.slice(2).map(({ tool_call_id: id }) => id)).to.deep.equal(calls);
    }
  });
});

describe('G30: a history with calls and no tools', () => {
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
    ...['a', 'b'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'x' })),
  ];

  it('gets the tools that it called if the model needs them', () => {
    const { body } = translate(openrouter, { model: 'anthropic/claude-sonnet-5', messages });
    expect(body['tools']).to.deep.equal([
      { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } },
    ]);
  });

  it('stays without elsewhere', () => {
    expect(translate(openrouter, { model: 'openai/gpt-5', messages }).body).not.to.have.property('tools');
    expect(translate(openai, { messages }).body).not.to.have.property('tools');
  });
});

describe('G25: marks of a cache', () => {
  const mark = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } });
  const text = (words: string, more: object = {}) => ({ type: 'text', text: words, ...more });

  it('stay for OpenRouter, also those of a complete message or request', () => {
    const { body } = translate(openrouter, {
      ...mark('1h'),
      messages: [
        { role: 'system', content: 'Be brief', ...mark() },
        { role: 'user', content: [text('a'), text('b')], ...mark() },
      ],
    });
    expect(body['messages']).to.deep.equal([
      { role: 'system', content: [text('Be brief', mark())] },
      { role: 'user', content: [text('a'), text('b', mark())] },
    ]);
    // It would follow marks of five minutes.
    expect(body).to.deep.include(mark());
  });

  it('are four at most: the first, which conversations share, and the last three', () => {
    const { body } = translate(openrouter, {
      tools: [{ type: 'function', function: { name: 'f' }, ...mark('1h') }],
      messages: user(...['a', 'b', 'c', 'd', 'e'].map((words) => text(words, mark(words === 'd' ? '1h' : undefined)))),
    });
    expect((body['tools'] as object[])[0]).to.deep.include(mark('1h'));
    expect((body['messages'] as ChatRequest['messages'])[0]?.content).to.deep.equal([
      ...[text('a'), text('b'), text('c', mark()), text('d', mark()), text('e', mark())],
    ]);
  });

  it('of anything but this kind are left out', () => {
    const { body } = translate(openrouter, { messages: user(text('a', { cache_control: { type: 'other' } })) });
    expect(body['messages']).to.deep.equal(user(text('a')));
  });

  it('of a complete request are reported if the vendor supports none', () => {
    expect(translate(openai, mark()).dropped).to.deep.equal(['cache_control']);
  });
});
