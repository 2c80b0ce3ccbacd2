/** Two accounts before one gateway: one sends many bodies at once, the other a small call at a time. */
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { openAiVendor } from '../support/vendors/openai-vendor.ts';
import { answer, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const ask = (messages: readonly object[]): string => JSON.stringify({ model: 'vendor/m', messages });
const say = (content: string): object => ({ role: 'user', content });

/** Tool calls and their results; 10,000 of them are 2 MB. */
export function toolTurns(count: number): string {
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

export const SMALL_CALL: string = ask([say('hi')]);

interface Sent {
  readonly body: string;
  /** How many one account sends at once. */
  readonly lanes: number;
  /** Large bodies rest after each other: most small calls of others are served between two of them. */
  readonly isLarge?: true;
}

/** Bodies that one account sends again and again. */
export const SENT: Readonly<Record<string, Sent>> = {
  '10,000 calls of tools': { body: toolTurns(10_000), lanes: 4, isLarge: true },
  'a hundred calls of tools': { body: toolTurns(100), lanes: 64 },
  '79,000 messages': { body: ask(Array.from({ length: 79_000 }, () => say('a'))), lanes: 4, isLarge: true },
  '4,000 messages': { body: ask(Array.from({ length: 4000 }, () => say('a'))), lanes: 64, isLarge: true },
  'a text of 6 MB': { body: ask([say('x '.repeat(3_000_000))]), lanes: 4, isLarge: true },
  'a text of 30 MB': { body: ask([say('x '.repeat(15_000_000))]), lanes: 2, isLarge: true },
  'short calls': { body: SMALL_CALL, lanes: 100 },
  'more short calls': { body: SMALL_CALL, lanes: 300 },
};

const ANSWER = {
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
};

/** A gateway with the keys of two accounts. */
export interface FairRig {
  readonly gateway: GatewayProcess;
  readonly greedy: string;
  readonly other: string;
  /** Posts a body and returns the status. */
  post(key: string, body: string): Promise<number>;
  close(): Promise<void>;
}

export async function startFairRig(): Promise<FairRig> {
  const vendor = await startScriptedUpstream();
  vendor.script(answer(200, JSON.stringify(ANSWER), { 'content-type': 'application/json' }));
  const providers = { vendor: openAiVendor(vendor) };
  const installation: Installation = await installGateway({ store: 'sqlite:./data', providers });
  const make = async (user: string): Promise<string> =>
    (await installation.command('keys', 'create', '--user', user)).api_key;
  const [greedy, other] = [await make('greedy'), await make('other')];
  const gateway = await installation.start();
  return {
    gateway,
    greedy,
    other,
    async post(key, body) {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body,
      });
      await response.arrayBuffer();
      return response.status;
    },
    async close() {
      await installation.remove();
      await vendor.close();
    },
  };
}

/** Sends a body in many lanes until it is ended; `answered` counts the calls that were served. */
export function attack(
  { greedy, post }: FairRig,
  { body, lanes }: Sent,
): { readonly answered: () => number; end(): Promise<void> } {
  let isOver = false;
  let answered = 0;
  const running = Array.from({ length: lanes }, async () => {
    while (!isOver) {
      const status = await post(greedy, body);
      if (status === 200) answered += 1;
      else if (status !== 429) throw new Error(`a body was answered by ${status}`);
      // As clients do that are told to wait.
      else await new Promise((resolve) => setTimeout(resolve, 100));
    }
  });
  return {
    answered: () => answered,
    async end() {
      isOver = true;
      await Promise.all(running);
    },
  };
}
