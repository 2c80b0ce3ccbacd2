import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { startGateway } from '../../support/gateways/gateway.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';
import { readBlocks } from '../../support/pages/read-blocks.ts';
import { eventually } from '../../support/wait.ts';

interface HookEvent {
  readonly version: number;
  readonly hook: string;
  readonly call: Readonly<Record<string, unknown>>;
  readonly request?: { readonly messages: readonly { readonly content: string }[] };
  readonly response?: { readonly choices: readonly object[] };
  readonly chunks?: readonly { readonly choices: readonly { readonly delta: { readonly content?: string } }[] }[];
  readonly is_last?: boolean;
  readonly error?: Readonly<Record<string, unknown>>;
  readonly outcome?: Readonly<Record<string, unknown>>;
}

const PASS = { action: 'pass' };

/** Service with responses set by the test. */
async function startService() {
  const events: HookEvent[] = [];
  const headers: http.IncomingHttpHeaders[] = [];
  let respond: (event: HookEvent) => unknown = () => PASS;
  const server = http.createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const event = JSON.parse(Buffer.concat(pieces).toString()) as HookEvent;
      events.push(event);
      headers.push(request.headers);
      const said = respond(event);
      if (typeof said === 'number') response.writeHead(said, { location: '/elsewhere' }).end('{}');
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(said));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    events,
    headers,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    say(next: typeof respond) {
      events.length = 0;
      respond = next;
    },
    stop: () => new Promise<unknown>((resolve) => server.close(resolve)),
  };
}

/** Combined content of a response. */
const textOf = (body: string): string =>
  [...body.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text).join('');

const SAID = 'one two three four five six seven eight nine ten';

/** Verdicts of a service on these hooks; all others pass. */
const only =
  (hooks: readonly string[], verdict: (event: HookEvent) => unknown) =>
  (event: HookEvent): unknown =>
    hooks.includes(event.hook) ? verdict(event) : PASS;

