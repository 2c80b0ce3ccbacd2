import type { Worker } from 'node:cluster';
import type { WorkerMessage } from '../plugins/gather.ts';

/** Sends; nothing happens when the worker is gone. */
export function send(worker: Worker, message: WorkerMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

/** Sends a message and waits for its reply; undefined when the worker ends before it, or takes too long. */
export function exchange(
  worker: Worker,
  message: WorkerMessage,
  isReply: (message: WorkerMessage) => boolean,
  withinMs: number,
): Promise<WorkerMessage | undefined> {
  return new Promise((resolve) => {
    const done = (reply?: WorkerMessage): void => {
      clearTimeout(timer);
      worker.off('message', listen);
      worker.off('disconnect', onGone);
      resolve(reply);
    };
    const listen = (received: WorkerMessage): void => {
      if (isReply(received)) done(received);
    };
    const onGone = (): void => done();
    const timer = setTimeout(done, withinMs);
    worker.on('message', listen);
    worker.once('disconnect', onGone);
    send(worker, message);
  });
}
