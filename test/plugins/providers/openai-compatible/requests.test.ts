import { expect } from 'chai';
import fc from 'fast-check';
import { type ChatRequest, type CodecCall, isGatewayError } from '../../../../contract/index.ts';
import type { CompatibleSpec } from '../../../../plugins/formats/openai-chat/types.ts';
import openaiCompatible, {
  openaiCompatible as compatible,
  drop,
  emulate,
  pass,
  refuse,
  rename,
  within,
} from '../../../../plugins/providers/openai-compatible.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';

const CALL: CodecCall = { model: 'm', stream: false, created: 1, id: 'id' };
const messages = [{ role: 'user', content: 'Hi' }] as const;

function requestOf(spec: Partial<CompatibleSpec>, fields: object, call: Partial<CodecCall> = {}) {
  const { chat } = setUpProvider(compatible({ name: 'acme', baseUrl: 'https://acme.example/v1', ...spec }), {});
  if (!chat) throw new Error('no chat');
  return chat.request({ model: 'm', messages, ...fields } as ChatRequest, { ...CALL, ...call });
}

function bodyOf(spec: Partial<CompatibleSpec>, fields: object, call: Partial<CodecCall> = {}) {
  const { body } = requestOf(spec, fields, call);
  return body as Readonly<Record<string, unknown>>;
}

describe('a field rule', () => {
  it('passes a field', () => {
    expect(bodyOf({ fields: { seed: pass() } }, { seed: 7 })).to.include({ seed: 7 });
  });
  it('passes a field that is not named', () => {
    expect(bodyOf({}, { seed: 7 })).to.include({ seed: 7 });
  });
  it('converts a field', () => {
    expect(bodyOf({ fields: { seed: pass('', (seed) => Number(seed) + 1) } }, { seed: 7 })).to.include({ seed: 8 });
  });
  it('drops a field and reports it when its conversion finds no value', () => {
    expect(requestOf({ fields: { seed: pass('', () => undefined) } }, { seed: 7 })).to.deep.include({
      dropped: ['seed'],
    });
  });
  it('renames a field', () => {
    const body = bodyOf({ fields: { max_completion_tokens: rename('max_tokens') } }, { max_completion_tokens: 5 });
    expect(body).to.include({ max_tokens: 5 }).and.not.have.property('max_completion_tokens');
  });
  it('D2: sends one limit of output, the larger, which was reserved', () => {
    const both = { max_completion_tokens: 5, max_tokens: 3 };
    expect(bodyOf({ fields: { max_completion_tokens: rename('max_tokens') } }, both)).to.include({ max_tokens: 5 });
  });
  it('drops a field and reports it', () => {
    expect(requestOf({ fields: { seed: drop() } }, { seed: 7 })).to.deep.include({ dropped: ['seed'] });
  });
  it('silently drops a field without effect', () => {
    expect(requestOf({ fields: { logprobs: drop('', false) } }, { logprobs: false })).not.to.have.property('dropped');
  });
  it('refuses a field with its name', () => {
    expect(() => requestOf({ fields: { n: refuse('one only', 1) } }, { n: 2 }))
      .to.throw('one only')
      .that.includes({ code: 'invalid_request', param: 'n' });
  });
  it('accepts the neutral value of a refused field', () => {
    expect(bodyOf({ fields: { n: refuse('one only', 1) } }, { n: 1 })).not.to.have.property('n');
  });
  it('refuses a number outside its range', () => {
    expect(() => requestOf({ fields: { temperature: within(0, 1.5) } }, { temperature: 1.6 }))
      .to.throw('between 0 and 1.5')
      .that.includes({ param: 'temperature' });
  });
  it('emulates a field after all others, and reports an incomplete emulation', () => {
    const fields = { n: emulate('as count', (n) => ({ body: { count: n, seed: undefined }, dropped: true })) };
    const { body, dropped } = requestOf({ fields }, { n: 2, seed: 7 });
    expect(body).to.include({ count: 2 }).and.not.have.property('seed');
    expect(dropped).to.deep.equal(['n']);
  });
  it('drops unknown fields if the vendor is strict, but not its own', () => {
    const spec = { unknown: 'dropped', extras: ['top_k'] } as const;
    expect(requestOf(spec, { top_k: 5, shiny: true })).to.deep.include({ dropped: ['shiny'] });
    expect(bodyOf(spec, { top_k: 5 })).to.include({ top_k: 5 });
  });
  it('never allows a caller to change the route, unless the name is the vendor’s own', () => {
    const { body, dropped } = requestOf({ extras: ['provider'] }, { api_key: 'x', provider: { order: ['a'] } });
    expect(body)
      .to.deep.include({ provider: { order: ['a'] } })
      .and.not.have.property('api_key');
    expect(dropped).to.deep.equal(['api_key']);
  });
  it('reports no name that is invalid in a header', () => {
    const strange = { 'a\r\nb': 1, ['x'.repeat(65)]: 1, ok: 1 } as object;
    expect(requestOf({ unknown: 'dropped' }, strange).dropped).to.deep.equal(['ok']);
  });
  it('lays the first fitting variant over the table', () => {
    const spec: Partial<CompatibleSpec> = {
      fields: { seed: drop() },
      variants: [
        { when: 'a', applies: ({ model }) => model === 'a', example: { model: 'a' }, fields: { seed: pass() } },
        { when: 'all', applies: () => true, example: { model: 'b' }, fields: { user: drop() }, defaults: { top_k: 1 } },
      ],
    };
    expect(bodyOf(spec, { model: 'a', seed: 7, user: 'u' })).to.include({ seed: 7, user: 'u' });
    const { body, dropped } = requestOf(spec, { model: 'b', seed: 7, user: 'u' });
    expect(dropped).to.deep.equal(['seed', 'user']);
    expect(body).to.include({ top_k: 1 });
  });
  it('applies a variant of the table for its models, if the request matches too', () => {
    const spec: Partial<CompatibleSpec> = {
      fields: { seed: drop() },
      modelOf: (name) => (name === 'prod' ? 'b-1' : name),
      variants: [
        { when: 'a', models: /^a/, example: { model: 'a' }, fields: { seed: pass() } },
        {
          when: 'b with a user',
          models: /^b/,
          applies: ({ user }) => user !== undefined,
          example: { model: 'b', user: 'u' },
          fields: {
            seed: rename('random_seed'),
            user: emulate('the model', (_, { model }) => ({ body: { user: model } })),
          },
        },
      ],
    };
    const { chat } = setUpProvider(compatible({ name: 'acme', baseUrl: 'https://acme.example/v1', ...spec }), {});
    const read = (fields: object) => chat?.request({ model: 'm', messages, ...fields }, CALL).body;
    for (let round = 0; round < 2; round += 1) {
      expect(read({ model: 'a-1', seed: 7 })).to.include({ seed: 7 });
      expect(read({ model: 'b-1', seed: 7 })).to.not.have.any.keys('seed', 'random_seed');
      expect(read({ model: 'prod', seed: 7, user: 'u' })).to.include({ random_seed: 7, user: 'b-1' });
      expect(read({ model: 'c', seed: 7, user: 'u' })).to.not.have.any.keys('seed', 'random_seed');
    }
  });
  it('sends a default only when the caller gave nothing', () => {
    const spec = { defaults: { top_p: 0.5 } };
    expect(bodyOf(spec, { top_p: null })).to.include({ top_p: 0.5 });
    expect(bodyOf(spec, { top_p: 1 })).to.include({ top_p: 1 });
  });
});

