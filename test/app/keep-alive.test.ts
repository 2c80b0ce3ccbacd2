import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';

const frames = (...events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const IMAGE = frames({
  type: 'image_generation.completed',
  b64_json: 'AAAA',
  usage: { input_tokens: 1, output_tokens: 1 },
});
const TEXT = frames(
  { type: 'transcript.text.delta', delta: 'Hello' },
  { type: 'transcript.text.done', text: 'Hello', usage: { type: 'tokens', input_tokens: 1, output_tokens: 1 } },
);
const CHAT = `${frames({ id: 'c', choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: 'stop' }] })}data: [DONE]\n\n`;

const form = (field: string, name: string, fields: Readonly<Record<string, string>>): FormData => {
  const made = new FormData();
  made.set(field, new Blob(['data']), name);
  for (const [key, value] of Object.entries(fields)) made.set(key, value);
  return made;
};
const CASES: readonly (readonly [what: string, path: string, body: object | FormData, stream: string])[] = [
  [
    'a chat',
    '/v1/chat/completions',
    { model: 'local/m', stream: true, messages: [{ role: 'user', content: 'Hi' }] },
    CHAT,
  ],
  ['an image', '/v1/images/generations', { model: 'local/m', prompt: 'A dot', stream: true }, IMAGE],
  [
    'an edited image',
    '/v1/images/edits',
    form('image', 'dot.png', { model: 'local/m', prompt: 'A dot', stream: 'true' }),
    IMAGE.replace('generation', 'edit'),
  ],
  ['a transcription', '/v1/audio/transcriptions', form('file', 'a.wav', { model: 'local/m', stream: 'true' }), TEXT],
];

describe('G16: a stream whose vendor is silent', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let release: () => void;
  let respond: (wire: Wire) => void;

  before(async () => {
    upstream = await startScriptedUpstream((wire: Wire) => {
      release = () => respond(wire);
    });
    gateway = await startGateway({
      server: { port: 0, sseKeepAlive: '100ms' },
      providers: {
        local: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'sk-local-key', models: ['*'] },
      },
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const send = (path: string, body: object | FormData): Promise<Response> =>
    fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        ...(!(body instanceof FormData) && { 'content-type': 'application/json' }),
      },
      body: body instanceof FormData ? body : JSON.stringify(body),
    });
  /** Reads the first bytes, lets the vendor respond, and reads the rest. */
  const read = async (response: Response): Promise<readonly [first: string, rest: string]> => {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const first = (await reader?.read())?.value ?? '';
    release();
    let rest = '';
    for (let step = await reader?.read(); step && !step.done; step = await reader?.read()) rest += step.value;
    return [first, rest];
  };

  for (const [what, path, body, stream] of CASES) {
    it(`of ${what} starts with a keep-alive after server.sseKeepAlive`, async () => {
      respond = (wire) => wire.send(respondWith(200, stream, { 'content-type': 'text/event-stream' }));
      const response = await send(path, body);
      expect(response.status).to.equal(200);
      expect(response.headers.get('content-type')).to.include('text/event-stream');
      const [first, rest] = await read(response);
      expect(first).to.equal(': keep-alive\n\n');
      expect(rest).to.include(what === 'a chat' || what === 'a transcription' ? 'Hello' : 'AAAA');
    });

    it(`of ${what} ends with the error if the vendor then fails`, async () => {
      respond = (wire) =>
        wire.send(respondWith(400, { error: { message: 'no such thing', type: 'invalid_request_error' } }));
      const [first, rest] = await read(await send(path, body));
      expect(first).to.equal(': keep-alive\n\n');
      expect(rest).to.match(/data: \{"error":\{/);
    });
  }
});
