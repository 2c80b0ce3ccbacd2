import net from 'node:net';
import { expect } from 'chai';
import { fixture } from '../../../support/speech/sound.ts';
import { KEY, readAll, type SpeechGateway, startScriptedSpeech } from '../../../support/speech/speech-gateway.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';
import { until } from '../../../support/wait.ts';

const mp3 = fixture('hi.mp3');
const MP3 = { 'content-type': 'audio/mpeg' };
const CHUNKED = head(200, { ...MP3, 'transfer-encoding': 'chunked' });

describe('the flow of sound', () => {
  let upstream: ScriptedUpstream;
  let gateway: SpeechGateway;

  before(async () => {
    ({ upstream, gateway } = await startScriptedSpeech());
  });
  after(async () => {
    await gateway.close();
    await upstream.close();
  });

  it('passes the first bytes on before the vendor has sent the last', async () => {
    let finish = () => {};
    const more = new Promise<void>((resolve) => {
      finish = resolve;
    });
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3.subarray(0, 1500)));
      await more;
      await wire.send(chunk(mp3.subarray(1500)));
      await wire.send(LAST_CHUNK);
    });
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    const reader = response.body?.getReader();
    const first = await reader?.read();
    expect(first?.value?.length).to.equal(1500);
    finish();
    const rest = await reader?.read();
    expect(rest?.value?.length).to.equal(mp3.length - 1500);
    expect((await reader?.read())?.done).to.equal(true);
  });

  const errors: readonly [string, Buffer, number, string][] = [
    ['a bad key of the operator', respondWith(401, { error: { message: 'no' } }), 503, 'provider_auth_failed'],
    ['a limit of the vendor', respondWith(429, { error: { message: 'no' } }), 429, 'upstream_rate_limited'],
    ['an overloaded vendor', respondWith(503, 'busy'), 503, 'provider_overloaded'],
    ['a vendor’s refusal', respondWith(400, { error: { message: 'bad', param: 'input' } }), 400, 'invalid_request'],
    ['an answer without sound', respondWith(200, '', MP3), 503, 'provider_unavailable'],
    ['JSON with a good status', respondWith(200, { oops: true }), 503, 'provider_invalid_response'],
    ['sound of another format', respondWith(200, fixture('hi.opus'), MP3), 503, 'provider_invalid_response'],
  ];
  for (const [title, bytes, status, code] of errors) {
    it(`makes a JSON error of ${title}`, async () => {
      upstream.script(bytes);
      const response = await gateway.post('/openai/tts', { text: 'Hi.' });
      expect(response.status).to.equal(status);
      expect(response.headers.get('content-type')).to.include('application/json');
      const { error } = (await response.json()) as { error: { code: string } };
      expect(error.code).to.equal(code);
    });
  }

  const cuts: readonly [string, Script][] = [
    [
      'breaks the connection',
      async (wire) => {
        await wire.send(CHUNKED);
        await wire.send(chunk(mp3.subarray(0, 1500)));
        wire.reset();
      },
    ],
    [
      'ends cleanly inside a frame',
      async (wire) => {
        await wire.send(CHUNKED);
        await wire.send(chunk(mp3.subarray(0, 1500)));
        await wire.send(LAST_CHUNK);
      },
    ],
    [
      'sends less than it said',
      async (wire) => {
        await wire.send(head(200, { ...MP3, 'content-length': String(mp3.length) }));
        await wire.send(mp3.subarray(0, 1500));
        wire.end();
      },
    ],
  ];
  for (const [title, script] of cuts) {
    it(`never ends a clip as if it were complete when the vendor ${title}`, async () => {
      upstream.script(script);
      // Cut before the headers were sent, the caller gets no response. Cut later, the response is interrupted.
      const streamed = await gateway.post('/openai/tts', { text: 'Hi.' }).catch(() => undefined);
      if (streamed?.status === 200) expect((await readAll(streamed)).whole).to.equal(false);
      else expect(streamed?.status).to.be.oneOf([undefined, 503]);
      upstream.script(script);
      const json = await gateway.post('/openai/tts', { text: 'Hi.', stream: false });
      expect(json.status).to.equal(503);
      await json.text();
    });
  }

  it('sends the length to HTTP/1.0 callers, who could not detect a cut', async () => {
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3));
      await wire.send(LAST_CHUNK);
    });
    const body = JSON.stringify({ text: 'Hi.' });
    const { port, hostname } = new URL(gateway.url);
    const socket = net.connect(Number(port), hostname);
    socket.write(
      `POST /openai/tts HTTP/1.0\r\nHost: x\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    let raw = '';
    for await (const bytes of socket) raw += (bytes as Buffer).toString('latin1');
    expect(raw.toLowerCase()).to.include(`content-length: ${mp3.length}`);
  });

  it('hangs up on the vendor when the caller hangs up', async () => {
    upstream.script(async (wire) => {
      await wire.send(CHUNKED);
      await wire.send(chunk(mp3));
      await wire.hang();
    });
    const before = upstream.requests.length;
    const response = await gateway.post('/openai/tts', { text: 'Hi.' });
    const reader = response.body?.getReader();
    await reader?.read();
    const request = await upstream.request(before);
    await reader?.cancel();
    await request.closed;
  });

  it('reads from the vendor only as fast as the caller reads', async () => {
    let sent = 0;
    let seen = -1;
    let rounds = 0;
    let finished = false;
    upstream.script(async (wire) => {
      await wire.send(head(200, { 'content-type': 'audio/pcm', 'transfer-encoding': 'chunked' }));
      for (let round = 0; round < 30 && !wire.isGone; round++) {
        await wire.send(chunk(Buffer.alloc(1024 * 1024, 1)));
        sent += 1;
      }
      await wire.send(LAST_CHUNK);
      finished = true;
    });
    const { port, hostname } = new URL(gateway.url);
    const socket = net.connect(Number(port), hostname);
    const body = JSON.stringify({ text: 'Hi.', format: 'pcm' });
    socket.write(
      `POST /bare/tts HTTP/1.1\r\nHost: x\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    await until('the way is full', () => {
      const stuck = sent > 0 && sent === seen;
      seen = sent;
      rounds = stuck ? rounds + 1 : 0;
      return rounds > 50;
    });
    expect(finished).to.equal(false);
    expect(sent).to.be.below(25);
    socket.destroy();
  });
});