describe('a stream request', () => {
  const stream = { stream: true };
  it('requests usage whether the caller did or not', () => {
    for (const stream_options of [undefined, null, {}, { include_usage: false }]) {
      const body = bodyOf({}, { stream: true, stream_options }, stream);
      expect(body['stream_options']).to.deep.equal({ include_usage: true });
    }
  });
  it('omits the options if usage is always sent', () => {
    const body = bodyOf({ streamUsage: 'always' }, { stream: true, stream_options: { include_usage: true } }, stream);
    expect(body).to.include({ stream: true }).and.not.have.property('stream_options');
  });
  it('adds the vendor’s own options', () => {
    const body = bodyOf({ streamOptions: { include_obfuscation: false } }, { stream: true }, stream);
    expect(body['stream_options']).to.deep.equal({ include_obfuscation: false, include_usage: true });
  });
  it('is a stream if the call is one, whatever the body has', () => {
    expect(bodyOf({}, {}, stream)).to.include({ stream: true });
    expect(bodyOf({}, { stream: true, stream_options: {} })).to.not.have.any.keys('stream', 'stream_options');
  });
});

describe('messages', () => {
  const sent = (list: readonly object[], spec: Partial<CompatibleSpec> = {}) =>
    bodyOf(spec, { messages: list })['messages'] as readonly Record<string, unknown>[];

  it('leave earlier thinking out, or send it under the vendor’s name', () => {
    const turn = { role: 'assistant', content: 'x', reasoning_content: 'hm' };
    expect(sent([turn])[0]).to.deep.equal({ role: 'assistant', content: 'x' });
    expect(sent([turn], { replay: 'reasoning_content' })[0]).to.deep.equal(turn);
    expect(sent([turn], { replay: 'reasoning' })[0]).to.deep.equal({
      role: 'assistant',
      content: 'x',
      reasoning: 'hm',
    });
  });

  it('drop another vendor’s members of a tool call', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const decorated = { ...call, index: 0, extra_content: { google: { thought_signature: 'x' } } };
    expect(sent([{ role: 'assistant', content: null, tool_calls: [decorated] }])[0]?.['tool_calls']).to.deep.equal([
      call,
    ]);
  });

  it('shorten long ids the same way in call and result', () => {
    const id = `call_${'x'.repeat(100)}`;
    const toolIds = { valid: /^.{1,40}$/, length: 40 };
    const [turn, result] = sent(
      [
        { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: id, content: 'x' },
      ],
      { toolIds },
    );
    const [call] = (turn?.['tool_calls'] ?? []) as readonly { readonly id: string }[];
    expect(call?.id).to.have.length(40).and.equal(result?.['tool_call_id']);
  });

  it('drop cache marks if they have no meaning, on parts and on tools', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const part = { type: 'text', text: 'x' };
    const tool = { type: 'function', function: { name: 'f' } };
    const fields = { messages: [{ role: 'user', content: [{ ...part, ...mark }] }], tools: [{ ...tool, ...mark }] };
    expect(bodyOf({}, fields)).to.deep.include({ messages: [{ role: 'user', content: [part] }], tools: [tool] });
    expect(bodyOf({ cacheMarks: true }, fields)).to.deep.include(fields);
  });

  it('keep custom tool calls', () => {
    const call = { id: 'c', type: 'custom', custom: { name: 'f', input: 'x' } };
    expect(sent([{ role: 'assistant', content: null, tool_calls: [call] }])[0]?.['tool_calls']).to.deep.equal([call]);
  });
});

