/**
 * Event streams of operations other than chat end when the wire format declares the end, even if the vendor never
 * closes its socket.
 */
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { openAiVendor } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const SOUND = Buffer.alloc(4800).toString('base64');
const IMAGE_USAGE = { total_tokens: 100, input_tokens: 50, output_tokens: 50 };
const IMAGE = { type: 'image_generation.completed', b64_json: 'AAAA', usage: IMAGE_USAGE };

interface StreamCase {
  readonly title: string;
  readonly events: readonly object[];
  send(gateway: TestGateway): Promise<Response>;
  /** Matches the last event sent to the caller. */
  readonly last: RegExp;
}

const image = (n: number) => (gateway: TestGateway) =>
  gateway.post('/v1/images/generations', { model: 'openai/gpt-image-1', prompt: 'x', n, stream: true });

const CASES: readonly StreamCase[] = [
  {
    title: 'an image with its usage',
    events: [{ type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 }, IMAGE],
    send: image(1),
    last: /image_generation\.completed.*\n\n$/,
  },
  {
    title: 'the second of two images',
    events: [{ ...IMAGE, b64_json: 'BBBB' }, IMAGE],
    send: image(2),
    last: /BBBB[\s\S]*"AAAA".*\n\n$/,
  },
  {
    title: 'an image without usage',
    events: [{ type: IMAGE.type, b64_json: 'AAAA' }],
    send: image(1),
    last: /image_generation\.completed.*\n\n$/,
  },
  {
    title: 'a transcription',
    events: [
      { type: 'transcript.text.delta', delta: 'Hi' },
      { type: 'transcript.text.done', text: 'Hi', usage: { type: 'duration', seconds: 1 } },
    ],
    send({ url, key }) {
      const form = new FormData();
      form.set('file', new Blob([Buffer.from(SOUND, 'base64')], { type: 'audio/wav' }), 'a.wav');
      form.set('model', 'openai/gpt-4o-transcribe');
      form.set('stream', 'true');
      const headers = { authorization: `Bearer ${key}` };
      return fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
    },
    last: /transcript\.text\.done.*\n\n$/,
  },
];

const SPEECH = [
  [
    'OpenAI',
    'openai',
    [
      { type: 'speech.audio.delta', audio: SOUND },
      { type: 'speech.audio.done', usage: { input_tokens: 1, output_tokens: 2 } },
    ],
  ],
  [
    'Gemini',
    'gemini',
    [
      {
        candidates: [
          {
            content: { parts: [{ inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: SOUND } }] },
            finishReason: 'STOP',
          },
        ],
      },
    ],
  ],
] as const;

describe('an event stream of an operation whose vendor never closes its socket', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let wire: Wire | undefined;
  before(async () => {
    vendor = await startScriptedUpstream();
    gateway = await startGateway({
      providers: { openai: { apiKey: 'k', baseUrl: `${vendor.url}/v1` }, other: openAiVendor(vendor) },
      tts: {
        openai: { apiKey: 'k', baseUrl: vendor.url },
        gemini: { apiKey: 'k', baseUrl: vendor.url },
      },
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const hold = (events: readonly object[]): void =>
    vendor.script(async (open) => {
      wire = open;
      await open.send(SSE_HEAD);
      for (const event of events) await open.send(chunk(`data: ${JSON.stringify(event)}\n\n`));
      await open.hang();
    });

  for (const { title, events, send, last } of CASES)
    it(`G10: ends after ${title}`, async () => {
      hold(events);
      const text = await (await send(gateway)).text();
      expect(text).to.match(last).and.not.include('error');
      await until('the connection is closed', () => wire?.isGone === true);
    });

  for (const [name, instance, events] of SPEECH)
    it(`G10: ends after the sound of ${name}`, async () => {
      hold(events);
      const response = await gateway.post(`/${instance}/tts`, { text: 'Hi.', format: 'pcm' });
      expect(Buffer.from(await response.arrayBuffer()).toString('base64')).to.equal(SOUND);
      await until('the connection is closed', () => wire?.isGone === true);
    });
});
