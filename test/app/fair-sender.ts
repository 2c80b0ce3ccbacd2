/**
 * Client in a process of its own that sends one body in many lanes. It answers `Begin` once the first body was served, and `{}`
 * with the times of all served bodies, after the last one.
 */
import { createPoster, nowMs } from './fair-client.ts';

export interface Begin {
  readonly url: string;
  readonly key: string;
  readonly body: string;
  readonly lanes: number;
}

const times: number[] = [];
let isOver = false;
let lanes: Promise<unknown> = Promise.resolve();

async function begin({ url, key, body, lanes: count }: Begin): Promise<void> {
  const post = createPoster(url);
  const bytes = Buffer.from(body);
  const send = async (): Promise<void> => {
    while (!isOver) {
      const status = await post(key, bytes);
      if (status === 200) {
        times.push(nowMs());
        if (times.length === 1) process.send?.({ begun: true });
      } else if (status !== 429) throw new Error(`a body was answered by ${status}`);
      // Clients wait after this status.
      else await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  await Promise.all(Array.from({ length: count }, send));
}

process.on('message', (message: Partial<Begin>) => {
  if (message.url !== undefined) lanes = begin(message as Begin);
  else {
    isOver = true;
    void lanes.then(() => process.send?.({ times }));
  }
  lanes.catch((error: unknown) => process.send?.({ error: String(error) }));
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
