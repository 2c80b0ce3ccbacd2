import { expect } from 'chai';
import { readSse } from '../support/formats/codec.ts';
import {
  CUTS,
  type IngressRig,
  MODEL_OF,
  type Said,
  startIngressRig,
  WIRES,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { answer } from '../support/vendors/scripted-upstream.ts';

interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: object };
}
interface Answer {
  readonly candidates: readonly {
    readonly content?: { readonly role: string; readonly parts?: readonly Part[] };
    readonly finishReason?: string;
  }[];
  readonly usageMetadata?: Readonly<Record<string, number>>;
  readonly modelVersion: string;
  readonly responseId: string;
}
interface Whole {
  readonly parts: readonly Part[];
  readonly text: string;
  readonly thoughts: string;
  readonly calls: readonly NonNullable<Part['functionCall']>[];
  readonly finish: readonly string[];
  readonly usage: Readonly<Record<string, number>> | undefined;
}

/** A turn as any of the vendors is sent it. */
// biome-ignore lint/suspicious/noExplicitAny: five formats, of which each test looks at a leaf
type Sent = any;

const HELLO = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] };
const TOOLS = [
  {
    functionDeclarations: [{ name: 'read', parameters: { type: 'OBJECT', properties: { path: { type: 'STRING' } } } }],
  },
];
const TEXT: Said = {
  pieces: [{ text: 'Grüße, 世界 🌍 from far away' }],
  usage: { prompt: 20, completion: 5, cached: 8 },
};
const CALLS: Said = {
  pieces: [
    { text: 'Reading.' },
    { call: 'read', id: 'call_a', arguments: '{"path":"/a"}' },
    { call: 'read', id: 'call_b', arguments: '{"path":"/b"}' },
  ],
};

/** Three ways to have a response: whole, as events, as one array. */
const WAYS = ['generateContent', 'streamGenerateContent?alt=sse', 'streamGenerateContent'] as const;
type Way = (typeof WAYS)[number];

