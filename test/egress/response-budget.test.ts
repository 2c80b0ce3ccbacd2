import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { isGatewayError } from '../../contract/errors.ts';
import { createEventReader } from '../../contract/event-reader.ts';
import { createResponseBudget, MEMORY_PER_BYTE } from '../../egress/attempt.ts';
import { createUpstream, type Upstream, type UpstreamResponse } from '../../egress/upstream.ts';
import { createSilentLog } from '../support/log.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const BYTES = 100_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapHeld(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe('the memory of responses', () => {
  let vendor: ScriptedUpstream;
  let upstream: Upstream;
  let call: { readonly ended: Promise<void>; readonly end: () => void };
  beforeEach(async () => {
    vendor = await startScriptedUpstream(respondWith(200, 'x'.repeat(BYTES)));
    // Budget for two and a half responses.
    upstream = createUpstream({
      log: createSilentLog(),
      budget: createResponseBudget(2.5 * BYTES * MEMORY_PER_BYTE),
    });
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    call = { ended, end: () => end() };
  });
  afterEach(async () => {
    await upstream.close();
    await vendor.close();
  });

  const send = (heldUntil?: Promise<void>): Promise<UpstreamResponse> =>
    upstream.send(
      { baseUrl: vendor.url, error: () => ({ class: 'upstream_error', message: '' }) },
      { path: '/', body: {} },
      { signal: new AbortController().signal, ...(heldUntil && { heldUntil }) },
    );
  const outcomeOf = (work: Promise<Buffer>): Promise<unknown> =>
    work.then(
      ({ length }) => length,
      (error: unknown) => (isGatewayError(error) ? error.code : error),
    );

  it('E28: four concurrent responses get at most the budget, and the next ones get it when calls have ended', async () => {
    const responses = await Promise.all([1, 2, 3, 4].map(() => send(call.ended)));
    const outcomes = await Promise.all(responses.map((response) => outcomeOf(response.readAll())));
    const served = outcomes.filter((outcome) => outcome === BYTES);
    expect(served.length).to.be.within(1, 2);
    expect(outcomes.filter((outcome) => outcome === 'overloaded')).to.have.length(4 - served.length);
    for (let kept = served.length; kept < 2; kept += 1) await (await send(call.ended)).readAll();
    expect(await outcomeOf((await send(call.ended)).readAll())).to.equal('overloaded');
    call.end();
    await call.ended;
    expect(await outcomeOf((await send()).readAll())).to.equal(BYTES);
  });

  it('is released immediately if a response is not parsed, and by one that is only read', async () => {
    for (let count = 0; count < 5; count += 1) {
      const response = await send(call.ended);
      await response.readAll();
      response.release();
    }
    for (let count = 0; count < 5; count += 1) await (await send()).readAll();
  });

  it('refuses a single oversized response as the provider’s error, also because of its parsed size', async () => {
    vendor.script(respondWith(200, 'x'.repeat(3 * BYTES)));
    expect(await outcomeOf((await send(call.ended)).readAll())).to.equal('provider_invalid_response');
    vendor.script(respondWith(200, 'x'));
    const response = await send(call.ended);
    await response.readAll();
    expect(() => response.reserve(3 * BYTES * MEMORY_PER_BYTE)).to.throw('memory limit of one response');
  });

  it('E28: is used by an endless event of a stream, and released with the stream', async () => {
    vendor.script(respondWith(200, 'x'.repeat(5 * BYTES)));
    const read = async (): Promise<void> => {
      const response = await send(call.ended);
      const reader = createEventReader({ onGrowth: (more) => response.reserve(more * MEMORY_PER_BYTE) });
      for await (const bytes of response.body) reader.push(bytes);
    };
    await read().then(
      () => expect.fail('it was read to its end'),
      (error: unknown) => expect(isGatewayError(error) && error.code).to.equal('provider_invalid_response'),
    );
    vendor.script(respondWith(200, 'x'.repeat(2 * BYTES)));
    for (let count = 0; count < 5; count += 1) await read();
    vendor.script(respondWith(200, `data: ${'x'.repeat(1000)}\n\n`.repeat(500)));
    await read();
  });

  it('is used for the pieces of an event too: at least the memory that they hold @slow', () => {
    let reported = 64 * 1024;
    const reader = createEventReader({ onGrowth: (more) => (reported += more) });
    const before = heapHeld();
    reader.push(Buffer.from('data: '));
    for (let at = 0; at < 500_000; at += 1) reader.push(Buffer.from('x'));
    expect(heapHeld() - before).to.be.at.most(reported * MEMORY_PER_BYTE);
    expect(reader.push(Buffer.from('\n\n'))).to.have.length(1);
  });

  it('is not used by a body that is passed through', async () => {
    vendor.script(respondWith(200, 'x'.repeat(5 * BYTES)));
    let size = 0;
    for await (const bytes of (await send(call.ended)).body) size += bytes.length;
    expect(size).to.equal(5 * BYTES);
  });
});
