import { expect } from 'chai';
import type { ChatChunk, ChatDelta, ChatResponse, FinishReason } from '../../../../contract/index.ts';
import { ERRORS, type ErrorCode, GatewayError } from '../../../../contract/index.ts';
import plugin from '../../../../plugins/dialects/gemini.ts';
import { contextOf, dialectOf, inputOf } from './given.ts';

const dialect = dialectOf(plugin);
const BODY = { contents: [{ parts: [{ text: 'Hi' }] }] };
const THOUGHTS = { ...BODY, generationConfig: { thinkingConfig: { includeThoughts: true } } };
const head = { id: 'c', object: 'chat.completion.chunk' as const, created: 1, model: 'm' };
const chunk = (delta: ChatDelta, finish_reason: FinishReason | null = null): ChatChunk => ({
  ...head,
  choices: [{ index: 0, delta, finish_reason, logprobs: null }],
});
const usage = {
  ...{ prompt_tokens: 20, completion_tokens: 9, total_tokens: 29, prompt_tokens_details: { cached_tokens: 8 } },
  completion_tokens_details: { reasoning_tokens: 4 },
};
const USAGE: ChatChunk = { ...head, choices: [], usage };

function contextFor(body: object, query: Record<string, string> = { alt: 'sse' }) {
  const input = inputOf(dialect, body, { method: 'streamGenerateContent', query });
  return contextOf(input, dialect.read(input).request);
}

/** All elements of a stream. */
function stream(chunks: readonly ChatChunk[], body: object = BODY) {
  const writer = dialect.stream(contextFor(body));
  const text = chunks.map((each) => writer.push(each)).join('') + writer.end();
  return text
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => JSON.parse(frame.replace(/^data: /, '')));
}

const partsOf = (elements: readonly { candidates: { content: { parts: object[] } }[] }[]) =>
  elements.flatMap(({ candidates }) => candidates.flatMap(({ content }) => content.parts));

function write(message: object, choice: object = {}, body: object = BODY) {
  const response: ChatResponse = {
    ...{ id: 'x', object: 'chat.completion', created: 1, model: 'm', usage },
    choices: [
      {
        ...{ index: 0, logprobs: null, finish_reason: 'stop' },
        message: { role: 'assistant', content: null, refusal: null, ...message },
        ...choice,
      },
    ],
  };
  return dialect.write(response, contextFor(body)) as {
    candidates: [{ content: { parts: object[] }; finishReason: string; logprobsResult?: object }];
    usageMetadata: object;
  };
}

const call = (args: string, rest: object = {}) => ({
  ...{ id: 'f1__thought__c2ln', type: 'function', function: { name: 'a', arguments: args } },
  ...rest,
});

describe('the gemini dialect writes', () => {
  it('token counts with thinking separate from the text and cached tokens inside the prompt', () => {
    expect(write({ content: 'x' }).usageMetadata).to.deep.equal({
      ...{ promptTokenCount: 20, candidatesTokenCount: 5, thoughtsTokenCount: 4, cachedContentTokenCount: 8 },
      totalTokenCount: 29,
    });
  });

  it('a call with its plain id, its signature in the part', () => {
    const signed = call('', { extra_content: { google: { thought_signature: 'c2ln' } } });
    expect(write({ tool_calls: [signed] }).candidates[0].content.parts).to.deep.equal([
      { functionCall: { id: 'f1', name: 'a', args: {} }, thoughtSignature: 'c2ln' },
    ]);
  });

  it('no incomplete call: MAX_TOKENS if the limit truncated it, MALFORMED_FUNCTION_CALL if the model did', () => {
    for (const [finish_reason, finishReason] of [
      ['length', 'MAX_TOKENS'],
      ['tool_calls', 'MALFORMED_FUNCTION_CALL'],
    ]) {
      const { candidates } = write({ tool_calls: [call('{"a":')] }, { finish_reason });
      expect(candidates[0]).to.deep.include({ finishReason, content: { role: 'model', parts: [{ text: '' }] } });
    }
  });

  it('thinking only for callers who request it, in its order', () => {
    const message = {
      reasoning_content: 'hm',
      content: 'So',
      tool_calls: [call('{}')],
      order: ['tool:0', 'reasoning:0', 'content:0'],
    };
    const partNames = (body: object) =>
      write(message, {}, body).candidates[0].content.parts.map((part) => Object.keys(part).join());
    expect(partNames(BODY)).to.deep.equal(['functionCall', 'text']);
    expect(partNames(THOUGHTS)).to.deep.equal(['functionCall', 'text,thought', 'text']);
  });

  it('thinking of another format so that it is sent back complete, in base64 as clients expect', () => {
    const detail = { kind: 'text', text: 'hm', signature: 'sig', format: 'anthropic' };
    const parts = write({ reasoning_details: [detail], content: 'So' }, {}, THOUGHTS).candidates[0].content.parts;
    expect(parts[0])
      .to.have.property('thoughtSignature')
      .that.matches(/^[A-Za-z0-9+/]+={0,2}$/);
    const back = dialect.read(inputOf(dialect, { contents: [...BODY.contents, { role: 'model', parts }] }));
    expect(back.request.messages[1]?.reasoning_details).to.deep.equal([detail]);
  });

  it('Google’s own reason if the vendor sent it, and none of another vendor’s', () => {
    const finishOf = (native: string) =>
      write({ content: '' }, { finish_reason: 'content_filter', finish: { native } }).candidates[0].finishReason;
    expect(finishOf('RECITATION')).to.equal('RECITATION');
    expect(finishOf('refusal')).to.equal('SAFETY');
  });

  it('images, and the probabilities of tokens', () => {
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }];
    const logprobs = { content: [{ token: 'a', logprob: -1, top_logprobs: [{ token: 'b', logprob: -2 }] }] };
    const [candidate] = write({ images }, { logprobs }).candidates;
    expect(candidate.content.parts).to.deep.equal([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }]);
    expect(candidate.logprobsResult).to.deep.equal({
      chosenCandidates: [{ token: 'a', logProbability: -1 }],
      topCandidates: [{ candidates: [{ token: 'b', logProbability: -2 }] }],
    });
  });
});