describe('openai-compatible', () => {
  it('reads its base URL and the server’s missing features from the configuration', () => {
    const provider = setUpProvider(openaiCompatible, {
      baseUrl: 'http://127.0.0.1:1234/v1/',
      drop: ['seed'],
      rename: { max_completion_tokens: 'max_tokens' },
    });
    expect(provider.baseUrl).to.equal('http://127.0.0.1:1234/v1');
    const request = provider.chat?.request({ model: 'm', messages, seed: 1, max_completion_tokens: 5 }, CALL);
    expect(request).to.deep.include({ dropped: ['seed'] });
    expect(request?.body).to.include({ max_tokens: 5 });
  });

  it('accepts any model until the configuration lists some', () => {
    const baseUrl = 'http://127.0.0.1:1234/v1';
    expect(setUpProvider(openaiCompatible, { baseUrl }).anyModel).to.equal(true);
    expect(setUpProvider(openaiCompatible, { baseUrl, models: ['m'] }).anyModel).to.equal(undefined);
    expect(setUpProvider(openaiCompatible, { baseUrl, models: ['*'] }).anyModel).to.equal(true);
  });

  it('sends the role developer as system, unless the server is configured to support it', () => {
    const baseUrl = 'http://127.0.0.1:1234/v1';
    const list = [{ role: 'developer', content: 'x' }] as const;
    const roleOf = (config: object) => {
      const request = setUpProvider(openaiCompatible, { baseUrl, ...config }).chat?.request(
        { model: 'm', messages: list },
        CALL,
      );
      return (request?.body as ChatRequest | undefined)?.messages[0]?.role;
    };
    expect(roleOf({})).to.equal('system');
    expect(roleOf({ developerRole: true })).to.equal('developer');
  });
});

describe('any chat request', () => {
  it('becomes JSON or a refusal, never a crash', () => {
    const field = fc.constantFrom(
      'temperature',
      'n',
      'tools',
      'functions',
      'function_call',
      'max_tokens',
      'extra_body',
      'stop',
      'response_format',
      'constructor',
      '__proto__',
      'toString',
      'x y',
    );
    fc.assert(
      fc.property(fc.dictionary(field, fc.jsonValue()), fc.boolean(), (fields, stream) => {
        try {
          const { body } = requestOf({ unknown: 'dropped', fields: { n: refuse('', 1) } }, fields, { stream });
          JSON.parse(JSON.stringify(body));
        } catch (error) {
          if (!isGatewayError(error)) throw error;
        }
      }),
    );
  });
});
