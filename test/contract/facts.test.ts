import { expect } from 'chai';
import fc from 'fast-check';
import type { ChatRequest } from '../../contract/chat.ts';
import { bodyFactsOf, factsOf, takeBody } from '../../contract/facts.ts';
import { isLoopback, isPublicHost } from '../../contract/hosts.ts';
import { assertPublicMedia } from '../../core/calls/gates.ts';
import { estimateChat } from '../../core/calls/meter.ts';

const METADATA = 'http://169.254.169.254/latest/meta-data';
const SCHEMA = { type: 'object', properties: { url: { type: 'string', default: METADATA } } };

const requestWith = (part: object): ChatRequest => ({
  model: 'm',
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look' },
        { type: 'unknown', ...part },
      ],
    },
  ],
});

describe('the walk over a request', () => {
  it('freezes everything and reuses the facts of parts that a later request shares', () => {
    const request: ChatRequest = {
      model: 'm',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      tools: [{ type: 'function', function: { name: 'look', parameters: { properties: { a: { type: 'string' } } } } }],
    };
    const facts = factsOf(request, true);
    expect(() => Object.assign(request.tools?.[0]?.function.parameters?.['properties'] as object, { b: 1 })).to.throw(
      TypeError,
    );
    expect(factsOf(request)).to.equal(facts);
    expect([...factsOf({ ...request, model: 'other' }).toolNames]).to.deep.equal(['look']);
    expect(factsOf({ ...request, model: 'other' }).inputTokens).to.equal(facts.inputTokens);
  });

  it('does not freeze a request that may still change, and reads it again', () => {
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    const request = { model: 'm', messages };
    const before = factsOf(request).inputTokens;
    messages.push({ role: 'user', content: 'And more of it' });
    expect(factsOf(request).inputTokens).to.be.above(before);
  });

  it('counts a field as its JSON has bytes, however it nests', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }), (value) => {
        const json = JSON.stringify([value]);
        fc.pre(!json.includes('\\'));
        const { inputTokens } = factsOf({ model: 'm', messages: [], thing: [value] });
        expect(inputTokens).to.equal(Math.ceil(Buffer.byteLength(json) / 4));
      }),
    );
  });

  it('does not recurse, and ends for a circular request', () => {
    let deep: object = {};
    for (let level = 0; level < 100_000; level += 1) deep = { deep };
    expect(factsOf({ model: 'm', messages: [], deep }).inputTokens).to.be.above(100_000);
    const circle: Record<string, unknown> = {};
    circle['again'] = circle;
    expect(() => factsOf({ model: 'm', messages: [], circle })).to.throw('has too many values, or contains itself');
  });

  it('collects the facts of a chat body while it is read, without a second pass', () => {
    const body = JSON.parse('{"model":"m","messages":[{"role":"user","content":"Hi \\u00e9"}]}') as ChatRequest;
    takeBody(body, true, { isChat: true });
    expect(Object.isFrozen(body.messages[0])).to.equal(true);
    expect(factsOf(body)).to.equal(factsOf(body)).and.to.include({ inputTokens: 6 });
  });

  it('finds forbidden parts of a chat body with their places', () => {
    for (const [json, param] of [
      ['{"messages":[{"role":"user","content":"\\ud800"}]}', 'messages[0].content'],
      ['{"messages":[{"role":"user","content":[{"type":"text","text":"\\udc00"}]}]}', 'messages[0].content[0].text'],
      ['{"messages":[{"role":"user","content":"x","__proto__":{}}]}', 'messages[0].__proto__'],
      ['{"messages":[{"role":"user","x":[1e999]}]}', 'messages[0].x[0]'],
      ['{"messages":[1e999]}', 'messages[0]'],
      ['{"messages":[],"top_p":1e999}', 'top_p'],
    ] as const)
      expect(() => takeBody(JSON.parse(json), true, { isChat: true }))
        .to.throw()
        .that.includes({ code: 'invalid_json', param });
  });
});

