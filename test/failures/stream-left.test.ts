import http from 'node:http';
import { type FailureRig, PROMPT_COST, startFailureRig } from '../support/gateways/failure-rig.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { chunk, LAST_CHUNK, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';

const USAGE = { prompt_tokens: 50, completion_tokens: 90, total_tokens: 140 };
/** Cost of {@link USAGE}, which is much higher than that of the received text. */
const TRUE_COST = 230;

const deltaOf = (fields: object) =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: fields, finish_reason: null }],
  });
const usage = JSON.stringify({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [],
  usage: USAGE,
});

describe('a stream whose caller disconnects', () => {
  let rig: FailureRig;
  before(async () => {
    rig = await startFailureRig();
  });
  after(() => rig?.stop());

  /** Reads until `word` has arrived, then disconnects. */
  const leaveAt = (word: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json' };
      const request = http.request(
        `${rig.gateway.url}/v1/chat/completions`,
        { method: 'POST', headers, agent: false },
        (response) => {
          let text = '';
          response.on('error', () => undefined);
          response.on('data', (bytes: Buffer) => {
            text += bytes.toString();
            if (text.includes(word)) request.destroy();
          });
          response.on('close', resolve);
        },
      );
      request.on('error', reject);
      const messages = [{ role: 'user', content: 'a'.repeat(400) }];
      request.end(JSON.stringify({ model: 'one/m', max_tokens: 100, stream: true, messages }));
    });
  /** Sends events with pauses between them, then hangs or ends. */
  const slowly =
    (data: readonly string[], pauseMs: number, isEnded = true): Script =>
    async (wire) => {
      await wire.send(SSE_HEAD);
      for (const each of data) {
        await wire.send(chunk(`data: ${each}\n\n`));
        await wire.pause(pauseMs);
      }
      if (isEnded) await wire.send(LAST_CHUNK);
      else await wire.hang();
    };

  for (const [when, word] of [
    ['after the finish reason and before the usage', '"stop"'],
    ['after the last text and before the finish reason', 'seen'],
  ] as const)
    it(`is charged by the provider’s usage when the caller disconnects ${when}`, async () => {
      const mark = await rig.mark();
      rig.vendor.script(slowly([delta('seen'), delta('', 'stop'), usage, '[DONE]'], 100));
      await leaveAt(word);
      await rig.expectOrder(mark, 1, TRUE_COST);
    });

  it('is charged by an estimate of the received part when the provider does not end it soon', async () => {
    const mark = await rig.mark();
    rig.vendor.script(slowly([delta('seen')], 10, false));
    const seen = rig.vendor.requests.length;
    await leaveAt('seen');
    await rig.vendor.requests[seen]?.closed;
    await rig.expectOrder(mark, 1, PROMPT_COST + 2);
  });

  it('E59: is disconnected after a moment, also when the provider continues endlessly', async () => {
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      while (!wire.isGone) {
        await wire.send(chunk(`data: ${delta('seen')}\n\n`));
        await wire.pause(20);
      }
    });
    const seen = rig.vendor.requests.length;
    await leaveAt('seen');
    await rig.vendor.requests[seen]?.closed;
  });

  for (const [kind, fields, tokens] of [
    ['a refusal', { refusal: 'n'.repeat(40) }, 10],
    ['a transcript of sound', { audio: { id: 'a', transcript: 't'.repeat(40) } }, 10],
    ['sound', { audio: { id: 'a', data: 'A'.repeat(8000) } }, 8],
    ['thinking', { reasoning_content: 't'.repeat(40) }, 10],
    [
      'a call of a tool',
      {
        tool_calls: [
          { index: 0, id: 'x', type: 'function', function: { name: 'f'.repeat(20), arguments: '"'.repeat(20) } },
        ],
      },
      10,
    ],
    ['a call of a function', { function_call: { name: 'f'.repeat(20), arguments: '1'.repeat(20) } }, 10],
    ['an unknown kind', { picture: { words: 'p'.repeat(40) } }, 10],
  ] as const)
    it(`is charged for ${kind} if the provider reports no usage`, async () => {
      const mark = await rig.mark();
      rig.vendor.script(slowly([deltaOf(fields), delta('', 'stop'), '[DONE]'], 0));
      await rig.send({ stream: true });
      await rig.expectOrder(mark, 1, PROMPT_COST + 2 * tokens, 0);
    });

  it('is never charged more than it reserved, by an estimate', async () => {
    const mark = await rig.mark();
    rig.vendor.script(slowly([delta('x'.repeat(4000)), delta('', 'stop'), '[DONE]'], 0));
    await rig.send({ stream: true, max_tokens: 100 });
    await rig.expectOrder(mark, 1, PROMPT_COST + 200, 0);
  });
});
