import { expect } from 'chai';
import type { ChatRequest, JsonObject } from '../../../contract/index.ts';
import bedrock from '../../../plugins/providers/bedrock.ts';
import { signV4 } from '../../../plugins/providers/kit/index.ts';
import { translate } from '../../support/formats/translate.ts';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import { amazonEvent, amazonException } from '../../support/vendors/amazon-frames.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  type RecordedRequest,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../support/vendors/scripted-upstream.ts';
import { eventually } from '../../support/wait.ts';

const CONFIG = { region: 'eu-central-1' };
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const NOVA = 'eu.amazon.nova-pro-v1:0';
const CLAUDE = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const PNG = 'data:image/png;base64,iVBORw0KGgo=';
const CALL = { id: 'call 1', type: 'function', function: { name: 'now', arguments: '{"at":1}' } };
const TOOL = { type: 'function', function: { name: 'now', description: 'The time', parameters: { type: 'object' } } };

const write = (fields: object) => translate(bedrock, { model: NOVA, ...fields }, CONFIG);

describe('bedrock: requests to Converse', () => {
  it('is a model in the path, once encoded, by the operation that streams or not', () => {
    expect(write({}).path).to.equal('/model/eu.amazon.nova-pro-v1%3A0/converse');
    expect(write({ stream: true }).path).to.equal('/model/eu.amazon.nova-pro-v1%3A0/converse-stream');
    const arn = 'arn:aws:bedrock:eu-central-1:1:application-inference-profile/x';
    expect(write({ model: arn }).path).to.equal(`/model/${encodeURIComponent(arn)}/converse`);
    expect(write({}).body).to.deep.equal({ messages: [{ role: 'user', content: [{ text: 'Hi' }] }] });
  });

  it('has instructions apart, calls with their results, images and documents as data', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url: PNG } },
          { type: 'file', file: { filename: 'a_b.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call 1', content: 'noon' },
      { role: 'user', content: 'And?' },
    ];
    const { body } = write({ messages, tools: [TOOL], tool_choice: 'required' });
    const [first, second, third] = body['messages'] as readonly { role: string; content: readonly JsonObject[] }[];
    expect(body['system']).to.deep.equal([{ text: 'Be brief.' }]);
    expect(first?.content).to.deep.equal([
      { text: 'Look' },
      { image: { format: 'png', source: { bytes: 'iVBORw0KGgo=' } } },
      { document: { format: 'pdf', name: 'a b pdf 1', source: { bytes: 'JVBERg==' } } },
    ]);
    const { toolUseId } = (second?.content[0]?.['toolUse'] ?? {}) as { toolUseId?: string };
    expect(toolUseId).to.match(/^call_1_[0-9a-f]{16}$/);
    expect(second?.content).to.deep.equal([{ toolUse: { toolUseId, name: 'now', input: { at: 1 } } }]);
    expect(third).to.deep.equal({
      role: 'user',
      content: [{ toolResult: { toolUseId, content: [{ text: 'noon' }] } }, { text: 'And?' }],
    });
    expect(body['toolConfig']).to.deep.equal({
      tools: [{ toolSpec: { name: 'now', description: 'The time', inputSchema: { json: { type: 'object' } } } }],
      toolChoice: { any: {} },
    });
  });

  describe('images of tool results', () => {
    const image = { image: { format: 'png', source: { bytes: 'iVBORw0KGgo=' } } };
    const png = { type: 'image_url', image_url: { url: PNG } };
    const result = (id: string, ...content: readonly object[]) => ({ role: 'tool', tool_call_id: id, content });
    const contentOf = (model: string, ...results: readonly { readonly tool_call_id: string }[]) => {
      const calls = results.map(({ tool_call_id: id }) => ({ ...CALL, id }));
      const messages = [{ role: 'user', content: 'Look' }, { role: 'assistant', tool_calls: calls }, ...results];
      const { body, dropped } = write({
        model,
        tools: [TOOL],
        messages: [...messages, { role: 'user', content: 'And?' }],
      });
      expect(dropped ?? []).to.deep.equal([]);
      return (body['messages'] as readonly { readonly content: readonly object[] }[])[2]?.content;
    };
    const block = (toolUseId: string, ...content: readonly object[]) => ({ toolResult: { toolUseId, content } });

    for (const model of ['openai.gpt-5.5', 'us.openai.gpt-6-sol-v1:0'])
      it(`G7: follow the results at ${model}, which refuses them inside`, () => {
        expect(contentOf(model, result('a', { type: 'text', text: 'Seen' }, png))).to.deep.equal([
          block('a', { text: 'Seen' }),
          { text: 'Result of call a:' },
          image,
          { text: 'And?' },
        ]);
        expect(contentOf(model, result('a', png, png), result('b'), result('c', png))).to.deep.equal([
          block('a', { text: 'The images follow the tool results.' }),
          block('b', { text: '(empty)' }),
          block('c', { text: 'The images follow the tool results.' }),
          ...[{ text: 'Result of call a:' }, image, image],
          ...[{ text: 'Result of call c:' }, image],
          { text: 'And?' },
        ]);
      });

    it('G7: stay inside at Nova and other models', () => {
      for (const model of [NOVA, 'mistral.pixtral-large-2502-v1:0'])
        expect(contentOf(model, result('a', { type: 'text', text: 'Seen' }, png))).to.deep.equal([
          block('a', { text: 'Seen' }, image),
          { text: 'And?' },
        ]);
    });

    it('G7: stay inside at Claude', () => {
      const { body } = write({
        model: CLAUDE,
        messages: [
          { role: 'user', content: 'Look' },
          { role: 'assistant', tool_calls: [{ ...CALL, id: 'a' }] },
          result('a', png),
        ],
      });
      const [, , last] = body['messages'] as readonly { readonly content: readonly JsonObject[] }[];
      expect(last?.content).to.have.length(1);
      expect(last?.content[0]).to.deep.include({ type: 'tool_result', tool_use_id: 'a' });
      expect(JSON.stringify(last?.content[0]?.['content'])).to.contain('"type":"image"');
    });
  });

  it('declares the tools that the history called, and none if none may be called', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'call 1', content: '' },
    ];
    expect(JSON.stringify(write({ messages }).body['toolConfig'])).to.include('"name":"now"');
    expect(write({ tools: [TOOL], tool_choice: 'none' }).body).to.not.have.property('toolConfig');
    expect(write({ messages, tools: [TOOL], tool_choice: 'none' }).dropped).to.deep.equal(['tool_choice']);
  });

  it('has limits, efforts and cache points if the model supports them', () => {
    const fields = { max_tokens: 9, temperature: 1.5, top_p: 0.5, stop: 'END', reasoning_effort: 'xhigh' };
    expect(write({ ...fields, model: 'amazon.nova-2-lite-v1:0' }).body).to.deep.include({
      inferenceConfig: { maxTokens: 9, temperature: 1, topP: 0.5, stopSequences: ['END'] },
      additionalModelRequestFields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } },
    });
    expect(write({ ...fields, model: 'openai.gpt-oss-120b-1:0' }).body).to.deep.include({
      additionalModelRequestFields: { reasoning_effort: 'high' },
    });
    expect(write({ ...fields, model: 'meta.llama4-scout-17b-instruct-v1:0' }).dropped).to.deep.equal([
      'reasoning_effort',
    ]);
    const marked = {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Long', cache_control: { type: 'ephemeral' } }] }],
    };
    const point = { cachePoint: { type: 'default' } };
    expect(JSON.stringify(write(marked).body)).to.include(JSON.stringify(point));
    expect(JSON.stringify(write({ ...marked, model: 'deepseek.v3.2' }).body)).to.not.include('cachePoint');
  });

  it('accepts back its own signed thinking, and none of others', () => {
    const details = [
      { kind: 'text', text: 'Hm', signature: 'sig', format: 'bedrock' },
      { kind: 'encrypted', data: 'x', format: 'responses' },
    ];
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Yes', reasoning_details: details },
      { role: 'user', content: 'Go' },
    ];
    const { body, dropped } = write({ messages });
    expect((body['messages'] as readonly JsonObject[])[1]?.['content']).to.deep.equal([
      { reasoningContent: { reasoningText: { text: 'Hm', signature: 'sig' } } },
      { text: 'Yes' },
    ]);
    expect(dropped).to.deep.equal(['reasoning']);
  });

  it('is refused with the place of an unsupported part', () => {
    const part = (value: object) => () => write({ messages: [{ role: 'user', content: [value] }] });
    expect(part({ type: 'image_url', image_url: { url: 'https://x.example/a.png' } })).to.throw(
      'does not accept other URLs',
    );
    expect(part({ type: 'image_url', image_url: { url: 'data:image/bmp;base64,AA==' } })).to.throw('JPEG, PNG');
    expect(part({ type: 'input_audio', input_audio: {} })).to.throw('messages[0].content[0].type');
  });
});

