import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type IngressRig, MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';

interface Check {
  readonly side: 'request' | 'response';
  readonly is_last: boolean;
  readonly call: Readonly<Record<string, unknown>>;
  readonly texts: readonly {
    readonly path: string;
    readonly role?: string;
    readonly text: string;
    readonly before?: string;
  }[];
}

/** Service with responses set by the test. */
async function startService() {
  const checks: Check[] = [];
  const headers: http.IncomingHttpHeaders[] = [];
  let respond: (checks: Check) => unknown = () => ({ action: 'pass' });
  const server = http.createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(pieces).toString()) as Check;
      checks.push(body);
      headers.push(request.headers);
      const said = respond(body);
      if (typeof said === 'number') response.writeHead(said).end('{}');
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(said));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    checks,
    headers,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/check`,
    say(next: typeof respond) {
      checks.length = 0;
      respond = next;
    },
    stop: () => new Promise<unknown>((resolve) => server.close(resolve)),
  };
}

/** Combined content of a response. */
const textOf = (body: string): string =>
  [...body.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text).join('');

describe('the guardrail http-guardrail', () => {
  let service: Awaited<ReturnType<typeof startService>>;
  let rig: IngressRig;
  before(async () => {
    service = await startService();
    rig = await startIngressRig({
      policies: {
        'http-guardrail': { url: service.url, headers: { authorization: 'Bearer of-the-service' }, window: 20 },
      },
    });
  });
  after(async () => {
    await rig.stop();
    await service.stop();
  });

  const send = (content: string, stream: boolean) =>
    rig.gateway.post('/v1/chat/completions', { model: MODEL_OF.openai, stream, messages: [{ role: 'user', content }] });
  const SAID = 'one two three four five six seven eight nine ten eleven twelve';

  it('sends the texts of request and response, each with its place, and whose call it is', async () => {
    service.say(() => ({ action: 'pass' }));
    rig.say('openai', { pieces: [{ text: SAID }] });
    expect((await send('Count', false)).status).to.equal(200);
    expect(service.checks.map(({ side, is_last, texts }) => [side, is_last, texts])).to.deep.equal([
      ['request', true, [{ path: 'messages[0].content', role: 'user', text: 'Count' }]],
      ['response', true, [{ path: 'choices[0].content', text: SAID }]],
    ]);
    expect(service.checks[0]?.call).to.include({ operation: 'chat', model: MODEL_OF.openai });
    expect(service.headers[0]?.authorization).to.equal('Bearer of-the-service');
  });

  it('sends a stream in pieces, each with the previous text, and passes on the checked text', async () => {
    service.say(() => ({ action: 'pass' }));
    rig.say('openai', { pieces: [{ text: SAID }] });
    expect(textOf(await (await send('Count', true)).text())).to.equal(SAID);
    const pieces = service.checks.filter(({ side }) => side === 'response').flatMap(({ texts }) => texts);
    expect(pieces.length).to.be.above(2);
    expect(pieces.map(({ text }) => text).join('')).to.equal(SAID);
    expect(pieces.at(-1)?.before).to.equal(SAID.slice(0, SAID.length - (pieces.at(-1)?.text.length ?? 0)));
  });

  for (const stream of [false, true]) {
    it(`refuses denied texts, and reveals none of them${stream ? ', streamed' : ''}`, async () => {
      service.say(({ side }) => (side === 'request' ? { action: 'block', index: 0 } : { action: 'pass' }));
      const refused = await send('Secret plan', stream);
      expect(refused.status).to.equal(400);
      expect(await refused.text())
        .to.include('content_filtered')
        .and.include('messages[0].content')
        .and.not.include('plan');
      service.say(({ texts }) => ({
        action: texts.some(({ text, before = '' }) => /seven/.test(before + text)) ? 'block' : 'pass',
      }));
      rig.say('openai', { pieces: [{ text: SAID }] });
      const text = await (await send('Count', stream)).text();
      expect(text).to.include('content_filtered');
      expect(textOf(text)).to.not.include('seven');
    });

    it(`replaces texts${stream ? ', streamed' : ''}`, async () => {
      service.say(({ texts }) => ({ action: 'replace', texts: texts.map(({ text }) => text.toUpperCase()) }));
      rig.say('openai', { pieces: [{ text: SAID }, { call: 'f', id: 'c', arguments: '{"a":"b c"}' }] });
      const text = await (await send('Count', stream)).text();
      expect(rig.lastBody<{ messages: { content: string }[] }>('openai').messages[0]?.content).to.equal('COUNT');
      expect(textOf(text)).to.equal(SAID.toUpperCase());
      expect(text.replaceAll('\\', '')).to.include('"B C"').and.not.include('b c');
    });

    it(`passes nothing without a verdict of the service${stream ? ', streamed' : ''}`, async () => {
      for (const wrong of [500, { ok: true }, { action: 'replace', texts: [] }, { action: 'replace', texts: [1] }]) {
        service.say(({ side }) => (side === 'request' ? { action: 'pass' } : wrong));
        rig.say('openai', { pieces: [{ text: SAID }] });
        const text = await (await send('Count', stream)).text();
        expect(text, JSON.stringify(wrong)).to.include('returned no verdict').and.not.include('one');
        service.say(() => wrong);
        const before = rig.sent('openai').length;
        expect((await send('Count', stream)).status).to.equal(503);
        expect(rig.sent('openai')).to.have.length(before);
      }
    });
  }

  it('logs neither texts nor its headers', () => {
    expect(rig.gateway.logText())
      .to.include('returned no verdict')
      .and.not.match(/of-the-service|Secret plan|seven/);
  });
});

describe('the guardrail http-guardrail with onFailure: open', () => {
  it('passes calls while the service does not respond', async () => {
    const service = await startService();
    await service.stop();
    const rig = await startIngressRig({
      policies: { 'http-guardrail': { url: service.url, onFailure: 'open', window: 5 } },
    });
    try {
      for (const stream of [false, true]) {
        rig.say('openai', { pieces: [{ text: 'It works.' }] });
        const request = { model: MODEL_OF.openai, stream, messages: [{ role: 'user', content: 'Does it?' }] };
        const response = await rig.gateway.post('/v1/chat/completions', request);
        expect(response.status).to.equal(200);
        expect(textOf(await response.text())).to.equal('It works.');
      }
    } finally {
      await rig.stop();
    }
  });
});

describe('the guardrail http-guardrail with a bound', () => {
  it('refuses more than it may send', async () => {
    const service = await startService();
    const rig = await startIngressRig({ policies: { 'http-guardrail': { url: service.url, maxSize: 100 } } });
    try {
      const request = { model: MODEL_OF.openai, messages: [{ role: 'user', content: 'x'.repeat(101) }] };
      expect((await rig.gateway.post('/v1/chat/completions', request)).status).to.equal(413);
      expect(service.checks).to.have.length(0);
    } finally {
      await rig.stop();
      await service.stop();
    }
  });
});
