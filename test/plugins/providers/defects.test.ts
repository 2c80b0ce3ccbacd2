/**
 * Known defects of other gateways and SDKs as tests, numbered as in the reference's list (section 11.1). Defects in
 * Gemini's and Anthropic's own formats are in their files, those of the pipeline in test/app.
 */
import { expect } from 'chai';
import { createEventReader } from '../../../contract/event-reader.ts';
import { failureToError } from '../../../contract/failures.ts';
import { type ChatChunk, type Plugin, StreamFailure } from '../../../contract/index.ts';
import azure from '../../../plugins/providers/azure.ts';
import deepseek from '../../../plugins/providers/deepseek.ts';
import groq from '../../../plugins/providers/groq.ts';
import hyperbolic from '../../../plugins/providers/hyperbolic.ts';
import mistral from '../../../plugins/providers/mistral.ts';
import openai from '../../../plugins/providers/openai.ts';
import compatible from '../../../plugins/providers/openai-compatible.ts';
import openrouter from '../../../plugins/providers/openrouter.ts';
import xai from '../../../plugins/providers/xai.ts';
import { readChunks } from '../../conformance/provider-shape.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

const CONFIG: Readonly<Record<string, object>> = {
  azure: { resource: 'acme' },
  'openai-compatible': { baseUrl: 'http://127.0.0.1:8000/v1' },
};

function providerOf(plugin: Plugin) {
  return setUpProvider(plugin, { ...CONFIG[plugin.name] });
}

/** Decodes lines of a stream; objects become `data:` events. */
function decode(
  plugin: Plugin,
  ...lines: readonly (object | string)[]
): { chunks: readonly ChatChunk[]; complete: boolean } {
  const decoder = providerOf(plugin).chat?.stream({
    model: 'm',
    stream: true,
    created: 1_750_000_000,
    id: 'chatcmpl-x',
  });
  if (!decoder) throw new Error('no chat');
  const text = lines.map((line) => (typeof line === 'string' ? `${line}\n\n` : `data: ${JSON.stringify(line)}\n\n`));
  const events = createEventReader().push(new TextEncoder().encode(text.join('')));
  const chunks = events.flatMap((event) => [...decoder.push(event)]);
  const end = decoder.end();
  return { chunks: [...chunks, ...end.chunks], complete: end.complete };
}

function delta(content: object, finish_reason: string | null = null, more: object = {}): object {
  return {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: content, finish_reason }],
    ...more,
  };
}