describe('the policy http-hook', () => {
  let service: Awaited<ReturnType<typeof startService>>;
  let rig: IngressRig;
  before(async () => {
    service = await startService();
    rig = await startIngressRig({
      policies: {
        'http-hook': {
          ...{ url: service.url, headers: { authorization: 'Bearer of-the-service' }, window: 20 },
          hooks: ['admit', 'prepare', 'receive', 'error', 'finish'],
        },
      },
    });
  });
  beforeEach(() => rig.say('openai', { pieces: [{ text: SAID }] }));
  after(async () => {
    await rig.stop();
    await service.stop();
  });

  const send = (content: string, stream = false) =>
    rig.gateway.post('/v1/chat/completions', { model: MODEL_OF.openai, stream, messages: [{ role: 'user', content }] });
  const eventOf = (hook: string): Promise<HookEvent> =>
    eventually(async () => {
      const found = service.events.find((event) => event.hook === hook);
      if (!found) throw new Error(`no ${hook} was sent`);
      return found;
    });

  it('sends each hook of a call in its order, with its subject and without credentials', async () => {
    service.say(() => PASS);
    expect((await send('Count')).status).to.equal(200);
    const { outcome } = await eventOf('finish');
    expect(service.events.map(({ hook, version }) => [hook, version])).to.deep.equal(
      ['admit', 'prepare', 'receive', 'finish'].map((hook) => [hook, 1]),
    );
    const [admit, prepare, receive] = service.events;
    expect(admit?.call).to.include({ operation: 'chat', model: MODEL_OF.openai, dialect: 'chat', stream: false });
    expect(admit?.call['targets']).to.deep.equal([MODEL_OF.openai]);
    expect(prepare?.request?.messages).to.deep.equal([{ role: 'user', content: 'Count' }]);
    expect(JSON.stringify(receive?.response?.choices)).to.include(SAID);
    expect(outcome).to.include({ status: 'ok', target: MODEL_OF.openai, attempts: 1 }).and.have.property('usage');
    expect(service.headers[0]?.authorization).to.equal('Bearer of-the-service');
    expect(JSON.stringify(service.events)).to.not.include(rig.gateway.key);
  });

  it('sends a stream piece by piece, and passes all of it on', async () => {
    service.say(() => PASS);
    expect(textOf(await (await send('Count', true)).text())).to.equal(SAID);
    const pieces = service.events.filter(({ hook }) => hook === 'stream');
    expect(pieces.length).to.be.above(1);
    expect(
      pieces
        .flatMap(({ chunks = [] }) => chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')))
        .join(''),
    ).to.equal(SAID);
  });

  for (const stream of [false, true]) {
    const streamed = stream ? ', streamed' : '';
    it(`replaces a request and a response${streamed}`, async () => {
      const shout = <T>(value: T): T =>
        JSON.parse(
          JSON.stringify(value).replace(/"content":"[^"]*"/g, (text) =>
            text.toUpperCase().replace('CONTENT', 'content'),
          ),
        );
      service.say((event) => {
        if (event.hook === 'prepare') return { action: 'replace', request: shout(event.request) };
        if (event.hook === 'receive') return { action: 'replace', response: shout(event.response) };
        return event.hook === 'stream' ? { action: 'replace', chunks: shout(event.chunks) } : PASS;
      });
      const text = await (await send('Count', stream)).text();
      expect(rig.lastBody<{ messages: { content: string }[] }>('openai').messages[0]?.content).to.equal('COUNT');
      expect(textOf(text)).to.equal(SAID.toUpperCase());
    });

    it(`refuses with the code and the message of the service, before and after the provider${streamed}`, async () => {
      const refuse = { action: 'refuse', code: 'permission_denied', message: 'Not today.' };
      const before = rig.sent('openai').length;
      for (const hook of ['admit', 'prepare']) {
        service.say(only([hook], () => refuse));
        const response = await send('Count', stream);
        expect(response.status, hook).to.equal(403);
        expect(await response.text()).to.include('Not today.');
      }
      expect(rig.sent('openai')).to.have.length(before);
      let said = '';
      service.say(
        only(['receive', 'stream'], (event) => {
          said += textOf(JSON.stringify(event.response ?? event.chunks));
          return said.includes('seven') ? refuse : PASS;
        }),
      );
      const text = await (await send('Count', stream)).text();
      expect(text).to.include('Not today.');
      expect(textOf(text)).to.not.include('seven');
    });

    it(`passes nothing without a verdict${streamed}`, async () => {
      const wrong: readonly unknown[] = [
        ...[
          500,
          302,
          { ok: true },
          [],
          { action: 'block' },
          { action: 'replace' },
          { action: 'replace', request: 'x' },
        ],
        ...[
          { action: 'refuse', code: 'internal_error' },
          { action: 'refuse', message: 1 },
        ],
      ];
      for (const said of wrong) {
        const before = rig.sent('openai').length;
        service.say(only(['prepare'], () => said));
        expect((await send('Count', stream)).status, JSON.stringify(said)).to.equal(503);
        expect(rig.sent('openai')).to.have.length(before);
        service.say(only(['receive', 'stream'], () => said));
        const text = await (await send('Count', stream)).text();
        expect(text, JSON.stringify(said)).to.include('returned no verdict').and.not.include('one two');
      }
      expect(rig.gateway.logText()).to.not.include('of-the-service');
    });

    it(`rejects requests, responses and chunks of a wrong shape${streamed}`, async () => {
      service.say(only(['prepare'], () => ({ action: 'replace', request: { model: 7 } })));
      expect((await send('Count', stream)).status).to.equal(500);
      service.say(
        only(['receive', 'stream'], () => ({ action: 'replace', response: { a: 1 }, chunks: [{ choices: 'x' }] })),
      );
      const text = await (await send('Count', stream)).text();
      expect(text).to.include('internal_error').and.not.include('one two');
    });
  }

  it('may rename an error and see how a call ended, and keeps an error while the service is down', async () => {
    rig.script('openai', Buffer.from('HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}'));
    service.say(only(['error'], () => ({ action: 'replace', error: { code: 'not_found', message: 'Gone.' } })));
    const renamed = await send('Count');
    expect([renamed.status, await renamed.text()]).to.satisfy(
      ([status, text]: [number, string]) => status === 404 && text.includes('Gone.'),
    );
    expect((await eventOf('error')).error).to.include.keys('code', 'status', 'message', 'param');
    expect((await eventOf('finish')).outcome).to.deep.include({ status: 'error' });
    service.say(only(['error'], () => 500));
    expect((await send('Count')).status).to.equal(400);
  });

  it('neither sends nor accepts the path of an uploaded file', async () => {
    service.say(
      only(['prepare'], ({ request }) => ({
        action: 'replace',
        request: { ...request, file: { path: '/etc/passwd' } },
      })),
    );
    const form = new FormData();
    form.append('model', 'openai/whisper-1');
    form.append('file', new Blob(['RIFFxxxxWAVE'], { type: 'audio/wav' }), 'a.wav');
    rig.script('openai', (wire) =>
      wire.send('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{"text":"Hi"}'),
    );
    const response = await fetch(`${rig.gateway.url}/v1/audio/transcriptions`, {
      ...{ method: 'POST', body: form, headers: { authorization: `Bearer ${rig.gateway.key}` } },
    });
    await response.text();
    const prepare = await eventOf('prepare');
    expect(prepare.request).to.not.have.property('file');
    expect(rig.sent('openai').at(-1)?.body.toString('latin1')).to.include('RIFFxxxxWAVE').and.not.include('root:');
  });
});