describe('bedrock: Claude', () => {
  it('gets its own format, without values in the path', () => {
    const { path, body } = write({ model: CLAUDE, max_tokens: 20, stream: true });
    expect(path).to.equal(`/model/${encodeURIComponent(CLAUDE)}/invoke-with-response-stream`);
    expect(body).to.deep.equal({
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 20,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    });
  });

  it('gets betas in the body', () => {
    const { body } = write({ model: CLAUDE, betas: ['context-1m-2025-08-07'] });
    expect(body['anthropic_beta']).to.deep.equal(['context-1m-2025-08-07']);
  });
});

describe('bedrock: its address', () => {
  const at = async (config: object): Promise<string> =>
    JSON.stringify(await (bedrock.check ?? expect.fail())(config as never, {} as never));
  it('is only that of the region', async () => {
    expect(await at({ region: 'eu-central-1' })).to.equal('[]');
    expect(await at({})).to.include('needs `region`');
    expect(await at({ region: 'eu-west-1', aws: { region: 'us-east-1', profile: 'x' } })).to.include('/region');
    expect(await at({ apiKey: 'k', aws: { region: 'us-east-1', profile: 'x' } })).to.include('apiKey');
  });
});

/** Response, as JSON and as the frames of a stream. */
const USAGE = { inputTokens: 10, outputTokens: 3, totalTokens: 13 };
const WHOLE = {
  output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } },
  stopReason: 'end_turn',
  usage: USAGE,
};
const FRAMES = [
  amazonEvent('messageStart', { role: 'assistant', p: 'abc' }),
  amazonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hel' }, p: 'abcdef' }),
  amazonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'lo' } }),
  amazonEvent('contentBlockStop', { contentBlockIndex: 0 }),
  amazonEvent('messageStop', { stopReason: 'end_turn' }),
  amazonEvent('metadata', { usage: USAGE, metrics: { latencyMs: 5 } }),
];
const inChunk = (event: object) =>
  amazonEvent('chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64') });
