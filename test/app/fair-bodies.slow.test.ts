import { expect } from 'chai';
import {
  type GatewayProcess,
  type Installation,
  installGateway,
  workedMs,
} from '../support/gateways/gateway-process.ts';
import { openAiVendor } from '../support/vendors/openai-vendor.ts';
import { answer, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const CALLS = 60;
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

describe('bodies of one account', function () {
  this.timeout(900_000);
  let vendor: ScriptedUpstream;
  let installation: Installation;
  let gateway: GatewayProcess;
  let keys: readonly [greedy: string, victim: string];
  let alone: number;
  before(async () => {
    vendor = await startScriptedUpstream();
    vendor.script(answer(200, JSON.stringify(ANSWER), { 'content-type': 'application/json' }));
    installation = await installGateway({ store: 'sqlite:./data', providers: { vendor: openAiVendor(vendor) } });
    const make = async (user: string): Promise<string> =>
      (await installation.command('keys', 'create', '--user', user)).api_key;
    keys = [await make('greedy'), await make('victim')];
    gateway = await installation.start();
    await post(keys[0], toolTurns(1000));
    await p95();
    alone = await p95();
  });
  after(async () => {
    await installation.remove();
    await vendor.close();
  });

  const post = async (key: string, body: string): Promise<number> => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  };

  /** Processor time of the gateway for one body, in milliseconds: the minimum of three runs. */
  async function workFor(key: string, body: string): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let at = 0; at < 3; at += 1) {
      const began = workedMs(gateway.pid);
      await post(key, body);
      least = Math.min(least, workedMs(gateway.pid) - began);
    }
    return least;
  }

  /**
   * 95th percentile of the gateway's processor time during a small call, in milliseconds. Other processes on the
   * machine do not count.
   */
  async function p95(): Promise<number> {
    const body = ask([say('hi')]);
    const took: number[] = [];
    for (let at = 0; at < CALLS; at += 1) {
      const began = workedMs(gateway.pid);
      expect(await post(keys[1], body)).to.equal(200);
      took.push(workedMs(gateway.pid) - began);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return took.sort((a, b) => a - b)[Math.floor(CALLS * 0.95)] ?? 0;
  }

  for (const [what, [body, lanes]] of Object.entries(SENT))
    it(`hardly slow down the small calls of others: ${lanes} concurrent requests with ${what} (E30)`, async () => {
      const most = BODIES * (await workFor(keys[0], body)) + SMALL_CALLS * alone;
      let isOver = false;
      let sent = 0;
      const attack = Array.from({ length: lanes }, async () => {
        while (!isOver) {
          const status = await post(keys[0], body);
          expect(status).to.be.oneOf([200, 429]);
          sent += 1;
          // Waits, as clients do after a 429.
          if (status === 429) await new Promise((resolve) => setTimeout(resolve, 100));
        }
      });
      let beside = Number.POSITIVE_INFINITY;
      for (let at = 0; at < ATTEMPTS && beside - alone >= most; at += 1) beside = Math.min(beside, await p95());
      isOver = true;
      await Promise.all(attack);
      expect(sent).to.be.above(0);
      if (process.env['ATTACK_FIGURES'])
        process.stdout.write(
          `| ${what}, ${lanes} at once | ${alone.toFixed(1)} | ${beside.toFixed(0)} | ${most.toFixed(0)} |\n`,
        );
      expect(beside - alone, `${Math.round(beside)} ms beside, ${Math.round(alone)} alone`).to.be.below(most);
    });
});
