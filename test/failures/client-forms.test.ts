/** Errors of callers, in every client format. `client.test.ts` has details of chat completions. */
import type net from 'node:net';
import zlib from 'node:zlib';
import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { connectTo, readToEnd } from '../support/clients/raw-socket.ts';
import { type FailureForm, formsOf } from '../support/gateways/failure-forms.ts';
import { type FailureRig, PROMPT_COST, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, respondWith, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';
import { recordPassed } from './passed-forms.ts';

const REQUEST = { model: 'one/m', max_tokens: 100, messages: [{ role: 'user', content: 'a'.repeat(400) }] };
const ALL = formsOf(undefined);

describe('errors of callers, in every format', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig({ server: { port: 0, drainTimeout: '2s', requestTimeout: '1s', bodyLimit: '256kb' } });
  });
  after(() => rig?.stop());
  beforeEach(() => rig.vendor.script(respondWith(200, completion())));

  const request = (form: FailureForm, more = '', requested = REQUEST): string => {
    const text = JSON.stringify(form.body(requested));
    const head = `POST ${form.path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${rig.gateway.key}`;
    return `${head}\r\ncontent-type: application/json\r\n${more}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
  };
  const connect = () => connectTo(rig.gateway.url);
  /** Sends a request and resolves when the vendor has received it. */
  const reachVendor = async (form: FailureForm) => {
    const seen = rig.vendor.requests.length;
    const socket = await connect();
    socket.write(request(form));
    return { socket, upstream: await rig.vendor.request(seen) };
  };

  const LEAVES = [
    ['C01: a caller who leaves before the first byte', (socket: net.Socket) => void socket.destroy()],
    ['C03: a caller who closes its half after the request', (socket: net.Socket) => void socket.end()],
  ] as const;
  for (const [row, [title, leave]] of LEAVES.entries())
    it(`${title} ends the vendor’s call and is charged for the prompt`, async () => {
      const forms = partOf(ALL, row);
      const mark = await rig.mark();
      rig.vendor.script((wire) => wire.hang());
      for (const form of forms) {
        const { socket, upstream } = await reachVendor(form);
        leave(socket);
        await upstream.closed;
      }
      await rig.expectOrder(mark, forms.length, PROMPT_COST * forms.length);
      recordPassed(title, forms);
    });

  it('C02: a caller who disconnects in the middle of a stream cancels the vendor’s call and is charged for the received part', async () => {
    const forms = partOf(formsOf(true), 2);
    const mark = await rig.mark();
    const words = ['a', 'b', 'c'].map((letter) => delta(letter.repeat(20)));
    rig.vendor.script(events(words, (wire) => wire.hang()));
    for (const form of forms) {
      const { socket, upstream } = await reachVendor(form);
      let text = '';
      socket.on('data', (bytes) => {
        text += String(bytes);
      });
      await until('three events came', () => text.includes('c'.repeat(20)));
      socket.destroy();
      await upstream.closed;
    }
    await rig.expectOrder(mark, forms.length, (PROMPT_COST + 30) * forms.length);
    recordPassed('C02', forms);
  });

  it('C04: a caller who reads nothing makes the gateway pause the vendor', async () => {
    const forms = partOf(formsOf(true), 3);
    const mark = await rig.mark();
    const piece = chunk(`data: ${delta('x'.repeat(32 * 1024))}\n\n`);
    const sent = new Map<number, number>();
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      while (!wire.isGone) {
        await wire.send(piece);
        sent.set(wire.request.connection, (sent.get(wire.request.connection) ?? 0) + piece.length);
      }
    });
    const all = await Promise.all(forms.map(() => connect()));
    for (const [at, form] of forms.entries()) {
      all[at]?.pause();
      all[at]?.write(request(form));
    }
    let before = '';
    await eventually(async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      const now = JSON.stringify([...sent]);
      const isPaused = now === before && sent.size === forms.length;
      before = now;
      expect(isPaused, 'the vendor is paused').to.equal(true);
    });
    for (const bytes of sent.values()) expect(bytes).to.be.within(1, 32 << 20);
    for (const socket of all) socket.destroy();
    const { spent } = await settledBooks(rig.gateway.url, rig.gateway.key);
    await rig.expectOrder(mark, forms.length, spent - mark.books.spent);
    recordPassed('C04', forms);
  });

  it('C05: a caller who sends a body too slowly gets 408, and the connection is closed @slow', async () => {
    const forms = partOf(ALL, 4);
    const mark = await rig.mark();
    await Promise.all(
      forms.map(async (form) => {
        const socket = await connect();
        socket.write(request(form).slice(0, -20));
        expect(await readToEnd(socket), form.name).to.match(/^HTTP\/1\.1 408 /);
      }),
    );
    await rig.expectOrder(mark, 0, 0);
    recordPassed('C05', forms);
  });

  it('C06, C07: a caller who sends too large a body gets 413, and so does one who sends a compressed bomb', async () => {
    const forms = partOf(ALL, 5);
    const mark = await rig.mark();
    const messages = [{ role: 'user', content: 'a'.repeat(300_000) }];
    for (const form of forms) {
      const large = await rig.gateway.post(form.path, form.body({ ...REQUEST, messages }));
      expect([large.status, await large.text()].join(' ')).to.match(/^413 .*request_too_large/s);
      const bomb = await rig.gateway.post(form.path, zlib.gzipSync(Buffer.alloc(20 << 20)), {
        'content-encoding': 'gzip',
      });
      expect([bomb.status, await bomb.text()].join(' ')).to.match(/^413 .*request_too_large/s);
    }
    await rig.expectOrder(mark, 0, 0);
    recordPassed('C06, C07', forms);
  });

  it('C08: pipelined requests get their responses in order', async () => {
    const forms = partOf(ALL, 6);
    const mark = await rig.mark();
    for (const form of forms) {
      rig.vendor.script(
        async (wire) => {
          await wire.pause(20);
          await wire.send(respondWith(200, completion('first')));
        },
        respondWith(200, completion('second')),
      );
      const socket = await connect();
      socket.write(request(form) + request(form, 'connection: close\r\n'));
      const text = await readToEnd(socket);
      expect([...text.matchAll(/HTTP\/1\.1 200/g)], form.name).to.have.lengthOf(2);
      expect(text.indexOf('first'), form.name).to.be.within(1, text.indexOf('second'));
    }
    await rig.expectOrder(mark, 2 * forms.length, 2 * USAGE_COST * forms.length);
    recordPassed('C08', forms);
  });

  it('C09: a caller who sends one Idempotency-Key twice gets the same bytes of one call, charged once', async () => {
    const forms = partOf(ALL, 7);
    const mark = await rig.mark();
    const seen = rig.vendor.requests.length;
    for (const [at, form] of forms.entries()) {
      const headers = { 'idempotency-key': `the-same-${at}` };
      const [first, second] = [await rig.sendAs(form, 'one/m', headers), await rig.sendAs(form, 'one/m', headers)];
      expect(first.status, first.text).to.equal(200);
      expect(second.text, form.name).to.equal(first.text);
    }
    expect(rig.vendor.requests.length - seen).to.equal(forms.length);
    await rig.expectOrder(mark, 2 * forms.length, USAGE_COST * forms.length);
    recordPassed('C09', forms);
  });
});
