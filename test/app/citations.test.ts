import { expect } from 'chai';
import OpenAI from 'openai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';

const TEXT = 'Größe: 42 m. See §3.';
const PAGE = { url: 'https://example.org/size', title: 'Sizes' };
/** Google counts bytes: ö and ß take two each. */
const GROUNDING = {
  groundingChunks: [
    { web: { uri: PAGE.url, title: PAGE.title } },
    { retrievedContext: { uri: 'stores/a/files/b', title: 'manual.pdf' } },
  ],
  groundingSupports: [
    { segment: { startIndex: 0, endIndex: 14, text: 'Größe: 42 m.' }, groundingChunkIndices: [0] },
    { segment: { startIndex: 15, endIndex: 22, text: 'See §3.' }, groundingChunkIndices: [1] },
  ],
};
const USAGE = { promptTokenCount: 3, candidatesTokenCount: 9, totalTokenCount: 12 };
const part = (text: string) => ({ content: { role: 'model', parts: [{ text }] }, index: 0 });

/** Citations of both vendors: a page for the first sentence, a document for the second. */
const CITED = [
  { type: 'web_search_result_location', ...PAGE, cited_text: 'The size is 42 m.', encrypted_index: 'abc' },
  {
    type: 'page_location',
    document_index: 0,
    document_title: 'manual.pdf',
    cited_text: '§3',
    start_page_number: 3,
    end_page_number: 4,
  },
];
const [FIRST, SECOND] = [TEXT.slice(0, 12), TEXT.slice(12)];
const BLOCKS = [
  { type: 'text', text: FIRST, citations: [CITED[0]] },
  { type: 'text', text: SECOND, citations: [CITED[1]] },
];
const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_sequence: null };
const MESSAGES_USAGE = { input_tokens: 3, output_tokens: 9 };
const MESSAGES_EVENTS = [
  {
    type: 'message_start',
    message: { ...MESSAGE, content: [], stop_reason: null, usage: { ...MESSAGES_USAGE, output_tokens: 1 } },
  },
  ...BLOCKS.flatMap(({ text, citations }, index) => [
    { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
    { type: 'content_block_delta', index, delta: { type: 'citations_delta', citation: citations[0] } },
    { type: 'content_block_stop', index },
  ]),
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 9 } },
  { type: 'message_stop' },
];

const VENDORS = [
  {
    wire: 'gemini',
    model: 'gemini/gemini-3.8-flash',
    body: { candidates: [{ ...part(TEXT), finishReason: 'STOP', groundingMetadata: GROUNDING }], usageMetadata: USAGE },
    events: [
      { candidates: [part('Größe: 4')] },
      { candidates: [part('2 m. See §3.')] },
      { candidates: [{ ...part(''), finishReason: 'STOP', groundingMetadata: GROUNDING }], usageMetadata: USAGE },
    ],
  },
  {
    wire: 'anthropic',
    model: 'anthropic/claude-sonnet-4-5',
    body: { ...MESSAGE, content: BLOCKS, stop_reason: 'end_turn', usage: MESSAGES_USAGE },
    events: MESSAGES_EVENTS,
  },
] as const;

/** Document names: Google returns its name in the store, Anthropic the title set by the caller. */
const FILE = { gemini: 'stores/a/files/b', anthropic: 'manual.pdf' } as const;
const URL_CITATION = { ...PAGE, start_index: 0, end_index: 12 };
const USER = [{ role: 'user' as const, content: 'How long?' }];

/** Script of a vendor that streams events. */
function sendEvents(events: readonly object[]) {
  return async (out: Wire): Promise<void> => {
    await out.send(SSE_HEAD);
    for (const event of events)
      await out.send(chunk(`${'type' in event ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`));
    await out.send(LAST_CHUNK);
  };
}

