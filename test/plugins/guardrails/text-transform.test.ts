import { expect } from 'chai';
import fc from 'fast-check';
import type { ChatChunk, ChatDelta, ChatRequest, ChatResponse } from '../../../contract/index.ts';
import { type TextTransformOptions, textTransform } from '../../../plugins/guardrails/kit/index.ts';

const ORION: TextTransformOptions = { hold: 5, find: /orion/gi, replace: () => '<star>' };

const HEAD = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' } as const;
const chunkOf = (delta: ChatDelta, index = 0): ChatChunk => ({
  ...HEAD,
  choices: [{ index, delta, finish_reason: null, logprobs: { content: [{ token: 'Ori' }] } }],
});
const responseOf = (message: object): ChatResponse => ({
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
  choices: [
    {
      ...{ index: 0, finish_reason: 'stop', logprobs: null },
      message: { role: 'assistant', content: null, refusal: null, ...message },
    },
  ],
});
const requestOf = (messages: ChatRequest['messages'], rest: object = {}): ChatRequest => ({
  model: 'm',
  messages,
  ...rest,
});

interface Joined {
  content: string;
  reasoning: string;
  refusal: string;
  readonly tools: Record<number, string>;
}

/** Combines chunks by choice as a client does. */
function join(chunks: readonly ChatChunk[]): Readonly<Record<number, Joined>> {
  const joined: Record<number, Joined> = {};
  for (const { choices } of chunks)
    for (const { index, delta } of choices) {
      joined[index] ??= { content: '', reasoning: '', refusal: '', tools: {} };
      const choice = joined[index];
      choice.content += delta.content ?? '';
      choice.reasoning += delta.reasoning_content ?? '';
      choice.refusal += delta.refusal ?? '';
      for (const call of delta.tool_calls ?? [])
        choice.tools[call.index] = (choice.tools[call.index] ?? '') + (call.function?.arguments ?? '');
    }
  return joined;
}

function streamed(chunks: readonly ChatChunk[], options: TextTransformOptions = ORION): readonly ChatChunk[] {
  const stream = textTransform(options).stream();
  const out = chunks.flatMap((chunk) => [...(stream.push(chunk) as readonly ChatChunk[])]);
  return [...out, ...((stream.end?.() ?? []) as readonly ChatChunk[])];
}

const whole = (message: object): string | null | undefined =>
  textTransform(ORION).response(responseOf(message))?.choices[0]?.message.content;

