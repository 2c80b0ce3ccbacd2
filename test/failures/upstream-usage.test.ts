import { expect } from 'chai';
import { type FailureRig, PROMPT_COST, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

const STREAM = { stream: true, stream_options: { include_usage: true } };
const usage = (prompt: unknown, output: unknown = 10, total: unknown = 60) => ({
  usage: { prompt_tokens: prompt, completion_tokens: output, total_tokens: total },
});
/** Impossible usage; the call is charged by the gateway's estimate. */
const NONSENSE: readonly unknown[] = [-5, 1e308, Number.MAX_SAFE_INTEGER, 2 ** 39, '50', null, [], { a: 1 }, true];

describe('the end of a stream, and its usage', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig();
  });
  after(() => rig?.stop());

  it('U25, U26: the caller sees one [DONE], and nothing after it, however often the vendor ends', async () => {
    const mark = await rig.mark();
    rig.vendor.script(
      events([delta('hi'), delta('', 'stop', usage(50)), '[DONE]', '[DONE]', delta('too late'), '[DONE]']),
    );
    const { frames, text } = await rig.send(STREAM);
    expect(frames.filter((frame) => frame === '[DONE]')).to.have.lengthOf(1);
    expect(frames.at(-1)).to.equal('[DONE]');
    expect(text).not.to.include('too late');
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  it('U27: repeated counts replace the earlier ones, and are not added', async () => {
    const mark = await rig.mark();
    rig.vendor.script(
      events([delta('a', null, usage(50, 1)), delta('b', null, usage(50, 5)), delta('', 'stop', usage(50)), '[DONE]']),
    );
    const { frames } = await rig.send(STREAM);
    expect(frames.filter((frame) => frame.includes('"usage"'))).to.have.lengthOf(1);
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  it('U28: counts in the last text event are found, and separated from the text', async () => {
    const mark = await rig.mark();
    rig.vendor.script(events([delta('last words', 'stop', usage(50)), '[DONE]']));
    const { frames } = await rig.send(STREAM);
    expect(frames[0]).to.include('last words').and.not.include('usage');
    expect(JSON.parse(frames.at(-2) ?? '')).to.deep.include({ choices: [] });
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  it('U29: a stream without counts is estimated, and charged', async () => {
    const mark = await rig.mark();
    rig.vendor.script(events([delta('a'.repeat(40)), delta('', 'stop'), '[DONE]']));
    const { frames } = await rig.send(STREAM);
    expect(JSON.parse(frames.at(-2) ?? '')).to.have.nested.property('usage.completion_tokens', 10);
    await rig.expectOrder(mark, 1, PROMPT_COST + 20);
  });

  for (const count of partOf(NONSENSE)) {
    it(`U30: ${JSON.stringify(count)} is not a token count: the call is charged by estimate`, async () => {
      const mark = await rig.mark();
      const says = JSON.stringify(completion('a'.repeat(40), usage(count, count, count)));
      rig.vendor.script(respondWith(200, says, { 'content-type': 'application/json' }));
      const heard = await rig.send();
      expect(JSON.parse(heard.text)).to.have.nested.property('usage.prompt_tokens', PROMPT_COST);
      rig.vendor.script(events([delta('a'.repeat(40)), delta('', 'stop', usage(count, count, count)), '[DONE]']));
      expect((await rig.send(STREAM)).frames.at(-1)).to.equal('[DONE]');
      await rig.expectOrder(mark, 2, 2 * (PROMPT_COST + 20));
    });
  }

  for (const [what, count, cost] of [
    ['leaves out is worked out from the total', undefined, USAGE_COST],
    ['spoils is not: the call is charged by estimate', -5, PROMPT_COST + 2],
  ] as const)
    it(`U30: a number that the vendor ${what} (E6)`, async () => {
      const mark = await rig.mark();
      rig.vendor.script(respondWith(200, completion('x', usage(count))));
      expect((await rig.send()).status).to.equal(200);
      await rig.expectOrder(mark, 1, cost);
    });

  it('U30: impossible counts of cached tokens are ignored, too low or too high', async () => {
    const mark = await rig.mark();
    const cached = (tokens: unknown) => ({ ...completion().usage, prompt_tokens_details: { cached_tokens: tokens } });
    // The last value is a possible count, but not for a call whose earlier values were these.
    for (const tokens of [-1_000_000, 'many', 1e9, 1e8]) {
      rig.vendor.script(respondWith(200, completion('x', { usage: cached(tokens) })));
      expect((await rig.send()).status).to.equal(200);
    }
    await rig.expectOrder(mark, 4, 3 * USAGE_COST + PROMPT_COST + 2);
  });

  it('U52: tool calls in forty pieces, their indexes out of order, are passed on for assembly', async () => {
    const whole = [JSON.stringify({ city: 'Ulm', unit: '°C' }), JSON.stringify({ q: 'x'.repeat(60) })];
    const name = (index: number) => ({
      index,
      id: `call_${index}`,
      type: 'function',
      function: { name: `f${index}`, arguments: '' },
    });
    const pieces = Array.from({ length: 40 }, (_, n) => {
      const index = n % 2 === 0 ? 1 : 0;
      const text = whole[index] ?? '';
      const at = Math.floor(n / 2);
      const size = Math.ceil(text.length / 20);
      return { index, function: { arguments: text.slice(at * size, (at + 1) * size) } };
    });
    const chunkOf = (call: object) =>
      JSON.stringify({
        ...JSON.parse(delta('')),
        choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }],
      });
    rig.vendor.script(
      events([chunkOf(name(1)), chunkOf(name(0)), ...pieces.map(chunkOf), delta('', 'tool_calls'), '[DONE]']),
    );
    const { frames } = await rig.send(STREAM);
    const built: Record<number, { name: string; text: string }> = {};
    for (const frame of frames.slice(0, -1)) {
      const { choices } = JSON.parse(frame) as {
        choices: { delta: { tool_calls?: { index: number; function: { name?: string; arguments?: string } }[] } }[];
      };
      for (const call of choices[0]?.delta.tool_calls ?? []) {
        const entry = built[call.index] ?? { name: '', text: '' };
        built[call.index] = entry;
        entry.name += call.function.name ?? '';
        entry.text += call.function.arguments ?? '';
      }
    }
    // Numbered in order of appearance, as clients that build a list require.
    expect(built).to.deep.equal({ 0: { name: 'f1', text: whole[1] }, 1: { name: 'f0', text: whole[0] } });
  });

  for (const reason of ['length', 'content_filter', 'stop']) {
    it(`U53: the finish reason ${reason} is passed on`, async () => {
      rig.vendor.script(events([delta('x'), delta('', reason), '[DONE]']));
      expect((await rig.send(STREAM)).text).to.include(`"finish_reason":"${reason}"`);
      const body = completion('x', { choices: [{ ...completion().choices[0], finish_reason: reason }] });
      rig.vendor.script(respondWith(200, body));
      expect((await rig.send()).text).to.include(`"finish_reason":"${reason}"`);
    });
  }

  it('U53: a stream whose finish reason stays null is truncated, not finished', async () => {
    rig.vendor.script(events([delta('x'), delta('y'), '[DONE]']));
    rig.expectError(await rig.send(STREAM), 'provider_unavailable');
  });
});