describe('Gemini’s own format in front of five vendors', function () {
  this.timeout(60_000);
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const post = (model: string, way: string, body: object) =>
    rig.gateway.post(`/v1beta/models/${model}${way.startsWith('%') ? '' : ':'}${way}`, body);

  async function read(way: Way, response: Response): Promise<readonly Answer[]> {
    expect(response.status, await response.clone().text()).to.equal(200);
    if (way === 'generateContent') return [(await response.json()) as Answer];
    if (way === 'streamGenerateContent') return (await response.json()) as Answer[];
    return readSse(Buffer.from(await response.arrayBuffer())).map(({ data }) => JSON.parse(data) as Answer);
  }

  function gather(answers: readonly Answer[]): Whole {
    const candidates = answers.map(({ candidates: [first] }) => first);
    const parts = candidates.flatMap((candidate) => candidate?.content?.parts ?? []);
    const textOf = (thought: boolean) =>
      parts.map((part) => (Boolean(part.thought) === thought ? (part.text ?? '') : '')).join('');
    return {
      parts,
      text: textOf(false),
      thoughts: textOf(true),
      calls: parts.flatMap(({ functionCall }) => functionCall ?? []),
      finish: candidates.flatMap((candidate) => candidate?.finishReason ?? []),
      usage: answers.at(-1)?.usageMetadata,
    };
  }

  async function generate(wire: Wire, way: Way, said: Said, body: object = HELLO, cut = 65_536): Promise<Whole> {
    rig.say(wire, said, cut);
    return gather(await read(way, await post(MODEL_OF[wire], way, body)));
  }

  /** The results that a vendor was sent, each by the argument of the call that it belongs to. */
  function resultsOf(wire: Wire): Readonly<Record<string, unknown>> {
    const { messages = [], contents = [] } = rig.lastBody<{ messages?: Sent[]; contents?: Sent[] }>(wire);
    const blocks = [...messages, ...contents].flatMap((turn) => [
      ...(turn.tool_calls ?? []).map((call: Sent) => ({ id: call.id, path: JSON.parse(call.function.arguments).path })),
      ...(turn.role === 'tool' ? [{ id: turn.tool_call_id, output: turn.content }] : []),
      ...[turn.content, turn.parts].flat().flatMap((block): Sent[] => {
        if (block?.type === 'tool_use') return [{ id: block.id, path: block.input.path }];
        if (block?.type === 'tool_result')
          return [{ id: block.tool_use_id, output: block.content[0]?.text ?? block.content }];
        if (block?.functionCall) return [{ id: block.functionCall.id, path: block.functionCall.args.path }];
        if (block?.functionResponse)
          return [{ id: block.functionResponse.id, output: block.functionResponse.response.output }];
        return [];
      }),
    ]);
    const calls = blocks.filter((block) => 'path' in block);
    expect(calls).to.have.length(2);
    return Object.fromEntries(
      calls.map(({ id, path }) => [path, blocks.find((block) => 'output' in block && block.id === id)?.output]),
    );
  }

  for (const wire of WIRES)
    for (const way of WAYS)
      for (const cut of CUTS) {
        it(`G48: the path alone decides that a response streams: ${way} of ${wire}, sent ${cut} bytes at a time`, async () => {
          const whole = await generate(wire, way, TEXT, HELLO, cut);
          expect(whole.text).to.equal('Grüße, 世界 🌍 from far away');
          expect(whole.finish).to.deep.equal(['STOP']);
          expect(whole.usage).to.include({ promptTokenCount: 20, candidatesTokenCount: 5, cachedContentTokenCount: 8 });
        });

        it(`G51: calls are whole, in order and of the vendor’s ids: ${way} of ${wire}, sent ${cut} bytes at a time`, async () => {
          const whole = await generate(wire, way, CALLS, { ...HELLO, tools: TOOLS }, cut);
          expect(whole.calls.map(({ id, name, args }) => [id, name, args])).to.deep.equal([
            ['call_a', 'read', { path: '/a' }],
            ['call_b', 'read', { path: '/b' }],
          ]);
          expect(whole.text).to.equal('Reading.');
          expect(whole.finish).to.deep.equal(['STOP']);
        });
      }

  for (const wire of WIRES) {
    for (const way of WAYS)
      it(`G49: a colon may be written %3A, and slashes %2F: ${way} of ${wire}`, async () => {
        rig.say(wire, TEXT);
        const response = await post(MODEL_OF[wire].replace('/', '%2F'), `%3A${way}`, HELLO);
        expect(gather(await read(way, response)).text).to.equal('Grüße, 世界 🌍 from far away');
      });

    it(`G50: results of parallel calls of one function reach ${wire} each by its own call, by order where ids are missing`, async () => {
      const call = (path: string) => ({ functionCall: { name: 'read', args: { path } } });
      const result = (output: string) => ({ functionResponse: { name: 'read', response: { output } } });
      const contents = [
        ...HELLO.contents,
        { role: 'model', parts: [call('/a'), call('/b')] },
        { role: 'user', parts: [result('of a'), result('of b')] },
      ];
      await generate(wire, 'generateContent', TEXT, { contents, tools: TOOLS });
      const text = JSON.stringify(rig.lastBody(wire));
      expect(text.indexOf('of a')).to.be.within(text.indexOf('/b'), text.indexOf('of b'));
    });

    it(`G50: results that come in another order reach ${wire} by their ids`, async () => {
      const call = (id: string) => ({ functionCall: { id, name: 'read', args: { path: id } } });
      const result = (id: string) => ({ functionResponse: { id, name: 'read', response: { output: `of ${id}` } } });
      const contents = [
        ...HELLO.contents,
        { role: 'model', parts: [call('c1'), call('c2')] },
        { role: 'user', parts: [result('c2'), result('c1')] },
      ];
      await generate(wire, 'generateContent', TEXT, { contents, tools: TOOLS });
      for (const [id, output] of Object.entries(resultsOf(wire))) expect(output).to.equal(`of ${id}`);
    });

    for (const way of WAYS) {
      it(`G51: thinking of ${wire} is shown where it is wanted: ${way}`, async () => {
        const body = {
          ...HELLO,
          generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } },
        };
        const said: Said = { pieces: [{ reasoning: 'Let me think.' }, { text: 'Yes.' }] };
        const model = wire === 'deepseek' ? 'deepseek/deepseek-reasoner' : MODEL_OF[wire];
        rig.say(wire, said);
        const whole = gather(await read(way, await post(model, way, body)));
        expect([whole.thoughts, whole.text]).to.deep.equal(['Let me think.', 'Yes.']);
        expect(whole.parts.findIndex(({ thought }) => thought)).to.equal(0);
      });

      it(`G32: a response of ${wire} that its limit cuts amid a call is MAX_TOKENS, without half a call: ${way}`, async () => {
        const half = { call: 'read', id: 'call_a', arguments: '{"path":"/a' };
        // These two hand out objects only, so that they cannot tell half a call.
        const isWhole = wire === 'gemini' || (wire === 'anthropic' && way === 'generateContent');
        const said: Said = { pieces: [{ text: 'So.' }, ...(isWhole ? [] : [half])], finish: 'length' };
        const whole = await generate(wire, way, said, { ...HELLO, tools: TOOLS });
        expect(whole.finish).to.deep.equal(['MAX_TOKENS']);
        expect(whole.calls).to.deep.equal([]);
        expect(whole.text).to.equal('So.');
      });

      it(`G51: a refusal of ${wire} is SAFETY: ${way}`, async () => {
        const whole = await generate(wire, way, { pieces: [{ text: 'No.' }], finish: 'content_filter' });
        expect(whole.finish).to.deep.equal(['SAFETY']);
      });
    }

    it(`G51: an error of ${wire} has Google’s shape, its status and the time to wait`, async () => {
      rig.script(
        wire,
        answer(429, { error: { message: 'slow down', type: 'rate_limit_error' } }, { 'retry-after': '7' }),
      );
      for (const way of WAYS) {
        const response = await post(MODEL_OF[wire], way, HELLO);
        const { error } = (await response.json()) as { error: { code: number; status: string; details: object[] } };
        expect([response.status, error.code, error.status]).to.deep.equal([429, 429, 'RESOURCE_EXHAUSTED']);
        expect(error.details[0]).to.include({ reason: 'UPSTREAM_RATE_LIMITED', domain: 'tollgate' });
        expect(error.details[1]).to.deep.equal({
          '@type': 'type.googleapis.com/google.rpc.RetryInfo',
          retryDelay: '7s',
        });
      }
    });

    it(`G31: an image in a result reaches ${wire} as an image`, async () => {
      const contents = [
        ...HELLO.contents,
        { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'read', args: {} } }] },
        {
          role: 'user',
          parts: [
            {
              functionResponse: {
                ...{ id: 'c1', name: 'read', response: { output: 'a picture' } },
                parts: [{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }],
              },
            },
          ],
        },
      ];
      rig.say(wire, TEXT);
      const response = await post(MODEL_OF[wire], 'generateContent', { contents, tools: TOOLS });
      if (response.status === 400) {
        // A vendor whose results hold text alone is not sent a picture as text.
        expect(JSON.stringify(await response.json())).to.include('contents[2].parts[0]');
        return;
      }
      expect(JSON.stringify(rig.lastBody(wire))).to.match(/"(data|url)":"[^"]*iVBORw0KGgo=/);
    });

    it(`G30: a history of calls without tools reaches ${wire}`, async () => {
      const contents = [
        ...HELLO.contents,
        { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'read', args: { path: '/a' } } }] },
        { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'read', response: { output: 'text of a' } } }] },
      ];
      await generate(wire, 'generateContent', TEXT, { contents });
      expect(JSON.stringify(rig.lastBody(wire))).to.include('text of a');
    });
  }

  for (const way of WAYS)
    it(`G52: Gemini’s signature survives a client that keeps its parts: ${way}`, async () => {
      const parts = [{ functionCall: { id: 'f1', name: 'read', args: {} }, thoughtSignature: 'c2lnbmVk' }];
      const body = { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] };
      const bytes = way === 'generateContent' ? JSON.stringify(body) : `data: ${JSON.stringify(body)}\n\n`;
      const type = way === 'generateContent' ? 'application/json' : 'text/event-stream';
      rig.script('gemini', answer(200, bytes, { 'content-type': type }));
      const first = gather(await read(way, await post(MODEL_OF.gemini, way, { ...HELLO, tools: TOOLS })));
      const contents = [
        ...HELLO.contents,
        { role: 'model', parts: first.parts.filter(({ functionCall }) => functionCall) },
        { role: 'user', parts: [{ functionResponse: { id: 'f1', name: 'read', response: { output: 'x' } } }] },
      ];
      await generate('gemini', way, TEXT, { contents, tools: TOOLS });
      const sent = rig.lastBody<{ contents: { parts: Part[] }[] }>('gemini');
      expect(sent.contents[1]?.parts).to.deep.equal(parts);
    });

  for (const [alt, where] of [
    ['?alt=sse', 'as an event'],
    ['', 'inside the array'],
  ] as const)
    it(`G51: a stream that breaks off ends with the error ${where}`, async () => {
      rig.script(
        'openai',
        answer(200, `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'half' } }] })}\n\n`, {
          'content-type': 'text/event-stream',
        }),
      );
      const text = await (await post(MODEL_OF.openai, `streamGenerateContent${alt}`, HELLO)).text();
      const values = alt === '' ? JSON.parse(text) : readSse(Buffer.from(text)).map(({ data }) => JSON.parse(data));
      expect(JSON.stringify(values[0])).to.include('half');
      expect(values.at(-1).error).to.include({ code: 503, status: 'UNAVAILABLE' });
      expect(JSON.stringify(values)).not.to.include('finishReason');
    });

  for (const [title, body, param] of [
    ['no contents', {}, 'contents'],
    ['text that is a number', { contents: [{ parts: [{ text: 5 }] }] }, 'contents[0].parts[0].text'],
    ['too hot a temperature', { ...HELLO, generationConfig: { temperature: 3 } }, 'generationConfig.temperature'],
    [
      'a limit in two spellings',
      { ...HELLO, generationConfig: { maxOutputTokens: 5, max_output_tokens: 9 } },
      'generationConfig.max_output_tokens',
    ],
    [
      'a limit in a third spelling',
      { ...HELLO, generation_config: { MaxOutputTokens: 9 } },
      'generation_config.MaxOutputTokens',
    ],
    [
      'a result without its call',
      { contents: [{ parts: [{ functionResponse: { name: 'a', response: {} } }] }] },
      'contents[0].parts[0].functionResponse',
    ],
    ['another model inside', { ...HELLO, model: 'models/other' }, 'model'],
    [
      'a file behind http',
      { contents: [{ parts: [{ fileData: { fileUri: 'http://x.test/a.png' } }] }] },
      'contents[0].parts[0].fileData.fileUri',
    ],
  ] as const)
    it(`G51: ${title} is refused by its place in the caller’s body`, async () => {
      const response = await post(MODEL_OF.anthropic, 'generateContent', body);
      const { error } = (await response.json()) as { error: { status: string; details: [{ metadata: object }] } };
      expect([response.status, error.status]).to.deep.equal([400, 'INVALID_ARGUMENT']);
      expect(error.details[0].metadata).to.include({ param });
    });
});
