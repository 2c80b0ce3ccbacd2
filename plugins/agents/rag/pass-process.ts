/**
 * The process of one pass over the folder: reading and cutting large or hostile files takes neither time nor memory of
 * the gateway, and a file that ends it ends nothing else. Started by {@link startPass}; it has no secrets and no network.
 */
import { openIndex } from './database.ts';
import type { EmbedTexts } from './embed-pending.ts';
import { type Job, runPass } from './pass.ts';
import type { FromPass, ToPass } from './pass-messages.ts';

/** How long a write waits for another process's. */
const BUSY_MS = 10_000;

const waiting = new Map<number, (message: ToPass) => void>();

/** Resolves when the message is on its way: what follows may keep this process from sending it. */
function send(message: FromPass): Promise<void> {
  return new Promise((resolve) => {
    if (process.send) process.send(message, () => resolve());
    else resolve();
  });
}

const embed: EmbedTexts = async (texts) => {
  const id = waiting.size + 1;
  const answer = new Promise<ToPass>((resolve) => waiting.set(id, resolve));
  await send({ type: 'embed', id, texts });
  const message = await answer;
  waiting.delete(id);
  if (message.type !== 'vectors') throw new TypeError('the model of embeddings cannot be asked now');
  return message.vectors;
};

async function run(job: Job): Promise<FromPass> {
  const database = await openIndex(job.indexFolder, BUSY_MS);
  try {
    const result = await runPass(job, {
      database,
      embed,
      onFile: ({ source, stamp }, done, total) => send({ type: 'file', source, stamp, done, total }),
      onFailed: (source, reason) => void send({ type: 'failed', source, reason }),
    });
    return { type: 'end', result };
  } catch (error) {
    return { type: 'stopped', reason: error instanceof Error ? error.message : 'unknown' };
  } finally {
    database.close();
  }
}

process.on('message', (message: ToPass) => {
  if (message.type === 'start')
    void run(message.job)
      .then(send)
      .then(() => process.exit(0));
  else waiting.get(message.id)?.(message);
});
process.on('disconnect', () => process.exit(0));
