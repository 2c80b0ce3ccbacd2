import {
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';
import type { Loose } from './batch-vendor.ts';

/** Vendor with batches as documented by Google: https://ai.google.dev/api/batch-api */
export interface GoogleVendor {
  readonly upstream: ScriptedUpstream;
  readonly batches: Map<string, Loose>;
  /** Ends the newest batch with these results. */
  end(results: readonly object[], state?: string, successes?: number): string;
}

export async function startGoogleVendor(): Promise<GoogleVendor> {
  const batches = new Map<string, Loose>();
  const upstream = await startScriptedUpstream(async (wire) => {
    const { method, path, json } = wire.request;
    const send = (bytes: Buffer) => wire.send(bytes);
    const [id = '', action] = (path.split('/')[3] ?? '').split(':');
    const known = batches.get(id);
    if (path.endsWith(':batchGenerateContent')) {
      const { batch } = json() as Loose;
      const name = `batches/v${batches.size + 1}`;
      const now = new Date().toISOString();
      const metadata = {
        ...{ '@type': 'x', model: 'models/gemini-3.8-flash', displayName: batch.displayName, name },
        ...{ state: 'BATCH_STATE_PENDING', createTime: now, updateTime: now, inputConfig: batch.inputConfig },
        batchStats: { requestCount: String(batch.inputConfig.requests.requests.length) },
      };
      batches.set(name.slice('batches/'.length), { name, metadata });
      return send(respondWith(200, { name, metadata }));
    }
    if (!known) return send(respondWith(404, { error: { code: 404, message: 'No such batch', status: 'NOT_FOUND' } }));
    if (method === 'DELETE') batches.delete(id);
    if (action === 'cancel') known.metadata.state = 'BATCH_STATE_CANCELLED';
    return send(respondWith(200, method === 'GET' ? known : {}));
  });
  return {
    ...{ upstream, batches },
    end(results, state = 'BATCH_STATE_SUCCEEDED', successes) {
      const [id = '', batch] = [...batches].at(-1) ?? [];
      const inlined = { inlinedResponses: { inlinedResponses: results } };
      Object.assign(batch, { done: true, response: { '@type': 'y', ...inlined } });
      Object.assign(batch.metadata, { state, output: inlined, endTime: new Date().toISOString() });
      if (successes !== undefined) batch.metadata.batchStats.successfulRequestCount = String(successes);
      return id;
    },
  };
}

/** Result of one request, with its usage. */
export const responded = (prompt: number | null = 1000, written = 100): object => ({
  response: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 }],
    modelVersion: 'gemini-3.8-flash',
    ...(prompt !== null && {
      usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: written, totalTokenCount: prompt + written },
    }),
  },
});
/** Result of a failed request. */
export const failed = { error: { code: 3, message: 'Bad', status: 'INVALID_ARGUMENT' } };
