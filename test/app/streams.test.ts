import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { completion, openAiVendor } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';

const frame = (delta: object, finish_reason: string | null = null) =>
  chunk(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
  );
const whole = async (wire: Wire) => {
  await wire.send(SSE_HEAD);
  await wire.send(frame({ role: 'assistant', content: 'fine' }));
  await wire.send(frame({}, 'stop'));
  await wire.send(chunk('data: [DONE]\n\n'));
  await wire.send(LAST_CHUNK);
};
const requestOf = (model: string, rest: object = {}) => ({
  model,
  stream: true,
  messages: [{ role: 'user', content: 'x' }],
  ...rest,
});

/** Reads a body up to and including the first match and buffers the rest. */
async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, pattern: RegExp): Promise<string> {
  let text = '';
  while (!pattern.test(text)) {
    const { value, done } = await reader.read();
    if (done) break;
    text += Buffer.from(value).toString();
  }
  return text;
}

describe('a stream', () => {
  let one: ScriptedUpstream;
  let two: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    [one, two] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
    const compatible = (upstream: ScriptedUpstream) =>
      openAiVendor(upstream, { timeouts: { idle: '400ms', firstByte: '2s' } });
    gateway = await startGateway({
      server: { port: 0, sseKeepAlive: '100ms' },
      providers: { echo: {}, one: compatible(one), two: compatible(two) },
      models: { both: ['one/m', 'two/m'] },
    });
  });
  after(async () => {
    await gateway.stop();
    await Promise.all([one.close(), two.close()]);
  });

  it('is chosen by the body, never by Accept, and has the headers that proxies need', async () => {
    const response = await gateway.post('/v1/chat/completions', requestOf('echo/echo'), { accept: 'application/json' });
    expect(response.headers.get('content-type')).to.equal('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).to.equal('no-cache, no-transform');
    expect(response.headers.get('x-accel-buffering')).to.equal('no');
    const text = await response.text();
    expect(text.endsWith('data: [DONE]\n\n')).to.equal(true);
    const json = await gateway.post(
      '/v1/chat/completions',
      { ...requestOf('echo/echo'), stream: false },
      { accept: 'text/event-stream' },
    );
    expect(json.headers.get('content-type')).to.include('application/json');
  });

  it('delivers everything in order to a slow caller, with characters split anywhere', async () => {
    const words = Array.from({ length: 400 }, (_, n) => `${n} “é”🌍 ${'x'.repeat(n % 7 === 0 ? 9_000 : 3)}`);
    one.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(frame({ role: 'assistant', content: 'go' }));
      for (const [n, content] of words.entries()) {
        const choices = [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }];
        const event = Buffer.from(
          `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`,
        );
        const at = n % 3 === 0 ? event.indexOf('🌍') + 1 + (n % 2) : 0;
        if (at > 0) await wire.send(chunk(event.subarray(0, at)));
        await wire.send(chunk(event.subarray(at)));
      }
      await wire.send(frame({}, 'stop'));
      await wire.send(chunk('data: [DONE]\n\n'));
      await wire.send(LAST_CHUNK);
    });
    const response = await gateway.post('/v1/chat/completions', requestOf('one/m'));
    await new Promise((resolve) => setTimeout(resolve, 200));
    const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: {'));
    const text = events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? '').join('');
    expect(text).to.equal(`go${words.join('')}`);
  });

  it('has its role in the first delta, one finish reason, and one [DONE]', async () => {
    one.script(whole);
    const text = await (await gateway.post('/v1/chat/completions', requestOf('one/m'))).text();
    const data = text.split('\n\n').filter((each) => each.startsWith('data: {'));
    const chunks = data.map(
      (each) => JSON.parse(each.slice(6)) as { choices: { delta: { role?: string }; finish_reason: string | null }[] },
    );
    expect(chunks[0]?.choices[0]?.delta.role).to.equal('assistant');
    expect(chunks.filter(({ choices }) => choices[0]?.finish_reason)).to.have.length(1);
    expect(text.match(/\[DONE\]/g)).to.have.length(1);
    expect(text).not.to.include('"usage"');
  });

  it('sends keep-alives while the provider is silent, before the first chunk and between two', async () => {
    let go = (): void => {};
    const released = new Promise<void>((resolve) => {
      go = resolve;
    });
    one.script(async (wire) => {
      await released;
      await whole(wire);
    });
    const response = await gateway.post('/v1/chat/completions', requestOf('one/m'));
    const reader = response.body!.getReader();
    expect(await readUntil(reader, /keep-alive/)).to.match(/^: keep-alive\n\n/);
    go();
    expect(await readUntil(reader, /\[DONE\]/)).to.include('"content":"fine"');
  });

  it('still falls back to the next target after a keep-alive', async () => {
    let fail = (): void => {};
    const reported = new Promise<void>((resolve) => {
      fail = resolve;
    });
    one.script(async (wire) => {
      await reported;
      wire.reset();
    });
    two.script(whole);
    const response = await gateway.post('/v1/chat/completions', requestOf('both'));
    const reader = response.body!.getReader();
    await readUntil(reader, /keep-alive/);
    fail();
    expect(await readUntil(reader, /\[DONE\]/)).to.include('"content":"fine"');
  });

  it('ends in one error frame when every target fails after a keep-alive', async () => {
    one.script(async (wire) => {
      await wire.pause(250);
      wire.reset();
    });
    two.script(respondWith(500, { error: { message: 'no' } }));
    const text = await (await gateway.post('/v1/chat/completions', requestOf('both'))).text();
    const frames = text.split('\n\n').filter((each) => each.startsWith('data: '));
    expect(frames).to.have.length(1);
    expect(frames[0]).to.include('"code":"provider_unavailable"');
  });

  it('never changes the provider once content was sent', async () => {
    const count = two.requests.length;
    one.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(frame({ role: 'assistant', content: 'half' }));
      wire.reset();
    });
    const text = await (await gateway.post('/v1/chat/completions', requestOf('both'))).text();
    expect(text)
      .to.include('"content":"half"')
      .and.to.include('"code":"provider_unavailable"')
      .and.not.to.include('[DONE]');
    expect(two.requests).to.have.length(count);
  });

  it('ends in an error frame when the provider stalls', async () => {
    one.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(frame({ role: 'assistant', content: 'half' }));
      await wire.hang();
    });
    const text = await (await gateway.post('/v1/chat/completions', requestOf('one/m'))).text();
    expect(text)
      .to.include('"content":"half"')
      .and.to.include('"code":"provider_timeout"')
      .and.not.to.include('[DONE]');
  });

  it('is made from a JSON response if the provider sends one all the same', async () => {
    one.script(respondWith(200, completion('all at once', { usage: undefined })));
    const text = await (await gateway.post('/v1/chat/completions', requestOf('one/m'))).text();
    expect(text).to.include('all at once').and.to.include('"finish_reason":"stop"').and.to.include('[DONE]');
  });

  it('reports an estimate when the provider sends no usage', async () => {
    one.script(whole);
    const text = await (
      await gateway.post('/v1/chat/completions', requestOf('one/m', { stream_options: { include_usage: true } }))
    ).text();
    const last = text
      .split('\n\n')
      .filter((each) => each.startsWith('data: {'))
      .at(-1)!;
    const { usage, choices } = JSON.parse(last.slice(6)) as {
      usage: { prompt_tokens: number; completion_tokens: number };
      choices: unknown[];
    };
    expect(choices).to.deep.equal([]);
    expect(usage.prompt_tokens).to.be.greaterThan(0);
    expect(usage.completion_tokens).to.be.greaterThan(0);
  });
});
