import type { ConfigFile, DraftControl, DraftReport } from '../../contract/config-changes.ts';
import { GatewayError, isGatewayError, toGatewayError } from '../../contract/errors.ts';
import type { Log } from '../../contract/plugin.ts';
import { type DraftResult, type DraftWork, sendToPrimary, type WorkerMessage } from './messages.ts';

/** In a worker: the primary handles drafts, because it alone reads the configuration file. */
export function primaryDrafts(): DraftControl {
  let lastId = 0;
  const request = <T>(work: DraftWork): Promise<T> =>
    new Promise((resolve, reject) => {
      lastId += 1;
      const id = lastId;
      const listen = (message: WorkerMessage): void => {
        if (message.tollgate !== 'drafted' || message.id !== id) return;
        process.off('message', listen);
        const { result } = message;
        if ('value' in result) resolve(result.value as T);
        else reject(new GatewayError(result.error.code, result.error.message, result.error.options));
      };
      process.on('message', listen);
      sendToPrimary({ tollgate: 'draft', id, work });
    });
  return {
    read: (...args) => request<ConfigFile>({ method: 'read', args }),
    check: (...args) => request<DraftReport>({ method: 'check', args }),
    write: (...args) => request<DraftReport>({ method: 'write', args }),
  };
}

/** In the primary: runs the work of a worker. */
export async function runDraftWork(drafts: DraftControl, work: DraftWork, log: Log): Promise<DraftResult> {
  try {
    return { value: await runMethod(drafts, work) };
  } catch (error) {
    if (!isGatewayError(error)) log.error({ err: error }, 'a draft could not be handled');
    const { code, message, param, retryAfterMs } = toGatewayError(error);
    const options = { ...(param !== undefined && { param }), ...(retryAfterMs !== undefined && { retryAfterMs }) };
    return { error: { code, message, options } };
  }
}

function runMethod(drafts: DraftControl, work: DraftWork): Promise<unknown> {
  if (work.method === 'read') return drafts.read(...work.args);
  return work.method === 'check' ? drafts.check(...work.args) : drafts.write(...work.args);
}