describe('URLs that a vendor would fetch', () => {
  const CARRIED: readonly object[] = [
    { type: 'image_url', image_url: { url: METADATA } },
    { type: 'image', image: METADATA },
    { type: 'image', url: METADATA },
    { type: 'image', image_url: METADATA },
    { type: 'image', source: { type: 'url', url: METADATA } },
    { type: 'image', images: [METADATA] },
    { type: 'video', video: METADATA },
    { type: 'video_url', video_url: { url: METADATA } },
    { type: 'input_video', input_video: { data: METADATA } },
    { type: 'audio_url', audio_url: METADATA },
    { type: 'input_audio', input_audio: { url: METADATA } },
    { type: 'input_audio', input_audio: { data: METADATA, format: 'wav' } },
    { type: 'document_url', document_url: METADATA },
    { type: 'file', file: { file_url: METADATA } },
    { type: 'file', file: { file_data: METADATA } },
    { type: 'image_url', image_url: { url: `data:${METADATA}` } },
    { type: 'image', image: `data:${METADATA}` },
    { type: 'image', image: `\n ${METADATA}` },
    { type: 'image', image: '//169.254.169.254/latest' },
    { type: 'image_url', image_url: { url: '169.254.169.254/latest' } },
    { type: 'a_call', image_url: { url: METADATA } },
    { type: 'image_url', image_url: { type: 'a_result', url: METADATA } },
  ];
  for (const part of CARRIED)
    it(`E35: are found in ${JSON.stringify(part)}`, () => {
      const { media } = factsOf(requestWith(part));
      expect(media).to.have.length(1);
      expect(() => assertPublicMedia(media))
        .to.throw('must be a data URL')
        .that.has.property('param')
        .that.includes('messages[0].content[1].');
    });

  const TAKEN: readonly object[] = [
    { type: 'text', text: METADATA },
    { type: 'image_url', image_url: { url: 'https://example.org/cat.png' } },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'image', image: 'AAAA////' },
    { type: 'file', file: { filename: 'http://x', file_data: 'data:text/plain;base64,AAAA' } },
    { type: 'opaque', dialect: 'messages', value: { type: 'server_tool_use', input: { url: METADATA } } },
    { type: 'opaque', dialect: 'messages', value: { type: 'search_result', source: METADATA, title: 'Wiki' } },
    { type: 'text', text: 'x', annotations: [{ type: 'url_citation', url: METADATA }] },
  ];
  for (const part of TAKEN)
    it(`E35: are not seen in ${JSON.stringify(part)}`, () => {
      expect(() => assertPublicMedia(factsOf(requestWith(part)).media)).not.to.throw();
    });

  const INNER = [
    ...['192.0.0.170', '[2002:a9fe:a9fe::1]', 'db.lan', 'wiki.corp', '198.18.0.1', '[::ffff:10.0.0.1]', '0.0.0.0'],
    ...['10.0.0.1', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '192.168.0.1', '224.0.0.1', '[::1]'],
    ...['[64:ff9b::a00:1]', '[fc00::1]', '[fe80::1]', 'localhost', 'printer.local', 'vault.internal'],
  ];
  for (const host of INNER)
    it(`E35: ${host} is not a public host`, () => {
      expect(isPublicHost(host)).to.equal(false);
    });
  for (const host of ['8.8.8.8', '192.0.1.1', '[2606:4700::1]', 'example.org', 'corp.example.org', '172.32.0.1'])
    it(`E35: ${host} is a public host`, () => {
      expect(isPublicHost(host)).to.equal(true);
    });
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1'])
    it(`${host} is this machine`, () => {
      expect(isLoopback(host)).to.equal(true);
    });
  for (const host of [
    'localhost.example.org',
    '127.example.org',
    '127.1',
    '1127.0.0.1',
    '::ffff:10.0.0.1',
    '0.0.0.0',
    '',
  ])
    it(`${host} is not this machine`, () => {
      expect(isLoopback(host)).to.equal(false);
    });
});

describe('fields with effects at the vendor', () => {
  const effects = Object.freeze({ file_id: { kind: 'reference', name: 'file_id' } } as const);

  it('E2: are found anywhere in a body, but not in the caller’s own data', () => {
    const content = [{ type: 'tool_result', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }];
    const calls = [{ type: 'tool_use', input: { file_id: 'mine' } }];
    const tools = [{ name: 'x', input_schema: { ...SCHEMA, default: { file_id: 'mine' } } }];
    const body = {
      tools,
      messages: [
        { role: 'assistant', content: calls },
        { role: 'user', content },
      ],
    };
    const { needs, media } = bodyFactsOf(body, effects);
    expect(needs).to.deep.equal([
      { kind: 'reference', name: 'file_id', param: 'messages[1].content[0].content[0].source.file_id' },
    ]);
    expect(media).to.deep.equal([]);
  });
});

describe('the reservation of a chat', () => {
  // Nano-dollars: one per output token.
  const PRICE = { input: 0, output: 0.001 };
  const costOf = (more: object): number =>
    estimateChat({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }], ...more }, undefined, PRICE)
      .cost ?? 0;
  for (const [more, least] of [
    [{}, 10],
    [{ n: 3 }, 30],
    [{ best_of: 20 }, 200],
    [{ n: 2, best_of: '5' }, 50],
    [{ options: { num_predict: 900 } }, 900],
    [{ options: { num_predict: -1 } }, 4096],
    [{ max_new_tokens: 900 }, 900],
    [{ max_output_tokens: 5 }, 10],
    [{ min_tokens: 900 }, 900],
    [{ reasoning: { max_tokens: 900 } }, 910],
    [{ thinking: { type: 'enabled', budget_tokens: 900 } }, 910],
    [{ extra_body: { max_new_tokens: 900, best_of: 2 } }, 1800],
  ] as const)
    it(`E8: reserves ${least} tokens of output for ${JSON.stringify(more)}`, () => {
      expect(costOf(more)).to.equal(least);
    });
});
