import type { RecordedRequest, ScriptedUpstream, Wire } from '../../../support/vendors/scripted-upstream.ts';
import { respondWith, startScriptedUpstream } from '../../../support/vendors/scripted-upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are looked into, whatever their shape
export type Loose = any;

/**
 * Vendor with files and batches in the published formats of OpenAI and Anthropic; `end` sets the results of a batch.
 */
export interface BatchVendor {
  readonly url: string;
  readonly upstream: ScriptedUpstream;
  /** Uploaded files by id. */
  readonly files: ReadonlyMap<string, string>;
  /** Batches by id. */
  readonly batches: Map<string, Loose>;
  /** Number of requests per method and path. */
  countOf(what: string): number;
  /** Cuts the results of a batch at this byte; undefined sends them whole. */
  cutAt: number | undefined;
  /** Ends a batch with these result lines. */
  end(id: string, lines: readonly (object | string)[], status?: string): void;
  close(): Promise<void>;
}

/** Sources: https://platform.openai.com/docs/api-reference/batch, …/files, https://platform.claude.com/docs/en/api/messages/batches */
export async function startBatchVendor(): Promise<BatchVendor> {
  const files = new Map<string, string>();
  const batches = new Map<string, Loose>();
  const results = new Map<string, string>();
  const counts = new Map<string, number>();
  let ids = 0;
  const jsonl = (text: string): string =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/jsonl\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
  const notFound = (): Buffer =>
    respondWith(404, { error: { message: 'No such thing', type: 'invalid_request_error' } });
  const begin = (batch: Loose): Buffer => {
    batches.set(batch.id, batch);
    return respondWith(200, batch);
  };
  const openai = ({ method, path: countOf, body, json }: RecordedRequest): Buffer | string => {
    const [path = ''] = countOf.split('?');
    const [, , kind, id = '', action] = path.split('/');
    if (method === 'POST' && path === '/v1/files') {
      const text = body.toString();
      ids += 1;
      const from = text.indexOf('\r\n\r\n', text.indexOf('name="file"')) + 4;
      files.set(`file-v${ids}`, text.slice(from, text.indexOf('\r\n--', from)));
      return respondWith(200, {
        id: `file-v${ids}`,
        object: 'file',
        bytes: 1,
        created_at: 1,
        filename: 'x',
        purpose: 'batch',
      });
    }
    if (kind === 'files' && method === 'DELETE')
      return files.delete(id) ? respondWith(200, { id, deleted: true }) : notFound();
    if (kind === 'files' && action === 'content') {
      const text = files.get(id) ?? results.get(id);
      return text === undefined ? notFound() : jsonl(text);
    }
    const now = Math.floor(Date.now() / 1000);
    if (method === 'POST' && path === '/v1/batches') {
      ids += 1;
      const { input_file_id, endpoint, metadata = null } = json() as Loose;
      return begin({
        ...{ id: `batch_v${ids}`, object: 'batch', endpoint, errors: null, input_file_id, completion_window: '24h' },
        ...{ status: 'validating', output_file_id: null, error_file_id: null, created_at: now, metadata },
        ...{ expires_at: now + 86_400, request_counts: { total: 0, completed: 0, failed: 0 } },
      });
    }
    const batch = batches.get(id);
    if (!batch) return notFound();
    if (action === 'cancel' && batch.status === 'validating') batch.status = 'cancelling';
    return respondWith(200, batch);
  };
  const anthropic = ({ method, path, json }: RecordedRequest): Buffer | string => {
    const [, , , , id = '', action] = (path.split('?')[0] ?? '').split('/');
    if (method === 'POST' && id === '') {
      ids += 1;
      const { requests } = json() as Loose;
      return begin({
        ...{ id: `msgbatch_v${ids}`, type: 'message_batch', processing_status: 'in_progress', results_url: null },
        request_counts: { processing: requests.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
        ...{ created_at: new Date().toISOString(), expires_at: new Date(Date.now() + 86_400_000).toISOString() },
        ...{ ended_at: null, cancel_initiated_at: null, archived_at: null },
      });
    }
    const batch = batches.get(id);
    if (!batch) return notFound();
    if (action === 'results') return jsonl(results.get(id) ?? '');
    if (action === 'cancel') batch.processing_status = 'canceling';
    if (method === 'DELETE')
      return batches.delete(id) ? respondWith(200, { id, type: 'message_batch_deleted' }) : notFound();
    return respondWith(200, batch);
  };
  const upstream = await startScriptedUpstream((wire: Wire) => {
    const { request } = wire;
    const what = `${request.method} ${request.path}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
    const said = request.path.startsWith('/v1/messages') ? anthropic(request) : openai(request);
    if (vendor.cutAt === undefined || !/\/(?:content|results)$/.test(request.path)) return wire.send(said);
    return wire.send(said.slice(0, vendor.cutAt)).then(() => wire.hang());
  });
  const vendor: BatchVendor = {
    cutAt: undefined,
    ...{ url: upstream.url, upstream, files, batches },
    countOf: (what) => counts.get(what) ?? 0,
    end(id, lines, status = 'completed') {
      const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
      const batch = batches.get(id);
      if (id.startsWith('msgbatch_')) {
        results.set(id, text);
        Object.assign(batch, { processing_status: 'ended', ended_at: new Date().toISOString() });
        batch.results_url = `https://api.anthropic.com/v1/messages/batches/${id}/results`;
        return;
      }
      results.set(`file-of-${id}`, text);
      Object.assign(batch, { status, output_file_id: lines.length > 0 ? `file-of-${id}` : null });
    },
    close: () => upstream.close(),
  };
  return vendor;
}

/** Line of a request file. */
export const line = (custom_id: string, body: object = {}, url = '/v1/chat/completions'): Loose => ({
  ...{ custom_id, method: 'POST', url },
  body: { model: 'openai/gpt-5.5', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...body },
});

/** Line of a result file. */
export const result = (custom_id: string, usage: object | undefined = use(1000, 100), status_code = 200): Loose => ({
  ...{ id: `batch_req_${custom_id}`, custom_id, error: null },
  response: {
    ...{ status_code, request_id: 'r' },
    body: {
      ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gpt-5.5' },
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop', logprobs: null }],
      ...(usage && { usage }),
    },
  },
});

/** Result line in Anthropic's format. */
export const message = (custom_id: string): object => ({
  custom_id,
  result: {
    type: 'succeeded',
    message: {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus-5', stop_reason: 'end_turn' },
      ...{ content: [{ type: 'text', text: 'Hello' }], stop_sequence: null },
      usage: { input_tokens: 1000, output_tokens: 100, service_tier: 'batch' },
    },
  },
});

export const use = (prompt_tokens: number, completion_tokens: number) => ({
  ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
});