const CLAUDE_MESSAGE = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5' },
  ...{ content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn', stop_sequence: null },
  usage: { input_tokens: 10, output_tokens: 3 },
};
const CLAUDE_FRAMES = [
  inChunk({ type: 'message_start', message: { ...CLAUDE_MESSAGE, content: [], stop_reason: null } }),
  inChunk({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  inChunk({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
  inChunk({ type: 'content_block_stop', index: 0 }),
  inChunk({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
  inChunk({ type: 'message_stop' }),
];

describe('a gateway before Bedrock', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream();
    const signed = { region: 'eu-central-1', ...KEYS };
    gateway = await startGateway({
      providers: {
        bedrock: { aws: signed, baseUrl: vendor.url },
        keyed: { plugin: 'bedrock', apiKey: 'bedrock-api-key-0123456789', baseUrl: vendor.url, region: 'eu-central-1' },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const streams = (frames: readonly Buffer[], pieces = [Buffer.concat(frames)]) =>
    vendor.script(async (wire) => {
      await wire.send(
        head(200, { 'content-type': 'application/vnd.amazon.eventstream', 'transfer-encoding': 'chunked' }),
      );
      for (const piece of pieces) await wire.send(chunk(piece));
      await wire.send(LAST_CHUNK);
    });
  const send = async (fields: Partial<ChatRequest>) => {
    const body = { model: `bedrock/${NOVA}`, messages: [{ role: 'user', content: 'Grüße' }], ...fields };
    const response = await gateway.post('/v1/chat/completions', body);
    return { status: response.status, text: await response.text() };
  };
  const last = (): RecordedRequest => vendor.requests.at(-1) ?? expect.fail('nothing was sent');
  const wordsOf = (text: string): string =>
    [...text.matchAll(/"content":"([^"]*)"/g)].map(([, words]) => words).join('');

  const books = async () => {
    const { spent, held } = (await (await gateway.get('/api/core/balance')).json()) as JsonObject;
    return { spent, held };
  };

  /** Checks a signature as AWS does: over the received bytes. */
  const isSigned = ({ method, path, headers, body }: RecordedRequest): boolean => {
    const { authorization = '', 'x-amz-date': time = '' } = headers;
    const names = (/SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? []).filter(
      (name) => !/^(host|x-amz-date)$/.test(name),
    );
    const now = new Date(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
    const own = Object.fromEntries(names.map((name) => [name, headers[name] ?? '']));
    const made = signV4(
      { method, url: vendor.url + path, headers: own, body },
      KEYS,
      { region: 'eu-central-1', service: 'bedrock' },
      now,
    );
    return made['authorization'] === authorization;
  };

  for (const [what, model, whole, frames] of [
    ['Converse', NOVA, WHOLE, FRAMES],
    ['Claude', CLAUDE, CLAUDE_MESSAGE, CLAUDE_FRAMES],
  ] as const) {
    it(`signs its request and returns the response of ${what}`, async () => {
      vendor.script(respondWith(200, whole));
      const { status, text } = await send({ model: `bedrock/${model}` });
      expect(status, text).to.equal(200);
      const { choices, usage } = JSON.parse(text) as JsonObject & { choices: readonly JsonObject[] };
      expect(choices[0]).to.deep.include({ finish_reason: 'stop' });
      expect(choices[0]?.['message']).to.deep.include({ content: 'Hello' });
      expect(usage).to.deep.include({ prompt_tokens: 10, completion_tokens: 3 });
      expect(isSigned(last())).to.equal(true);
    });

    it(`returns the stream of ${what}, wherever its frames are split`, async () => {
      const bytes = Buffer.concat(frames);
      const pieces = Array.from({ length: Math.ceil(bytes.length / 33) }, (_, at) =>
        bytes.subarray(at * 33, at * 33 + 33),
      );
      streams(frames, pieces);
      const { text } = await send({ model: `bedrock/${model}`, stream: true, stream_options: { include_usage: true } });
      expect(wordsOf(text)).to.equal('Hello');
      expect(text).to.include('"prompt_tokens":10').and.include('"finish_reason":"stop"').and.include('[DONE]');
      expect(isSigned(last())).to.equal(true);
    });

    it(`ends a stream of ${what} with an error after an exception`, async () => {
      streams([...frames.slice(0, 3), amazonException('modelStreamErrorException', 'The model has ended its stream.')]);
      const { text } = await send({ model: `bedrock/${model}`, stream: true });
      expect(text).to.include('"error"').and.not.include('"finish_reason":"stop"');
      expect(text).to.not.include('[DONE]');
    });

    it(`E68: ends a stream of ${what} with an error if it is interrupted in a frame, charges the received part, and releases its reservation`, async () => {
      const before = await books();
      const bytes = Buffer.concat(frames.slice(0, 4));
      streams(frames, [bytes.subarray(0, -7)]);
      const { text } = await send({ model: `bedrock/${model}`, stream: true });
      expect(text).to.include('"error"').and.not.include('[DONE]');
      await eventually(async () => {
        const { spent, held } = await books();
        expect(held).to.equal('0.00');
        expect(Number(spent)).to.be.above(Number(before.spent));
      });
    });
  }

  it('refuses damaged frames', async () => {
    const bytes = Buffer.concat(FRAMES);
    bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
    streams(FRAMES, [bytes]);
    const { text } = await send({ stream: true });
    expect(text).to.include('"error"').and.not.include('[DONE]');
  });

  it('sends an API key of Bedrock unchanged', async () => {
    vendor.script(respondWith(200, WHOLE));
    expect((await send({ model: `keyed/${NOVA}` })).status).to.equal(200);
    expect(last().headers['authorization']).to.equal('Bearer bedrock-api-key-0123456789');
  });

  for (const [what, status, type, message, hint] of [
    [
      'is signed for another region',
      403,
      'InvalidSignatureException',
      "Credential should be scoped to a valid region, not 'eu-central-1'.",
      'The signature is for another region than the address',
    ],
    [
      'is signed by a clock that is off',
      403,
      'InvalidSignatureException',
      'Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z',
      'The clock of this machine is wrong',
    ],
    [
      'is signed with keys that have ended',
      403,
      'ExpiredTokenException',
      'The security token included in the request is expired',
      'Use credentials that are renewed',
    ],
    [
      'may not use the model',
      403,
      'AccessDeniedException',
      'User is not authorized to perform: bedrock:InvokeModel',
      'not authorized',
    ],
  ] as const)
    for (const stream of [false, true])
      it(`E68: logs why a request is refused that ${what}${stream ? ', streamed' : ''}, and does not charge it`, async () => {
        const before = await books();
        vendor.script(respondWith(status, { message }, { 'x-amzn-errortype': type }));
        const { status: said, text } = await send({ stream });
        expect(said).to.be.within(500, 599);
        expect(text).to.not.include(message).and.not.include('AKID');
        expect(gateway.logText()).to.include(hint).and.not.include(KEYS.secretAccessKey);
        expect(await books())
          .to.deep.equal(before)
          .and.include({ held: '0.00' });
      });

  it('distinguishes errors by the service’s own names', async () => {
    const fails = async (status: number, type: string, message: string) => {
      vendor.script(
        respondWith(status, { message }, { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` }),
      );
      const { status: reported, text } = await send({});
      return [reported, (JSON.parse(text) as { error: JsonObject }).error['code']];
    };
    expect(await fails(400, 'ValidationException', 'Input is too long for requested model.')).to.deep.equal([
      400,
      'context_length_exceeded',
    ]);
    expect((await fails(429, 'ThrottlingException', 'Too many tokens'))[0]).to.equal(429);
    expect(
      (await fails(403, 'ExpiredTokenException', 'The security token included in the request is expired'))[0],
    ).to.be.within(500, 599);
    expect(gateway.logText()).to.include('Use credentials that are renewed').and.not.include(KEYS.secretAccessKey);
  });
});