describe('defects of other gateways', () => {
  it('1: a stream that is cut is not complete, and no stop is invented', () => {
    const { chunks, complete } = decode(
      openai,
      delta({ role: 'assistant', content: 'half' }),
      delta({ content: ' an' }),
    );
    expect(complete).to.equal(false);
    expect(readChunks(chunks).choices[0]?.finish_reason).to.equal(null);
  });

  it('1: nor is one with [DONE] without a finish reason', () => {
    expect(decode(openai, delta({ role: 'assistant', content: 'half' }), 'data: [DONE]').complete).to.equal(false);
  });

  it('2: comments are removed, even if a relay converted them to data', () => {
    const { chunks } = decode(
      openrouter,
      ': OPENROUTER PROCESSING',
      'data: : OPENROUTER PROCESSING',
      delta({ role: 'assistant', content: 'x' }),
      delta({}, 'stop'),
    );
    expect(readChunks(chunks).choices[0]?.content).to.equal('x');
  });

  for (const [title, event] of [
    ['with empty choices', { error: { code: 502, message: 'no' }, choices: [] }],
    ['without choices', { error: { code: 502, message: 'no' } }],
    [
      'in a choice',
      { choices: [{ index: 0, delta: {}, error: { code: 502, message: 'no' }, finish_reason: 'error' }] },
    ],
    ['that is a text', { error: 'no' }],
  ] as const) {
    it(`3: an error in the middle of a stream, ${title}, is an error`, () => {
      expect(() => decode(openrouter, delta({ role: 'assistant', content: 'x' }), event)).to.throw(StreamFailure);
    });
  }

  it('10: tools that end with stop end with tool_calls', () => {
    const call = { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const { chunks } = decode(compatible, delta({ role: 'assistant', tool_calls: [call] }), delta({}, 'stop'));
    expect(readChunks(chunks).choices[0]?.finish_reason).to.equal('tool_calls');
  });

  it('12: usage with the last content is neither lost nor doubled', () => {
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
    const { chunks } = decode(
      mistral,
      delta({ role: 'assistant', content: 'x' }),
      delta({ content: '' }, 'stop', { usage }),
      'data: [DONE]',
    );
    expect(readChunks(chunks).usage).to.deep.equal(usage);
    expect(chunks.filter((chunk) => chunk.usage)).to.have.length(1);
  });

  it('13: the finish reason is sent before the end, once, also when the vendor repeats it', () => {
    const { chunks, complete } = decode(
      openai,
      delta({ role: 'assistant', content: 'x' }),
      delta({}, 'stop'),
      delta({}, 'stop'),
      'data: [DONE]',
    );
    expect(complete).to.equal(true);
    expect(readChunks(chunks).choices[0]?.finish_reason).to.equal('stop');
  });

  it('14: thinking goes back to the vendor that wants it', () => {
    const turn = { role: 'assistant', content: '', reasoning_content: 'hm', tool_calls: [] };
    expect(messagesOf(deepseek, [turn])[0]).to.include({ reasoning_content: 'hm' });
  });

  it('15: a used-up quota is not a rate limit, although its status is 429', () => {
    const body = {
      error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' },
    };
    expect(providerOf(openai).error(429, body, {}).class).to.equal('billing');
  });

  it('16: the vendor’s retry-after is preserved', () => {
    expect(providerOf(openai).error(429, {}, { 'retry-after': '11' }).retryAfterMs).to.equal(11_000);
  });

  it('17: an error that is a text is read', () => {
    const failure = providerOf(xai).error(
      403,
      { code: 'x', error: 'Your newly created teams doesn’t have any credits yet.' },
      {},
    );
    expect(failure).to.deep.include({ class: 'billing' });
    expect(failure.message).to.include('credits');
  });

  it('18: Mistral’s 401 for a used-up quota does not blame the key', () => {
    expect(providerOf(mistral).error(401, { detail: 'Unauthorized' }, {}).class).to.equal('billing');
  });

  it('19: Mistral’s full servers are no rate limit', () => {
    const body = {
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'invalid_request_error',
      param: null,
      code: null,
    };
    for (const status of [429, 503]) expect(providerOf(mistral).error(status, body, {}).class).to.equal('overloaded');
  });

  it('20: Azure’s chunks without choices, and choices without a delta, do no harm', () => {
    const { chunks, complete } = decode(
      azure,
      { id: '', choices: [], created: 0, model: '', object: '', prompt_filter_results: [] },
      delta({ role: 'assistant', content: 'x' }),
      {
        id: '',
        choices: [{ index: 0, finish_reason: null, content_filter_offsets: { check_offset: 1 } }],
        created: 0,
        model: '',
        object: '',
      },
      delta({}, 'stop'),
    );
    expect(readChunks(chunks).choices[0]?.content).to.equal('x');
    expect(complete).to.equal(true);
  });

  it('21: Hyperbolic’s path is not doubled, and its 404 without a body is an unknown model', () => {
    const { baseUrl, error } = providerOf(hyperbolic);
    expect(baseUrl + translate(hyperbolic, {}).path).to.equal('https://api.hyperbolic.xyz/v1/chat/completions');
    expect(error(404, '', {}).class).to.equal('model_not_found');
  });

  it('22: reasoning models get neither max_tokens nor temperature', () => {
    const { body } = translate(openai, { model: 'gpt-5', max_tokens: 5, temperature: 0.2 });
    expect(body).to.include({ max_completion_tokens: 5 }).and.not.have.any.keys('max_tokens', 'temperature');
  });

  it('23: chunks that hold a message for a delta are read', () => {
    const chunk = (message: object, finish_reason: string | null) => ({
      id: 'c',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message, finish_reason }],
    });
    const { chunks } = decode(
      hyperbolic,
      chunk({ role: 'assistant', content: 'a' }, null),
      chunk({ content: 'b' }, 'stop'),
    );
    expect(readChunks(chunks).choices[0]?.content).to.equal('ab');
  });

  it('24: keys and organisations in a vendor’s message do not reach the caller', () => {
    const cases: readonly (readonly [Plugin, number, object, RegExp])[] = [
      [
        openai,
        401,
        {
          error: {
            message: 'Incorrect API key provided: sk-abcdefgh***wxyz.',
            type: 'invalid_request_error',
            code: 'invalid_api_key',
          },
        },
        /sk-/,
      ],
      [
        openai,
        429,
        {
          error: {
            message: 'Rate limit reached in organization org-AbCdEf123456 on tokens per min',
            type: 'tokens',
            code: 'rate_limit_exceeded',
          },
        },
        /org-/,
      ],
      [
        openai,
        400,
        {
          error: {
            message: 'No such thing for sk-proj-abcdefgh12345678abcdefgh in org-AbCdEf1234567890',
            type: 'invalid_request_error',
            code: null,
          },
        },
        /sk-proj|org-Ab/,
      ],
      [
        groq,
        400,
        { error: { message: 'Bad in organization `org_01habcdefghijklmnopqrstuv`', type: 'invalid_request_error' } },
        /org_01/,
      ],
      [xai, 400, { code: 'x', error: 'Incorrect API key provided: sk***YA.' }, /sk\*|YA/],
    ];
    for (const [plugin, status, body, secret] of cases) {
      const error = failureToError(providerOf(plugin).error(status, body, {}), plugin.name);
      expect(JSON.stringify(error.toBody())).not.to.match(secret);
    }
  });
});
