/** Two accounts before one gateway: one sends many bodies at once, the other a small call at a time. */
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { startWorker, type Worker } from '../support/stores/worker-process.ts';
import { openAiVendor } from '../support/vendors/openai-vendor.ts';
import { createPoster } from './fair-client.ts';
import type { Begin } from './fair-sender.ts';

const bodyOf = (messages: readonly object[], model = 'vendor/m'): string => JSON.stringify({ model, messages });
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
  return bodyOf([say('go'), ...turns.flat()]);
}

/** A call of the other account. Its vendor is a process of its own, where it does not wait behind the bodies of the first account. */
export const SMALL_CALL: string = bodyOf([say('hi')], 'calm/m');

interface Sent {
  readonly body: string;
  /** Number of concurrent bodies of one account. */
  readonly lanes: number;
  /** Large bodies rest after each other: most small calls of others are served between two of them. */
  readonly isLarge?: true;
}

/** Bodies that one account sends again and again. */
export const SENT: Readonly<Record<string, Sent>> = {
  '10,000 calls of tools': { body: toolTurns(10_000), lanes: 4, isLarge: true },
  'a hundred calls of tools': { body: toolTurns(100), lanes: 64 },
  '79,000 messages': { body: bodyOf(Array.from({ length: 79_000 }, () => say('a'))), lanes: 4, isLarge: true },
  '4,000 messages': { body: bodyOf(Array.from({ length: 4000 }, () => say('a'))), lanes: 64, isLarge: true },
  'a text of 6 MB': { body: bodyOf([say('x '.repeat(3_000_000))]), lanes: 4, isLarge: true },
  'a text of 30 MB': { body: bodyOf([say('x '.repeat(15_000_000))]), lanes: 2, isLarge: true },
  'short calls': { body: bodyOf([say('hi')]), lanes: 100 },
  'more short calls': { body: bodyOf([say('hi')]), lanes: 300 },
};

/** A gateway with the keys of two accounts, and a vendor for each in processes of their own. */
export interface FairRig {
  readonly gateway: GatewayProcess;
  readonly greedy: string;
  readonly other: string;
  /** Posts a body and returns the status. */
  post(key: string, body: string): Promise<number>;
  close(): Promise<void>;
}

export async function startFairRig(): Promise<FairRig> {
  const start = () => startWorker(new URL('./fair-vendor.ts', import.meta.url), {});
  const [vendor, calm] = await Promise.all([start(), start()]);
  const providers = { vendor: await providerOf(vendor), calm: await providerOf(calm) };
  const installation: Installation = await installGateway({ store: 'sqlite:./data', providers });
  const make = async (user: string): Promise<string> =>
    (await installation.command('keys', 'create', '--user', user)).api_key;
  const [greedy, other] = [await make('greedy'), await make('other')];
  const gateway = await installation.start();
  const post = createPoster(gateway.url);
  return {
    gateway,
    greedy,
    other,
    post: (key, body) => post(key, Buffer.from(body)),
    async close() {
      await installation.remove();
      await Promise.all([vendor.stop(), calm.stop()]);
    },
  };
}

async function providerOf(vendor: Worker): Promise<object> {
  const { port } = await vendor.send<{ readonly port: number }>({});
  return openAiVendor({ url: `http://127.0.0.1:${port}` });
}

/**
 * Sends a body in many lanes from a process of its own, so that its responses do not wait in the caller's process. Resolves when
 * the first one was served; `end` returns the times of all, by `nowMs`.
 */
export async function attack(
  { greedy, gateway: { url } }: FairRig,
  { body, lanes }: Sent,
): Promise<{ end(): Promise<readonly number[]> }> {
  const sender = await startWorker(new URL('./fair-sender.ts', import.meta.url), {});
  const begin: Begin = { url, key: greedy, body, lanes };
  await sender.send(begin);
  return {
    async end() {
      const { times } = await sender.send<{ readonly times: readonly number[] }>({});
      await sender.stop();
      return times;
    },
  };
}