describe('the policy http-hook with bounds', () => {
  it('passes calls with onFailure: open while the service is down, and refuses more than it may send', async () => {
    const service = await startService();
    await service.stop();
    const rig = await startIngressRig({
      policies: {
        'http-hook': { url: service.url, onFailure: 'open', maxSize: 20_000, window: 20 },
      },
    });
    try {
      rig.say('openai', { pieces: [{ text: SAID }] });
      const chat = (content: string, stream: boolean) =>
        rig.gateway.post('/v1/chat/completions', {
          model: MODEL_OF.openai,
          stream,
          messages: [{ role: 'user', content }],
        });
      for (const stream of [false, true]) {
        const response = await chat('Count', stream);
        const text = await response.text();
        expect(response.status).to.equal(200);
        expect(textOf(text), text).to.equal(SAID);
      }
      expect((await chat('x'.repeat(20_001), false)).status).to.equal(413);
    } finally {
      await rig.stop();
    }
  });
});

describe('the service of http-hook in the docs', () => {
  let child: ChildProcess | undefined;
  after(() => child?.kill());

  it('runs unchanged, and changes and refuses calls of a gateway', async function () {
    const [block] = readBlocks().filter(
      ({ page, language }) => page === 'docs/plugins/guardrails.md' && language === 'python',
    );
    if (spawnSync('python3', ['--version']).status !== 0) this.skip(); // no Python on this machine
    child = spawn('python3', ['-c', block?.text ?? ''], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    const gateway = await startGateway({
      policies: { 'http-hook': { url: `http://127.0.0.1:${String(port).trim()}/` } },
    });
    try {
      const send = (content: string, stream = false) =>
        gateway.post('/v1/chat/completions', { model: 'echo/echo', stream, messages: [{ role: 'user', content }] });
      for (const stream of [false, true]) {
        expect(textOf(await (await send('of orion we speak', stream)).text())).to.equal('of the project we speak');
        expect(textOf(await (await send('of the sea', stream)).text())).to.equal('of the sea');
        const refused = await send('an acquisition', stream);
        expect(refused.status).to.equal(403);
        expect(await refused.text()).to.include('Not about acquisitions, please.');
      }
    } finally {
      await gateway.stop();
    }
  });
});