describe('a vendor’s citations and media', () => {
  let rig: IngressRig;
  let client: OpenAI;
  before(async () => {
    rig = await startIngressRig();
    client = new OpenAI({ apiKey: rig.gateway.key, baseURL: `${rig.gateway.url}/v1`, maxRetries: 0 });
  });
  after(() => rig.stop());

  for (const { wire, model, body, events } of VENDORS) {
    const whole = () => rig.script(wire, respondWith(200, body));
    const streamed = () => rig.script(wire, sendEvents(events));
    // Citations parsed by AI SDKs: https://github.com/vercel/ai/blob/main/packages/openai/src/chat/openai-chat-api.ts
    const chatCitations = [{ type: 'url_citation', url_citation: URL_CITATION }];
    const file = { type: 'file_citation', file_id: FILE[wire], filename: 'manual.pdf', index: TEXT.length };
    const responsesCitations = [{ type: 'url_citation', ...URL_CITATION }, file];

    it(`by ${wire} are url_citations in a chat, without a format of ours (E21)`, async () => {
      whole();
      const { data, response } = await client.chat.completions.create({ model, messages: USER }).withResponse();
      const { choices } = data;
      expect(response.headers.get('x-tollgate-dropped'), 'the document').to.equal('annotations');
      expect(choices[0]?.message.content).to.equal(TEXT);
      expect(choices[0]?.message.annotations).to.deep.equal(chatCitations);
    });

    it(`by ${wire} are url_citations in a streamed chat, without a format of ours (E21)`, async () => {
      streamed();
      const got: unknown[] = [];
      for await (const { choices } of await client.chat.completions.create({ model, messages: USER, stream: true }))
        for (const { delta } of choices)
          got.push(...((delta as { readonly annotations?: readonly unknown[] }).annotations ?? []));
      expect(got).to.deep.equal(chatCitations);
    });

    it(`by ${wire} are url_citations and file_citations in Responses (E21)`, async () => {
      whole();
      const { output } = await client.responses.create({ model, input: 'How long?' });
      const [message] = output;
      const content = message?.type === 'message' ? message.content : [];
      expect(content.flatMap((each) => (each.type === 'output_text' ? each.annotations : []))).to.deep.equal(
        responsesCitations,
      );
    });

    it(`by ${wire} are url_citations and file_citations in streamed Responses (E21)`, async () => {
      streamed();
      const got: unknown[] = [];
      for await (const event of await client.responses.create({ model, input: 'How long?', stream: true }))
        if (event.type === 'response.output_text.annotation.added') got.push(event.annotation);
      expect(got).to.deep.equal(responsesCitations);
    });

    it(`by ${wire} are search result locations in Messages, and grounding in Gemini (E21)`, async () => {
      whole();
      const messages = await rig.gateway.post('/v1/messages', { model, max_tokens: 100, messages: USER });
      const { content } = (await messages.json()) as { readonly content: readonly Record<string, unknown>[] };
      const cited = content.flatMap((block) => (block['citations'] as readonly Record<string, unknown>[]) ?? []);
      expect(cited[0]).to.include({ type: 'web_search_result_location', ...PAGE });
      whole();
      const gemini = await rig.gateway.post(`/v1beta/models/${model.replace('/', '%2F')}:generateContent`, {
        contents: [{ role: 'user', parts: [{ text: 'How long?' }] }],
      });
      const text = await gemini.text();
      expect(text).to.include('"groundingChunks"').and.include(PAGE.url);
      expect(text).to.include('"endIndex":14').and.not.include('opaque');
    });
  }

  /** Citations of a body or of events, in the order of their places: of Messages, or of Gemini. */
  const citedIn = (bodies: readonly unknown[]): readonly unknown[] => {
    const found: unknown[] = [];
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [name, inner] of Object.entries(value)) {
        if (name === 'citations' && Array.isArray(inner)) found.push(...inner);
        else if (name === 'citation' || name === 'groundingMetadata') found.push(inner);
        else walk(inner);
      }
    };
    for (const body of bodies) walk(body);
    return found;
  };
  const eventsOf = (text: string): readonly unknown[] =>
    [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as unknown);

  for (const { wire, model, body, events } of VENDORS)
    for (const way of ['Messages', 'Gemini'] as const)
      it(`by ${wire} are the same in ${way} whole and streamed (G15)`, async () => {
        const requestOf = async (stream: boolean): Promise<string> => {
          const reply =
            way === 'Messages'
              ? await rig.gateway.post('/v1/messages', { model, max_tokens: 100, messages: USER, stream })
              : await rig.gateway.post(
                  `/v1beta/models/${model.replace('/', '%2F')}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
                  { contents: [{ role: 'user', parts: [{ text: 'How long?' }] }] },
                );
          return await reply.text();
        };
        rig.script(wire, respondWith(200, body));
        const whole = citedIn([JSON.parse(await requestOf(false))]);
        rig.script(wire, sendEvents(events));
        const streamed = citedIn(eventsOf(await requestOf(true)));
        expect(whole).not.to.deep.equal([]);
        expect(streamed).to.deep.equal(whole);
      });

  const LOGPROBS = {
    topCandidates: [{ candidates: [{ token: 'Hi', logProbability: -0.25 }] }],
    chosenCandidates: [{ token: 'Hi', logProbability: -0.25 }],
  };
  const responsesOf = async (model: string, stream: boolean): Promise<string> =>
    (
      await rig.gateway.post('/v1/responses', {
        ...{ model, input: 'Hi', stream, top_logprobs: 1 },
        include: ['message.output_text.logprobs'],
      })
    ).text();

  it('log probabilities of Gemini are in Responses, whole and streamed (G15)', async () => {
    const model = 'gemini/gemini-3.8-flash';
    const body = {
      candidates: [{ ...part('Hi'), finishReason: 'STOP', logprobsResult: LOGPROBS }],
      usageMetadata: USAGE,
    };
    rig.script('gemini', respondWith(200, body));
    expect(await responsesOf(model, false)).to.include('"logprob":-0.25');
    rig.script('gemini', sendEvents([body]));
    const events = eventsOf(await responsesOf(model, true)) as readonly { readonly type: string }[];
    for (const type of ['response.output_text.delta', 'response.completed'])
      expect(JSON.stringify(events.find((event) => event.type === type))).to.include('"logprob":-0.25');
  });

  it('are unchanged for a client of the vendor’s own format, also without citations (E21)', async () => {
    const head = { id: 'c', created: 1, model: 'm' };
    const said = { role: 'assistant', content: 'Hi.', refusal: null, annotations: [] };
    const body = {
      ...{ ...head, object: 'chat.completion', choices: [{ index: 0, message: said, finish_reason: 'stop' }] },
      usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 },
    };
    rig.script('deepseek', respondWith(200, body));
    const request = { model: 'deepseek/deepseek-chat', messages: USER };
    const { choices } = await client.chat.completions.create(request);
    expect(choices[0]?.message.annotations).to.deep.equal([]);
    rig.script(
      'gemini',
      respondWith(200, { candidates: [{ ...part('Hi.'), finishReason: 'STOP' }], usageMetadata: USAGE }),
    );
    const other = await client.chat.completions.create({ ...request, model: 'gemini/gemini-3.8-flash' });
    expect(other.choices[0]?.message).not.to.have.property('annotations');
  });

  for (const [native, reason] of [
    ['pause_turn', 'stop'],
    ['model_context_window_exceeded', 'length'],
  ])
    it(`include the end ${native} of an Anthropic model, which a relay sent in addition to OpenAI’s, for Messages (E19)`, async () => {
      const choice = { index: 0, finish_reason: reason, native_finish_reason: native };
      const choices = [{ ...choice, message: { role: 'assistant', content: 'Hi.' } }];
      const usage = { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 };
      rig.script('deepseek', respondWith(200, { id: 'c', created: 1, model: 'm', choices, usage }));
      const body = { model: 'deepseek/deepseek-chat', max_tokens: 100, messages: USER };
      const response = await rig.gateway.post('/v1/messages', body);
      expect(await response.json()).to.include({ stop_reason: native });
    });

  it('are a transcript in formats without sound, which report that there was sound (E21)', async () => {
    const audio = { id: 'a1', data: 'UklGRg==', transcript: 'Forty-two.', expires_at: 1 };
    const message = { role: 'assistant', content: null, refusal: null, audio };
    const spoken = {
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 },
    };
    rig.script('deepseek', respondWith(200, { id: 'c', object: 'chat.completion', created: 1, model: 'm', ...spoken }));
    const responses = await client.responses.create({ model: 'deepseek/deepseek-chat', input: 'How long?' });
    expect(responses.output_text).to.equal('Forty-two.');
    const messages = await rig.gateway.post('/v1/messages', {
      model: 'deepseek/deepseek-chat',
      max_tokens: 100,
      messages: USER,
    });
    expect(messages.headers.get('x-tollgate-dropped')).to.equal('audio');
    expect(((await messages.json()) as { readonly content: unknown }).content).to.deep.equal([
      { type: 'text', text: 'Forty-two.' },
    ]);
  });

  it('include a report for Messages, which cannot represent images, that there was one (E21)', async () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
    const content = { role: 'model', parts: [{ text: 'Here.' }, image] };
    rig.script(
      'gemini',
      respondWith(200, { candidates: [{ content, index: 0, finishReason: 'STOP' }], usageMetadata: USAGE }),
    );
    const body = { model: 'gemini/gemini-3.8-flash', max_tokens: 100, messages: USER };
    const response = await rig.gateway.post('/v1/messages', body);
    expect(response.headers.get('x-tollgate-dropped')).to.equal('images');
    expect(((await response.json()) as { readonly content: unknown }).content).to.deep.equal([
      { type: 'text', text: 'Here.' },
    ]);
  });

  it('include a report that Gemini gets no thinking signed by another vendor (E21)', async () => {
    const content = { role: 'model', parts: [{ text: 'Yes.' }] };
    rig.script(
      'gemini',
      respondWith(200, { candidates: [{ content, index: 0, finishReason: 'STOP' }], usageMetadata: USAGE }),
    );
    const details = [{ kind: 'text', text: 'Hm.', signature: 'abc', format: 'anthropic' }];
    const messages = [...USER, { role: 'assistant', content: 'Two.', reasoning_details: details }, ...USER];
    const body = { model: 'gemini/gemini-3.8-flash', messages };
    const response = await rig.gateway.post('/v1/chat/completions', body);
    expect(response.headers.get('x-tollgate-dropped')).to.equal('reasoning');
    expect(JSON.stringify(rig.lastBody('gemini'))).not.to.include('Hm.');
  });
});

describe('pages that a vendor lists next to the choices', () => {
  const SOURCES = [
    { vendor: 'xai', model: 'grok-4.7', listed: { citations: [PAGE.url, 'https://example.org/more'] } },
    { vendor: 'perplexity', model: 'sonar', listed: { search_results: [PAGE, { url: 'https://example.org/more' }] } },
  ] as const;
  const URLS = [PAGE.url, 'https://example.org/more'];
  const head = { id: 'c', created: 1, model: 'm' };
  const usage = { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 };
  let listed: object = {};
  /** Chunk of a stream that lists the pages. */
  let at: 'end' | 'usage' = 'end';
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  before(async () => {
    vendor = await startScriptedUpstream(async (wire) => {
      if ((wire.request.json() as { readonly stream?: boolean }).stream !== true) {
        const message = { role: 'assistant', content: TEXT };
        const choices = [{ index: 0, message, finish_reason: 'stop' }];
        await wire.send(respondWith(200, { ...head, object: 'chat.completion', choices, usage, ...listed }));
        return;
      }
      const chunkHead = { ...head, object: 'chat.completion.chunk' };
      const end = { index: 0, delta: {}, finish_reason: 'stop' };
      await sendEvents([
        { ...chunkHead, choices: [{ index: 0, delta: { role: 'assistant', content: TEXT }, finish_reason: null }] },
        { ...chunkHead, choices: [end], ...(at === 'end' && listed) },
        { ...chunkHead, choices: [], usage, ...(at === 'usage' && listed) },
      ])(wire);
    });
    const plans = { searching: { serverTools: ['web_search'] } };
    const providers = Object.fromEntries(SOURCES.map((each) => [each.vendor, { baseUrl: vendor.url, apiKey: 'k' }]));
    gateway = await startGateway({ providers, plans, defaultPlan: 'searching' });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const CLIENTS = [
    {
      name: 'chat',
      cites: /"url_citation":\{[^}]*"url":"([^"]+)"/g,
      path: '/v1/chat/completions',
      body: { messages: USER },
    },
    {
      ...{ name: 'Messages', cites: /"web_search_result_location"[^}]*"url":"([^"]+)"/g, path: '/v1/messages' },
      body: { messages: USER, max_tokens: 100 },
    },
    { name: 'Responses', cites: /"url_citation"[^}]*"url":"([^"]+)"/g, path: '/v1/responses', body: { input: 'Hi' } },
    { name: 'Gemini', cites: /"uri":"([^"]+)"/g, body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] } },
  ];
  for (const source of SOURCES)
    for (const { name, cites, path, body } of CLIENTS) {
      // Its own Responses API cites pages in the text.
      if (source.vendor === 'xai' && name === 'Responses') continue;
      for (const form of ['whole', 'streamed', 'streamed, listed with the usage'] as const)
        it(`are citations in ${name}, by ${source.vendor}, ${form} (G15)`, async () => {
          listed = source.listed;
          at = form === 'streamed' ? 'end' : 'usage';
          const model = `${source.vendor}/${source.model}`;
          const stream = form !== 'whole';
          const verb = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
          const given = path ?? `/v1beta/models/${model.replace('/', '%2F')}:${verb}`;
          const reply = await gateway.post(given, { ...body, ...(path && { model, stream }) });
          const text = await reply.text();
          expect(reply.status, text).to.equal(200);
          // The last event of a stream in Responses repeats the message.
          expect(new Set([...text.matchAll(cites)].map(([, url]) => url)), text).to.deep.equal(new Set(URLS));
        });
    }
});
