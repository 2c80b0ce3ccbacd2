/**
 * Unusual responses of a provider that are not failures: the caller gets a complete response, in every format in which
 * they occur.
 */
import { expect } from 'chai';
import { type FailureForm, formsOf, type Heard } from '../support/gateways/failure-forms.ts';
import { type FailureRig, PROMPT_COST, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, head, respondWith, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { recordPassed } from './passed-forms.ts';

interface OddCase {
  readonly title: string;
  readonly script: Script | Uint8Array;
  readonly stream?: boolean;
  readonly text: string;
  /** Charge. Default: the vendor's usage. */
  readonly cost?: number;
  check?(heard: Heard): void;
}

const usage = (prompt: unknown = 50, output: unknown = 10, total: unknown = 60) => ({
  usage: { prompt_tokens: prompt, completion_tokens: output, total_tokens: total },
});
const FORTY = 'a'.repeat(40);
const ESTIMATE = PROMPT_COST + 20;

/** Sends one response to requests without `stream`, and another one to streaming requests. */
const either =
  (whole: Uint8Array, stream: Script): Script =>
  (wire) =>
    (wire.request.json() as { stream?: boolean }).stream ? stream(wire) : wire.send(whole);
const fine = (text: string, counts: object = usage()): Script =>
  either(respondWith(200, completion(text, counts)), events([delta(text), delta('', 'stop', counts), '[DONE]']));
const bytes =
  (...pieces: readonly (string | Uint8Array)[]): Script =>
  async ({ send, pause }) => {
    await send(SSE_HEAD);
    for (const piece of pieces) {
      await send(chunk(piece));
      await pause(2);
    }
    await send('0\r\n\r\n');
  };

const THEIRS = { 'set-cookie': 'a=b', server: 'cloudflare', 'openai-organization': 'org-canary' };
const SPLIT = Buffer.from(`data: ${delta('😀é', 'stop', usage())}\n\ndata: [DONE]\n\n`);
const SMILE = SPLIT.indexOf(Buffer.from('😀'));

const ODD: readonly OddCase[] = [
  {
    title: 'U13: a provider that ends a stream without [DONE]',
    ...{ script: events([delta(FORTY), delta('', 'stop')]), stream: true, text: FORTY, cost: ESTIMATE },
  },
  ...['text/plain', 'text/html', 'application/octet-stream'].map((type) => ({
    title: `U19: a provider that says ${type} of its JSON`,
    ...{ script: respondWith(200, completion('x'), { 'content-type': type }), stream: false, text: 'x' },
  })),
  {
    title: 'U20: a provider that answers a stream with JSON',
    script: respondWith(200, completion('whole')),
    stream: true,
    text: 'whole',
  },
  {
    title: 'U21: a provider that streams without a request for it (G6)',
    script: events([delta('a'), delta('b', 'stop', usage()), '[DONE]']),
    ...{ stream: false, text: 'ab' },
  },
  {
    title: 'U25, U26: a provider that ends twice, and says something between and after',
    script: events([delta('hi'), delta('', 'stop', usage()), '[DONE]', '[DONE]', delta('too late'), '[DONE]']),
    ...{ stream: true, text: 'hi', check: ({ text }: Heard) => expect(text).not.to.include('too late') },
  },
  {
    title: 'U27: a provider that counts again and again',
    script: events([
      delta('a', null, usage(50, 1)),
      delta('b', null, usage(50, 5)),
      delta('', 'stop', usage()),
      '[DONE]',
    ]),
    ...{ stream: true, text: 'ab' },
  },
  {
    title: 'U28: a provider that counts next to its last words',
    ...{ script: events([delta('last words', 'stop', usage()), '[DONE]']), stream: true, text: 'last words' },
  },
  {
    title: 'U29: a provider that counts nothing',
    script: fine(FORTY, { usage: undefined }),
    text: FORTY,
    cost: ESTIMATE,
  },
  ...[-5, 1e308, '50', null, { a: 1 }].map((count) => ({
    title: `U30: a provider that counts ${JSON.stringify(count)}`,
    ...{ script: fine(FORTY, usage(count, count, count)), text: FORTY, cost: ESTIMATE },
  })),
  ...[1, 2, 3, 5].map((at) => ({
    title: `U31: a provider that cuts a code point after byte ${at}`,
    script: bytes(SPLIT.subarray(0, SMILE + at), SPLIT.subarray(SMILE + at)),
    ...{ stream: true, text: '😀é' },
  })),
  {
    title: 'U31: a provider that sends bytes that are no UTF-8',
    script: bytes(
      Buffer.from(`data: ${delta('a?b', 'stop', usage())}\n\ndata: [DONE]\n\n`.replace('?', '\xff'), 'latin1'),
    ),
    ...{ stream: true, text: 'a\ufffdb' },
  },
  ...[
    ['LF', '\n', ''],
    ['CRLF', '\r\n', ''],
    ['CR', '\r', ''],
    ['LF, after a byte order mark', '\n', '\ufeff'],
  ].map(([name, end, mark]) => ({
    title: `U32: a provider that ends lines by ${name}`,
    script: bytes(
      `${mark}data: ${delta('hi')}${end}${end}data: ${delta('', 'stop', usage())}${end}${end}data: [DONE]${end}${end}`,
    ),
    ...{ stream: true, text: 'hi' },
  })),
  {
    title: 'U47: a provider that sends early hints',
    script: async (wire) => {
      await wire.send(head(103, { link: '</x>' }));
      await fine('hi')(wire);
    },
    text: 'hi',
  },
  {
    title: 'U51: a provider that sends cookies and headers of its own',
    script: either(respondWith(200, completion('x'), THEIRS), async (wire) => {
      const headers = { ...THEIRS, 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' };
      await wire.send(head(200, headers));
      await wire.send(chunk(`data: ${delta('x', 'stop', usage())}\n\ndata: [DONE]\n\n`));
      await wire.send('0\r\n\r\n');
    }),
    text: 'x',
    check({ headers }) {
      for (const name of Object.keys(THEIRS)) expect(headers[name], name).to.equal(undefined);
    },
  },
];

describe('unusual responses of providers', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig();
  });
  after(() => rig?.stop());

  for (const [row, { title, script, stream, text, cost = USAGE_COST, check }] of ODD.entries())
    it(`${title} gives a complete response, which is charged once, in every format`, async () => {
      const mark = await rig.mark();
      const forms = partOf(formsOf(stream), row);
      rig.vendor.script(script);
      const heard = await Promise.all(forms.map((form) => rig.sendAs(form)));
      for (const [at, form] of forms.entries()) {
        expect(form.text(heard[at] as Heard), form.name).to.equal(text);
        check?.(heard[at] as Heard);
      }
      await rig.expectOrder(mark, forms.length, cost * forms.length);
      recordPassed(title, forms);
    });

  it('U09: a provider that resets an idle connection gets the request again on a new one, in every format', async () => {
    const mark = await rig.mark();
    for (const form of formsOf(undefined)) {
      rig.vendor.script(fine('first'), (wire) => wire.reset(), fine('second'));
      expect(form.text(await rig.sendAs(form))).to.equal('first');
      expect(form.text(await rig.sendAs(form)), form.name).to.equal('second');
    }
    await rig.expectOrder(mark, 2 * formsOf(undefined).length, 2 * USAGE_COST * formsOf(undefined).length);
    recordPassed('U09', formsOf(undefined));
  });

  it('U24: an error in the middle of a stream follows the text before it, and no other target is called, in every format', async () => {
    const mark = await rig.mark();
    const requestCount = rig.second.requests.length;
    const forms = formsOf(true);
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('abcd')}\n\n`));
      // Allows a busy process to pass the delta on: after that no other target is tried.
      for (let turn = 0; turn < 10; turn += 1) await wire.pause(10);
      const error = '{"error":{"message":"no","type":"server_error"}}';
      await wire.send(chunk(`data: ${delta('efgh')}\n\ndata: ${error}\n\n`));
      await wire.send('0\r\n\r\n');
    });
    const heard = await Promise.all(forms.map((form) => rig.sendAs(form, 'both')));
    for (const [at, form] of forms.entries())
      rig.expectErrorAs(form, heard[at] as Heard, 'provider_unavailable', 'abcdefgh');
    expect(rig.second.requests.length).to.equal(requestCount);
    await rig.expectOrder(mark, forms.length, (PROMPT_COST + 4) * forms.length);
    recordPassed('U24', forms);
  });

  it('U50: a second response to one request reaches no caller, in every format', async () => {
    for (const form of formsOf(undefined)) {
      let closed: Promise<void> | undefined;
      rig.vendor.script(async (wire) => {
        closed = wire.request.closed;
        await fine('mine')(wire);
        await wire.send(respondWith(200, completion('of another tenant')));
      }, fine('yours'));
      expect(form.text(await rig.sendAs(form))).to.equal('mine');
      // The gateway closes the connection at a response without a request.
      await closed;
      expect(form.text(await rig.sendAs(form)), form.name).to.equal('yours');
    }
    recordPassed('U50', formsOf(undefined));
  });

  it('U52: every piece of split tool calls is assigned to its call, in every streamed format', async () => {
    const call = (index: number, rest: object) =>
      JSON.stringify({
        ...JSON.parse(delta('')),
        choices: [{ index: 0, delta: { tool_calls: [{ index, ...rest }] }, finish_reason: null }],
      });
    const name = (index: number) =>
      call(index, { id: `call_${index}`, type: 'function', function: { name: `f${index}`, arguments: '' } });
    const text = JSON.stringify({ q: 'x'.repeat(37) });
    const pieces = [...text].flatMap((letter) =>
      [1, 0].map((index) => call(index, { function: { arguments: letter } })),
    );
    rig.vendor.script(events([name(1), name(0), ...pieces, delta('', 'tool_calls', usage()), '[DONE]']));
    for (const form of formsOf(true)) {
      const calls = form.calls(await rig.sendAs(form));
      expect(calls, form.name).to.deep.equal([
        ['f1', text],
        ['f0', text],
      ]);
    }
    recordPassed('U52', formsOf(true));
  });

  for (const reason of ['length', 'content_filter', 'stop'])
    it(`U53: the finish reason ${reason} is sent in the format’s own word, in every format`, async () => {
      const { choices } = completion('x');
      const whole = respondWith(200, completion('x', { choices: [{ ...choices[0], finish_reason: reason }] }));
      rig.vendor.script(either(whole, events([delta('x'), delta('', reason, usage()), '[DONE]'])));
      for (const form of formsOf(undefined)) {
        const heard = await rig.sendAs(form);
        expect(form.finish(heard), form.name).to.equal(WORDS[form.path]?.[reason]);
      }
      recordPassed('U53', formsOf(undefined));
    });

  it('U53: a stream whose finish reason stays null is truncated, not finished, in every format', async () => {
    rig.vendor.script(events([delta('x'), delta('y'), '[DONE]']));
    for (const form of formsOf(true)) rig.expectErrorAs(form, await rig.sendAs(form), 'provider_unavailable', 'xy');
  });
});

const WORDS: Readonly<Record<FailureForm['path'], Readonly<Record<string, string>>>> = {
  '/v1/chat/completions': { length: 'length', content_filter: 'content_filter', stop: 'stop' },
  '/v1/messages': { length: 'max_tokens', content_filter: 'refusal', stop: 'end_turn' },
  '/v1/responses': { length: 'max_output_tokens', content_filter: 'content_filter', stop: 'completed' },
};