describe('a stream of the gemini dialect', () => {
  it('has one end, with the usage, in its last element', () => {
    const elements = stream([chunk({ content: 'a' }), chunk({}, 'stop'), USAGE]);
    expect(elements.map(({ candidates }) => candidates[0].finishReason)).to.deep.equal([undefined, 'STOP']);
    expect(elements.at(-1).usageMetadata).to.include({ promptTokenCount: 20 });
  });

  it('has only complete calls, also if their pieces are interleaved', () => {
    const piece = (index: number, text: string, name?: string) =>
      chunk({
        tool_calls: [
          { index, ...(name && { id: `id${index}` }), function: { ...(name && { name }), arguments: text } },
        ],
      });
    const elements = stream([
      piece(0, '', 'a'),
      piece(1, '{"x"', 'b'),
      piece(0, '{"y":1}'),
      piece(1, ':2}'),
      chunk({ content: 'after' }),
      chunk({}, 'tool_calls'),
      USAGE,
    ]);
    expect(partsOf(elements).slice(0, 3)).to.deep.equal([
      { functionCall: { id: 'id0', name: 'a', args: { y: 1 } } },
      { functionCall: { id: 'id1', name: 'b', args: { x: 2 } } },
      { text: 'after' },
    ]);
  });

  it('shows thinking once, and its signature when the block ends', () => {
    const detail = { kind: 'text' as const, text: 'think', signature: 'c2ln', format: 'gemini' };
    const chunks = [
      chunk({ reasoning_content: 'thi' }),
      chunk({ reasoning_content: 'nk' }),
      chunk({ reasoning_details: [detail] }),
      chunk({ content: 'So' }, 'stop'),
    ];
    expect(partsOf(stream(chunks, THOUGHTS)).slice(0, 4)).to.deep.equal([
      { text: 'thi', thought: true },
      { text: 'nk', thought: true },
      { text: '', thought: true, thoughtSignature: 'c2ln' },
      { text: 'So' },
    ]);
    expect(partsOf(stream(chunks))[0]).to.deep.equal({ text: 'So' });
  });

  it('is one JSON array without alt=sse, also with signs of life, an error or nothing in it', () => {
    const error = new GatewayError('provider_timeout', 'Too late.');
    for (const [chunks, isError, count] of [
      [[chunk({ content: 'a' }), chunk({}, 'stop')], false, 2],
      [[chunk({ content: 'a' })], true, 2],
      [[], true, 1],
      [[], false, 1],
    ] as const) {
      const writer = dialect.stream(contextFor(BODY, {}));
      const texts = chunks.flatMap((each) => [writer.keepAlive ?? '', writer.push(each)]);
      const elements = JSON.parse(texts.join('') + (isError ? writer.fail(error, 'req_1') : writer.end()));
      expect(elements).to.have.length(count);
      if (isError) expect(elements.at(-1).error).to.include({ code: 504, status: 'DEADLINE_EXCEEDED' });
    }
    expect(dialect.stream(contextFor(BODY, {})).contentType).to.match(/^application\/json/);
  });
});

describe('an error of the gemini dialect', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[])
    it(`has a status of Google’s and one of HTTP: ${code}`, () => {
      const { body, status } = dialect.error(new GatewayError(code, 'Why.', { param: 'contents' }), 'req_1') as {
        body: { error: { code: number; status: string; details: [{ reason: string; metadata: object }] } };
        status?: number;
      };
      expect(body.error.code).to.equal(status ?? ERRORS[code].status);
      expect(body.error.status).to.match(/^[A-Z_]+$/);
      expect(body.error.details[0]).to.deep.include({ reason: code.toUpperCase(), domain: 'tollgate' });
      expect(body.error.details[0].metadata).to.deep.equal({ request_id: 'req_1', param: 'contents' });
    });

  it('reports an overlong prompt in the words that Google’s clients recognize', () => {
    const { body } = dialect.error(new GatewayError('context_length_exceeded', '9 tokens of 8.'), 'r');
    expect(JSON.stringify(body)).to.include('input token count exceeds the maximum');
  });
});

describe('the list of models of the gemini dialect', () => {
  const models = ['a', 'b', 'c'].map((id) => ({ id, ownedBy: 'echo', created: 1, contextWindow: 5 }));
  const list = (query: Record<string, string>) =>
    dialect.models?.list(models, query) as { models: { name: string }[]; nextPageToken?: string };

  it('has stable pages', () => {
    const first = list({ pageSize: '2' });
    const second = list({ pageSize: '2', pageToken: first.nextPageToken ?? '' });
    expect([...first.models, ...second.models].map(({ name }) => name)).to.deep.equal([
      'models/a',
      'models/b',
      'models/c',
    ]);
    expect(second).not.to.have.property('nextPageToken');
    for (const query of [{ pageSize: '-1' }, { pageSize: 'x' }, { pageToken: 'zz' }] as Record<string, string>[])
      expect(() => list(query))
        .to.throw()
        .with.property('code', 'invalid_request');
  });

  it('lists a model’s methods', () => {
    expect(dialect.models?.one(models[0]!)).to.deep.include({ name: 'models/a', displayName: 'a', inputTokenLimit: 5 });
    expect(JSON.stringify(list({}))).to.include('"supportedGenerationMethods":["generateContent"');
  });
});
