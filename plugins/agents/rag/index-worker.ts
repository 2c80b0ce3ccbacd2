/**
 * Process that updates the index: large or hostile files use neither time nor memory of the gateway, and a crash
 * affects only this process. Started by {@link startWorker}; it has no secrets and no network access.
 */
import { openIndex } from './database.ts';
import type { EmbedTexts } from './embed-pending.ts';
import { updateIndex } from './update-index.ts';
import type { UpdateJob } from './update-job.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** Longest wait of a write for another process's. */
const BUSY_MS = 10_000;

const waiting = new Map<number, (message: ToWorker) => void>();

/** Resolves when the message was sent: the next step may keep this process from sending it. */
function send(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.send) process.send(message, () => resolve());
    else resolve();
  });
}

const embed: EmbedTexts = async (texts) => {
  const id = waiting.size + 1;
  const response = new Promise<ToWorker>((resolve) => waiting.set(id, resolve));
  await send({ type: 'embed', id, texts });
  const message = await response;
  waiting.delete(id);
  if (message.type !== 'vectors') throw new TypeError('the embedding model cannot be reached');
  return message.vectors;
};

async function run(job: UpdateJob): Promise<FromWorker> {
  const database = await openIndex(job.indexFolder, BUSY_MS);
  try {
    const result = await updateIndex(job, {
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

process.on('message', (message: ToWorker) => {
  if (message.type === 'start')
    void run(message.job)
      .then(send)
      .then(() => process.exit(0));
  else waiting.get(message.id)?.(message);
});
process.on('disconnect', () => process.exit(0));