describe('a text transform', () => {
  it('E62: finds a match in every choice, reasoning, refusal and argument of a tool, wherever a stream cuts it', () => {
    const bits = ['the or', 'i', 'on ', 'shines on OR', 'ION'];
    const tool = ['{"at":"o', 'rio', 'n","n":1}'];
    const chunks = [0, 1].flatMap((index) => [
      ...bits.map((bit) => chunkOf({ reasoning_content: bit }, index)),
      ...bits.map((bit) => chunkOf({ content: bit }, index)),
      ...bits.map((bit) => chunkOf({ refusal: bit }, index)),
      chunkOf(
        { tool_calls: [{ index: 0, id: 't', type: 'function', function: { name: 'look', arguments: '' } }] },
        index,
      ),
      ...tool.map((bit) => chunkOf({ tool_calls: [{ index: 0, function: { arguments: bit } }] }, index)),
    ]);
    const text = 'the <star> shines on <star>';
    const expected = { content: text, reasoning: text, refusal: text, tools: { 0: '{"at":"<star>","n":1}' } };
    expect(join(streamed(chunks))).to.deep.equal({ 0: expected, 1: expected });
    expect(JSON.stringify(streamed(chunks))).to.not.match(/ori/i);
  });

  it('separates two interleaved choices', () => {
    const chunks = ['o', 'ri', 'on'].flatMap((bit) => [chunkOf({ content: bit }, 0), chunkOf({ content: bit }, 1)]);
    expect(join(streamed(chunks))).to.deep.include({ 1: { content: '<star>', reasoning: '', refusal: '', tools: {} } });
  });

  it('E62: gives a stream the same text as a JSON response, for any text in any pieces', () => {
    const text = fc
      .array(fc.constantFrom('orion', 'or', 'ion', 'ORIO', 'n', ' ', '🌟', 'é', '\ud83c', '"', '\\'))
      .map((all) => all.join(''));
    fc.assert(
      fc.property(fc.array(text, { maxLength: 20 }), (pieces) => {
        const all = pieces.join('');
        const out = streamed(pieces.map((content) => chunkOf({ content })));
        expect(join(out)[0]?.content ?? '').to.equal(whole({ content: all }) ?? all);
      }),
    );
  });

  it('returns the arguments of a tool as equivalent JSON, for any value in any pieces', () => {
    const word = fc.constantFrom('orion', 'or"ion', 'Orion\n', 'é🌟', 'x\\', '');
    const value = fc.dictionary(word, fc.oneof(word, fc.integer(), fc.array(word), fc.boolean()));
    fc.assert(
      fc.property(value, fc.integer({ min: 1, max: 9 }), fc.boolean(), (given, size, isEscaped) => {
        const plain = JSON.stringify(given);
        const json = isEscaped ? plain.replace(/[io]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`) : plain;
        fc.pre(!isEscaped || !/true|false/.test(plain));
        const pieces = json.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? [];
        const out = streamed(
          pieces.map((text) => chunkOf({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
        );
        const expected = JSON.parse(plain.replaceAll(/orion/gi, '<star>')) as unknown;
        expect(JSON.parse(join(out)[0]?.tools[0] ?? '')).to.deep.equal(expected);
        const call = { id: 't', type: 'function', function: { name: 'look', arguments: json } };
        const message = textTransform(ORION).response(responseOf({ tool_calls: [call] }))?.choices[0]?.message;
        expect(JSON.parse(message?.tool_calls?.[0]?.function.arguments ?? json)).to.deep.equal(expected);
      }),
    );
  });

  it('converts a number to a string if it replaces a part of it', () => {
    const numbers: TextTransformOptions = { hold: 4, find: /4242/g, replace: () => 'N' };
    const pieces = ['{"a":42', '42,"b":[1', '2,4242]}'];
    const out = streamed(
      pieces.map((text) => chunkOf({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
      numbers,
    );
    expect(JSON.parse(join(out)[0]?.tools[0] ?? '')).to.deep.equal({ a: 'N', b: [12, 'N'] });
  });

  it('holds back no more than it must, and nothing of one block when the next begins', () => {
    const stream = textTransform(ORION).stream();
    const first = stream.push(chunkOf({ content: '0123456789' })) as readonly ChatChunk[];
    expect(join(first)[0]?.content).to.equal('01234');
    const next = stream.push(
      chunkOf({ tool_calls: [{ index: 0, id: 't', type: 'function', function: { name: 'look', arguments: '' } }] }),
    ) as readonly ChatChunk[];
    expect(next.map(({ choices }) => Object.keys(choices[0]?.delta ?? {}))).to.deep.equal([
      ['content'],
      ['tool_calls'],
    ]);
    expect(join(next)[0]?.content).to.equal('56789');
  });

  it('removes log probabilities, which spell the words', () => {
    const [chunk] = streamed([chunkOf({ content: 'a very long text' })]);
    expect(chunk?.choices[0]?.logprobs).to.equal(null);
    const response = responseOf({ content: 'plain' });
    const spelt = {
      ...response,
      choices: response.choices.map((choice) => ({ ...choice, logprobs: { content: [] } })),
    };
    expect(textTransform(ORION).response(spelt)?.choices[0]?.logprobs).to.equal(null);
  });

  it('removes the signature only from changed reasoning', () => {
    const detail = (text: string) => ({ kind: 'text' as const, text, signature: 's', format: 'anthropic' });
    const [chunk] = streamed([chunkOf({ reasoning_details: [detail('of orion'), detail('of the sun')] })]);
    expect(chunk?.choices[0]?.delta.reasoning_details).to.deep.equal([
      { kind: 'text', text: 'of <star>', format: 'anthropic' },
      detail('of the sun'),
    ]);
  });

  it('processes all texts of a request, except identifiers', () => {
    const call = {
      id: 'orion',
      type: 'function' as const,
      function: { name: 'look', arguments: '{"q":"\\u006frion"}' },
    };
    const request = requestOf(
      [
        { role: 'system', content: 'Orion.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Orion?' },
            { type: 'opaque', dialect: 'messages', value: { deep: ['orion'] } },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'orion', content: 'It is Orion' },
      ],
      {
        user: 'orion',
        metadata: { a: 'orion' },
        tools: [{ type: 'function', function: { name: 'look', description: 'of orion' } }],
      },
    );
    const changed = textTransform(ORION).request(request);
    expect(JSON.stringify(changed).match(/orion/gi)).to.have.length(2);
    expect(changed?.messages[2]?.tool_calls?.[0]).to.deep.include({ id: 'orion' });
    expect(changed?.messages[2]?.tool_calls?.[0]?.function).to.deep.equal({
      name: 'look',
      arguments: '{"q":"<star>"}',
    });
  });

  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
  const files: readonly (readonly [title: string, part: (text: string) => object])[] = [
    ['a data URL in base64', (text) => ({ file: { file_data: `data:text/plain;base64,${base64(text)}` } })],
    ['a data URL with a charset', (text) => ({ file_url: `data:text/csv;charset=utf-8;base64,${base64(text)}` })],
    ['a plain-text source', (text) => ({ source: { type: 'text', media_type: 'text/plain', data: text } })],
    ['a source in base64', (text) => ({ source: { type: 'base64', media_type: 'text/html', data: base64(text) } })],
    ['inline data', (text) => ({ inlineData: { mimeType: 'application/json', data: base64(text) } })],
    ['base64 without a media type', (text) => ({ file: { filename: 'a.txt', file_data: base64(text) } })],
    ['base64 of another media type', (text) => ({ inlineData: { mimeType: 'application/x-sh', data: base64(text) } })],
    ['plain text where base64 belongs', (text) => ({ file: { filename: 'a.txt', file_data: text } })],
    ['a data URL in percent signs', (text) => ({ file_url: `data:,${encodeURIComponent(text)}` })],
    [
      'UTF-16 with a byte order mark',
      (text) => ({ source: { media_type: 'text/plain', data: utf16(`\ufeff${text}`).toString('base64') } }),
    ],
    [
      'UTF-16 of the other byte order',
      (text) => ({ source: { media_type: 'text/plain', data: utf16(`\ufeff${text}`).swap16().toString('base64') } }),
    ],
    [
      'UTF-16 that only its charset names',
      (text) => ({ file_url: `data:text/plain;charset=utf-16le;base64,${utf16(text).toString('base64')}` }),
    ],
    ['UTF-16 without a mark', (text) => ({ file: { file_data: utf16(text).toString('base64') } })],
  ];
  for (const [title, part] of files)
    it(`G66: finds a text in ${title}, and codes it again`, () => {
      const of = (text: string) => requestOf([{ role: 'user', content: [{ type: 'file', ...part(text) }] as never }]);
      expect(textTransform(ORION).request(of('é Orion.'))).to.deep.equal(of('é <star>.'));
      expect(textTransform(ORION).request(of('é sun.'))).to.equal(undefined);
    });

  it('G66: leaves binary files and addresses', () => {
    const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0]), Buffer.from('orion')]);
    const source = { type: 'base64', media_type: 'image/png', data: png.toString('base64') };
    const content = [
      { type: 'image', source },
      { type: 'image_url', image_url: { url: 'https://a.example/orion' } },
    ];
    expect(textTransform(ORION).request(requestOf([{ role: 'user', content: content as never }]))).to.equal(undefined);
  });

  it('G66: replaces the name of a participant', () => {
    const of = (name: string) => requestOf([{ role: 'user', name, content: 'Hi' } as never]);
    const star = textTransform({ ...ORION, replace: () => '[STAR]' });
    expect(star.request(of('orion'))).to.deep.equal(of('[STAR]'));
    expect(star.request(of('sun'))).to.equal(undefined);
  });

  it('G66: refuses a name of a participant that vendors would not take', () => {
    const request = requestOf([{ role: 'user', name: 'orion', content: 'Hi' } as never]);
    expect(() => textTransform(ORION).request(request)).to.throw('messages[0].name');
  });

  const parameters = (own: object) => [{ type: 'function', function: { name: 'f', parameters: own } }];
  const names: readonly (readonly [path: string, request: object])[] = [
    ['tools[0].function.name', { tools: [{ type: 'function', function: { name: 'orion' } }] }],
    ['tools[0].function.parameters.properties.orion', { tools: parameters({ properties: { orion: {} } }) }],
    ['tools[0].function.parameters.required[0]', { tools: parameters({ required: ['orion'] }) }],
    [
      'tools[0].function.parameters.properties.a.pattern',
      { tools: parameters({ properties: { a: { pattern: 'orion' } } }) },
    ],
    ['tools[0].function.parameters.$defs.orion', { tools: parameters({ $defs: { orion: {} } }) }],
  ];
  for (const [path, rest] of names)
    it(`G66: refuses a request with a match in the name at ${path}`, () => {
      expect(() => textTransform(ORION).request(requestOf([], rest)))
        .to.throw('names cannot be replaced')
        .that.includes({ code: 'content_filtered', param: path });
    });

  it('G66: replaces descriptions, also of properties that are called as a field that is exempt', () => {
    const own = (text: string) =>
      requestOf([], {
        tools: parameters({ properties: { data: { description: text }, type: { description: text } } }),
      });
    expect(textTransform(ORION).request(own('orion'))).to.deep.equal(own('<star>'));
  });

  it('returns undefined if nothing changed', () => {
    const call = { id: 't', type: 'function' as const, function: { name: 'f', arguments: '{"a":"\\u00e9"}' } };
    expect(textTransform(ORION).request(requestOf([{ role: 'assistant', tool_calls: [call] }]))).to.equal(undefined);
    expect(textTransform(ORION).response(responseOf({ content: 'of the sun', tool_calls: [call] }))).to.equal(
      undefined,
    );
  });

  it('reports the place of a match, the same for a stream and a JSON response', () => {
    const places = new Set<string>();
    const options: TextTransformOptions = {
      ...ORION,
      replace: (text, { side, path }) => places.add(`${side} ${path}`) && text,
    };
    const transform = textTransform(options);
    const call = { id: 't', type: 'function' as const, function: { name: 'f', arguments: '"orion"' } };
    transform.request(requestOf([{ role: 'user', content: [{ type: 'text', text: 'orion' }] }]));
    transform.response(responseOf({ content: 'orion', tool_calls: [call] }));
    streamed(
      [chunkOf({ content: 'orion' }), chunkOf({ tool_calls: [{ index: 0, function: { arguments: '"orion"' } }] })],
      options,
    );
    expect([...places]).to.deep.equal([
      'request messages[0].content[0].text',
      'response choices[0].content',
      'response choices[0].tool_calls[0].function.arguments',
    ]);
  });
});
