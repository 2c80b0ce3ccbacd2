import { expect } from 'chai';
import { until } from '../support/wait.ts';
import { attack, type FairRig, SENT, SMALL_CALL, startFairRig } from './fair-bodies.ts';

const CALLS = 60;
<<<<<<< HEAD
=======
/**
 * Maximum extra delay of another account's calls, in the gateway's own processor time. It allows for one started body
 * of each kind on this machine, plus some small calls.
 */
const BODIES = 1.5;
const SMALL_CALLS = 40;
/**
 * Number of measurements. On a busy machine calls take longer, and more of them overlap a body of the other account.
 */
const ATTEMPTS = 5;

const ask = (messages: readonly object[]): string => JSON.stringify({ model: 'vendor/m', messages });
const say = (content: string): object => ({ role: 'user', content });

/** Tool calls and their results; 10,000 of them are 2 MB. */
function toolTurns(count: number): string {
  const turns = Array.from({ length: count }, (_, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
    },
    { role: 'tool', tool_call_id: `call_${at}`, content: 'found' },
  ]);
  return ask([say('go'), ...turns.flat()]);
}

/** Body that one account sends repeatedly, and the number of concurrent requests. */
const SENT: Readonly<Record<string, readonly [body: string, lanes: number]>> = {
  '10,000 calls of tools': [toolTurns(10_000), 4],
  'a hundred calls of tools': [toolTurns(100), 64],
  '79,000 messages': [ask(Array.from({ length: 79_000 }, () => say('a'))), 4],
  '4,000 messages': [ask(Array.from({ length: 4000 }, () => say('a'))), 64],
  'a text of 6 MB': [ask([say('x '.repeat(3_000_000))]), 4],
  'a text of 30 MB': [ask([say('x '.repeat(15_000_000))]), 2],
  'short calls': [ask([say('hi')]), 100],
  'more short calls': [ask([say('hi')]), 300],
};

const ANSWER = {
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
};
>>>>>>> main

/** Order is judged here, by counts of answers; times are measured by `bench/fair-bodies.ts`. */
describe('bodies of one account', function () {
  this.timeout(900_000);
  let rig: FairRig;
  before(async () => {
    rig = await startFairRig();
  });
  after(() => rig.close());

  for (const [what, sent] of Object.entries(SENT))
    it(`let the small calls of others pass: ${sent.lanes} at once of ${what} (E30)`, async () => {
      const { answered, end } = attack(rig, sent);
      await until('the first body is answered', () => answered() > 0);
      /** How many bodies were answered while a small call waited. */
      const passed: number[] = [];
      for (let at = 0; at < CALLS; at += 1) {
        const began = answered();
        expect(await rig.post(rig.other, SMALL_CALL)).to.equal(200);
        passed.push(answered() - began);
      }
      await end();
      const median = passed.sort((a, b) => a - b)[CALLS / 2];
      // Without turns and rests a small call waits for every lane of small bodies, and for two large ones or more.
      expect(median, passed.join(' ')).to.be.at.most(sent.isLarge ? 1 : sent.lanes / 2);
    });
});
