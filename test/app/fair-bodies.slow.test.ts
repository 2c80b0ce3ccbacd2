import { expect } from 'chai';
import {
  type GatewayProcess,
  type Installation,
  installGateway,
  workedMs,
} from '../support/gateways/gateway-process.ts';

/** Bodies of one account that are under way at once. */
const ATTACKERS = 4;
const CALLS = 150;
const TURNS = 10_000;

/** 1.7 MB of tool calls and their results. */
function toolTurns(): string {
  const messages: object[] = [{ role: 'user', content: 'go' }];
  for (let at = 0; at < TURNS; at += 1) {
    const call = { id: `call_${at}`, type: 'function', function: { name: 'look', arguments: '{"at":1}' } };
    messages.push({ role: 'assistant', content: null, tool_calls: [call] });
    messages.push({ role: 'tool', tool_call_id: `call_${at}`, content: 'found' });
  }
  messages.push({ role: 'user', content: 'done' });
  return JSON.stringify({ model: 'echo/echo', messages });
}

describe('large bodies of one account', function () {
  this.timeout(900_000);
  let installation: Installation;
  let gateway: GatewayProcess;
  let keys: readonly [greedy: string, victim: string];
  before(async () => {
    installation = await installGateway({ store: 'sqlite:./data', providers: { echo: {} } });
    const make = async (user: string): Promise<string> =>
      (await installation.command('keys', 'create', '--user', user)).api_key;
    keys = [await make('greedy'), await make('victim')];
    gateway = await installation.start();
  });
  after(() => installation.remove());

  const post = async (key: string, body: string): Promise<number> => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  };

  /** The 95th percentile of how long the gateway worked while a small call waited, in milliseconds: what others take of the machine is not its own. */
  async function p95(): Promise<number> {
    const body = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hi' }] });
    const took: number[] = [];
    for (let at = 0; at < CALLS; at += 1) {
      const began = workedMs(gateway.pid);
      expect(await post(keys[1], body)).to.equal(200);
      took.push(workedMs(gateway.pid) - began);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return took.sort((a, b) => a - b)[Math.floor(CALLS * 0.95)] ?? 0;
  }

  it('leave the small calls of others nearly as fast as they are alone (E30)', async () => {
    const large = toolTurns();
    expect(await post(keys[0], large)).to.equal(200);
    await p95();
    const alone = await p95();
    let isOver = false;
    let sent = 0;
    const attack = Array.from({ length: ATTACKERS }, async () => {
      while (!isOver) {
        expect(await post(keys[0], large)).to.be.oneOf([200, 429]);
        sent += 1;
      }
    });
    const beside = await p95();
    isOver = true;
    await Promise.all(attack);
    expect(sent).to.be.above(0);
    // Some 60; 730 where bodies come first whose bytes came first.
    expect(beside - alone, `${Math.round(beside)} ms beside, ${Math.round(alone)} alone`).to.be.below(300);
  });
});
