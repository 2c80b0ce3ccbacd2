/** A model that refuses after some text: callers get its own words alone. */
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, wholeBody } from '../support/vendors/vendor-wires.ts';

const SAID = { pieces: [{ text: 'No.' }], finish: 'content_filter' } as const;
const HELLO = [{ role: 'user', content: 'Hi' }];
const MODEL = 'anthropic/claude-opus-4-5';

const WAYS: Readonly<Record<string, (stream: boolean) => readonly [path: string, body: object]>> = {
  chat: (stream) => ['/v1/chat/completions', { model: MODEL, stream, messages: HELLO }],
  completions: (stream) => ['/v1/completions', { model: MODEL, stream, prompt: 'Hi' }],
  responses: (stream) => ['/v1/responses', { model: MODEL, stream, input: 'Hi', store: false }],
  gemini: (stream) => [
    `/v1beta/models/${MODEL}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  ],
};

describe('a refusal after text', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    vendor = await startScriptedUpstream();
    gateway = await startGateway({ providers: { anthropic: { baseUrl: vendor.url, apiKey: 'k', models: ['*'] } } });
  });
  after(() => Promise.all([gateway?.stop(), vendor?.close()]));

  for (const way of Object.keys(WAYS))
    it(`has no words of the gateway in ${way}, whole and streamed (G14)`, async () => {
      for (const stream of [false, true]) {
        const events = streamText('anthropic', SAID);
        if (stream) vendor.script((to) => to.send(`${SSE_HEAD}${chunk(events)}${LAST_CHUNK}`));
        else vendor.script(respondWith(200, wholeBody('anthropic', SAID)));
        const [path, body] = WAYS[way]?.(stream) ?? ['', {}];
        const response = await fetch(gateway.url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        const text = await response.text();
        expect(response.status, text).to.equal(200);
        expect(text).to.match(/content_filter|SAFETY/);
        expect(text).not.to.include('refused');
        expect(vendor.requests.length).to.be.above(0);
      }
    });
});
