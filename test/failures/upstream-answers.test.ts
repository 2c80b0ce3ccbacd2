import { expect } from 'chai';
import { formsOf, type Heard } from '../support/gateways/failure-forms.ts';
import { type FailureRig, PROMPT_COST, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { generatedCases, partOf } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, head, respondWith, SSE_HEAD, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { recordPassed } from './passed-forms.ts';
import { FAILED_RESPONSES, refusal } from './upstream-cases.ts';

const STREAM = { stream: true };

describe('a provider with an invalid response', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig();
  });
  after(() => rig?.stop());

  for (const [row, failed] of FAILED_RESPONSES.entries()) {
    const { title, script, stream, code, cost = 0, message = /./, headers = {} } = failed;
    it(`${title} is reported as ${code}, in every format`, async () => {
      const mark = await rig.mark();
      const forms = partOf(formsOf(stream), row);
      rig.vendor.script(script);
      const heard = await Promise.all(forms.map((form) => rig.sendAs(form)));
      for (const [at, form] of forms.entries()) {
        const own = heard[at] as Heard;
        expect(rig.expectErrorAs(form, own, code).message).to.match(message);
        // Removes random ids, which may contain such a word.
        expect(own.text.replace(/req_\w+/g, '')).not.to.match(/html|nginx/i);
        for (const [name, value] of Object.entries(headers)) expect(own.headers[name], name).to.equal(value);
      }
      await rig.expectOrder(mark, forms.length, cost * forms.length);
      recordPassed(title, forms);
    });
  }

  it('U39: a rate limit with a date to come is counted down', async () => {
    const date = new Date(Date.now() + 30_000).toUTCString();
    rig.vendor.script(refusal(429, { message: 'slow down', type: 'rate_limit_error' }, { 'retry-after': date }));
    const heard = await rig.send();
    rig.expectError(heard, 'upstream_rate_limited', 429);
    expect(Number(heard.headers['retry-after'])).to.be.within(1, 31);
  });

  for (const status of partOf([301, 302, 303, 307, 308])) {
    it(`U45, U46: a ${status} is not followed, to another origin or to the same`, async () => {
      const other = await startScriptedUpstream(respondWith(200, completion('stolen')));
      try {
        const mark = await rig.mark();
        const seen = rig.vendor.requests.length;
        for (const origin of [other.url, rig.vendor.url]) {
          rig.vendor.script(respondWith(status, '', { location: `${origin}/steal` }));
          const heard = await rig.send();
          rig.expectError(heard, 'provider_unavailable');
          expect(heard.headers['location']).to.equal(undefined);
        }
        expect(other.connections.total).to.equal(0);
        expect(rig.vendor.requests.length - seen).to.equal(2);
        await rig.expectOrder(mark, 2, 0);
      } finally {
        await other.close();
      }
    });
  }

  it('U23: an error in the first event lets the next target respond', async () => {
    const mark = await rig.mark();
    rig.vendor.script(events([JSON.stringify({ error: { message: 'no', type: 'server_error' } })]));
    rig.second.script(events([delta('hi', 'stop', { usage: completion().usage }), '[DONE]']));
    const heard = await rig.send({ model: 'both', stream: true });
    expect(heard.text).to.include('"content":"hi"').and.not.include('error');
    await rig.expectOrder(mark, 1, 10 * USAGE_COST);
  });

  it('U24: an error in the middle of a stream is one error frame after the previous content, and no other target is called', async () => {
    const mark = await rig.mark();
    const requestCount = rig.second.requests.length;
    const broken = JSON.stringify({ error: { message: 'at http://127.0.0.1', type: 'server_error' } });
    rig.vendor.script(async ({ send, pause }) => {
      await send(SSE_HEAD);
      await send(chunk(`data: ${delta('abcd')}\n\n`));
      await pause(30);
      // In one packet with the last text.
      await send(chunk(`data: ${delta('efgh')}\n\ndata: ${delta('ijkl')}\n\ndata: ${broken}\n\n`));
      await send('0\r\n\r\n');
    });
    const heard = await rig.send({ model: 'both', stream: true });
    rig.expectError(heard, 'provider_unavailable');
    expect(heard.frames.slice(0, -1).join()).to.include('abcd').and.include('efgh').and.include('ijkl');
    expect(rig.second.requests.length).to.equal(requestCount);
    await rig.expectOrder(mark, 1, PROMPT_COST + 6);
  });

  it('U50: an unsolicited response is not sent to the next caller', async () => {
    for (const delayMs of [0, 5, 20]) {
      let closed: Promise<void> | undefined;
      rig.vendor.script(
        async (wire) => {
          closed = wire.request.closed;
          const mine = respondWith(200, completion('mine'));
          const other = respondWith(200, completion('of another tenant'));
          if (delayMs === 0) return wire.send(Buffer.concat([mine, other]));
          await wire.send(mine);
          await wire.pause(delayMs);
          await wire.send(other);
        },
        respondWith(200, completion('yours')),
      );
      expect((await rig.send()).text).to.include('mine');
      // The gateway closes the connection at a response without a request.
      await closed;
      expect((await rig.send()).text)
        .to.include('yours')
        .and.not.include('tenant');
    }
  });

  it('U51: headers of the vendor are removed, except its rate limits', async () => {
    const theirs = {
      'set-cookie': 'a=b',
      server: 'cloudflare',
      'x-request-id': 'req-of-the-vendor',
      'openai-organization': 'org-canary',
      'access-control-allow-origin': '*',
      'x-ratelimit-remaining-requests': '7',
    };
    rig.vendor.script(respondWith(200, completion(), theirs));
    const { headers } = await rig.send();
    expect(headers['x-ratelimit-remaining-requests']).to.equal('7');
    expect(headers['x-request-id']).to.match(/^req_/);
    for (const name of ['set-cookie', 'server', 'openai-organization', 'access-control-allow-origin'])
      expect(headers[name], name).to.equal(undefined);
  });

  it('U47: early hints are ignored', async () => {
    rig.vendor.script(Buffer.concat([Buffer.from(head(103, { link: '</x>' })), respondWith(200, completion())]));
    expect((await rig.send()).status).to.equal(200);
  });

  it('U19: a response with another content type is accepted if it is JSON', async () => {
    const mark = await rig.mark();
    for (const type of ['text/plain', 'text/html', 'application/octet-stream']) {
      rig.vendor.script(respondWith(200, completion(), { 'content-type': type }));
      expect((await rig.send()).status, type).to.equal(200);
    }
    await rig.expectOrder(mark, 3, 3 * USAGE_COST);
  });

  it('U20: a JSON response to a stream request becomes a stream', async () => {
    const mark = await rig.mark();
    rig.vendor.script(respondWith(200, completion('whole')));
    const { frames } = await rig.send(STREAM);
    expect(frames.join('\n')).to.include('"content":"whole"').and.to.include('"finish_reason":"stop"');
    expect(frames.at(-1)).to.equal('[DONE]');
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  it('U31: code points are intact wherever the vendor’s packets are split', async () => {
    const wire = Buffer.from(`data: ${delta('😀é', 'stop')}\n\ndata: [DONE]\n\n`);
    const from = wire.indexOf(Buffer.from('😀'));
    for (let at = from; at < from + 7; at++) {
      rig.vendor.script(async ({ send, pause }) => {
        await send(Buffer.concat([Buffer.from(SSE_HEAD), chunk(wire.subarray(0, at))]));
        await pause(2);
        await send(Buffer.concat([chunk(wire.subarray(at)), Buffer.from('0\r\n\r\n')]));
      });
      expect((await rig.send(STREAM)).text).to.include('"content":"😀é"');
    }
    rig.vendor.script(async ({ send }) => {
      await send(SSE_HEAD);
      await send(
        chunk(
          Buffer.concat([
            Buffer.from('data: '),
            Buffer.from(delta('a?b', 'stop').replace('?', '\xff'), 'latin1'),
            Buffer.from('\n\ndata: [DONE]\n\n0'),
          ]),
        ),
      );
      await send('0\r\n\r\n');
    });
    expect((await rig.send(STREAM)).text).to.include('"content":"a\ufffdb"');
  });

  it('U32: every kind of line end, and a byte order mark, result in the same response', async () => {
    const texts: string[][] = [];
    for (const [end, mark] of [
      ['\n', ''],
      ['\r\n', ''],
      ['\r', ''],
      ['\n', '\ufeff'],
    ] as const) {
      const wire = `${mark}data: ${delta('hi')}${end}${end}data: ${delta('', 'stop')}${end}${end}data: [DONE]${end}${end}`;
      rig.vendor.script(async ({ send }) => {
        await send(SSE_HEAD);
        for (const byte of Buffer.from(wire)) await send(chunk(Uint8Array.of(byte)));
        await send('0\r\n\r\n');
      });
      texts.push([...(await rig.send(STREAM)).frames]);
    }
    for (const frames of texts) expect(frames).to.deep.equal(texts[0]);
    expect(texts[0]?.at(-1)).to.equal('[DONE]');
  });

  it('is followed by a gateway that serves the next calls, up to a hundred', async () => {
    await rig.expectOrder(await rig.mark(), 0, 0, generatedCases(100));
  });
});
