import { randomUUID } from 'node:crypto';
import { fixture } from '../support/speech/sound.ts';
import { startRealtimeVendor } from '../support/vendors/realtime-vendor.ts';
import {
  type RecordedRequest,
  respondWith,
  type Script,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are looked into, whatever their shape
type Loose = any;

/** Vendor of every operation other than chat, with the published formats of OpenAI, Anthropic, Google and Jina. */
export interface OperationsVendor {
  /** URL without a version. */
  readonly url: string;
  readonly realtimeUrl: string;
  close(): Promise<void>;
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
type Response = Buffer | string | Script;

const HELLO = 'Hello there, friend.';
/** Vectors of length 1, exact as float32. */
const VECTORS = [
  [1, 0, 0],
  [0, 1, 0],
];
const TOKENS = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

/** Source: https://platform.openai.com/docs/api-reference/images/object */
const IMAGES = {
  created: 1,
  data: [{ b64_json: PNG }],
  usage: {
    ...{ input_tokens: 10, output_tokens: 20, total_tokens: 30 },
    input_tokens_details: { text_tokens: 10, image_tokens: 0 },
  },
};
/** Source: https://platform.openai.com/docs/api-reference/images-streaming */
const IMAGE_EVENTS = ['image_generation.partial_image', 'image_generation.completed'].map((type) => ({
  ...{ type, b64_json: PNG, created_at: 1, size: '1024x1024', quality: 'high', background: 'opaque' },
  ...(type.endsWith('completed') ? { output_format: 'png', usage: IMAGES.usage } : { partial_image_index: 0 }),
}));
/** Source: https://platform.openai.com/docs/api-reference/audio/verbose-json-object */
const SPOKEN = {
  ...{ task: 'transcribe', language: 'english', duration: 2, text: HELLO, usage: { type: 'duration', seconds: 2 } },
  segments: [
    {
      ...{ id: 0, seek: 0, start: 0, end: 2, text: HELLO, tokens: [50364], temperature: 0, avg_logprob: -0.2 },
      ...{ compression_ratio: 1.2, no_speech_prob: 0.01 },
    },
  ],
};
/** Source: https://platform.openai.com/docs/api-reference/audio/transcript-text-delta-event */
const SPOKEN_EVENTS = [
  { type: 'transcript.text.delta', delta: HELLO },
  { type: 'transcript.text.done', text: HELLO, usage: { type: 'tokens', input_tokens: 9, output_tokens: 3 } },
];

/** Operations with one request and one response, by the end of the path. */
const SINGLE: Readonly<Record<string, (request: RecordedRequest) => Response>> = Object.freeze({
  embeddings(request) {
    const { model, input } = request.json() as Loose;
    const data = [input].flat().map((_, index) => ({ object: 'embedding', index, embedding: VECTORS[index] }));
    return respondWith(200, { object: 'list', model, data, usage: { prompt_tokens: 9, total_tokens: 9 } });
  },
  'images/generations': (request) =>
    (request.json() as Loose).stream === true ? sse(...IMAGE_EVENTS) : respondWith(200, IMAGES),
  // The client's image must arrive unchanged.
  'images/edits': ({ body }) =>
    body.includes(Buffer.from(PNG, 'base64'))
      ? respondWith(200, IMAGES)
      : respondWith(400, { error: { message: 'No image.' } }),
  'audio/transcriptions': ({ body }) =>
    /name="stream"\r\n\r\ntrue/.test(body.toString('latin1')) ? sse(...SPOKEN_EVENTS) : respondWith(200, SPOKEN),
  'audio/translations': () => respondWith(200, { ...SPOKEN, task: 'translate' }),
  'audio/speech': () => respondWith(200, fixture('hi.mp3'), { 'content-type': 'audio/mpeg' }),
  moderations(request) {
    const results = [(request.json() as Loose).input].flat().map((text) => {
      const flagged = /hurt/.test(String(text));
      return { flagged, categories: { violence: flagged }, category_scores: { violence: flagged ? 0.9 : 0.1 } };
    });
    return respondWith(200, { id: 'modr-1', model: 'omni-moderation-latest', results, usage: TOKENS });
  },
  rerank(request) {
    const { model, documents, top_n: most } = request.json() as Loose;
    const scored = (documents as readonly unknown[]).map((document, index) => ({
      ...{ index, relevance_score: /hello/i.test(JSON.stringify(document)) ? 0.9 : 0.1 },
    }));
    const results = scored.toSorted((one, other) => other.relevance_score - one.relevance_score).slice(0, most);
    return respondWith(200, { id: 'rerank-1', model, results, usage: { total_tokens: 20 } });
  },
});

const jsonl = (lines: readonly object[]): string => {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  return `HTTP/1.1 200 OK\r\ncontent-type: application/jsonl\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};

/** Files and batches in OpenAI's format; a batch is complete when it is requested. */
function createOpenaiBatches(): (request: RecordedRequest) => Response {
  const files = new Map<string, readonly Loose[]>();
  const batches = new Map<string, Loose>();
  return ({ method, path: at, body, json }) => {
    const [, , kind, id = '', action] = at.split('/');
    if (kind === 'files' && method === 'POST') {
      const file = { id: `file-${randomUUID()}`, object: 'file', bytes: body.length, created_at: 1, filename: 'x' };
      const lines = body.toString().match(/^\{.*\}$/gm) ?? [];
      files.set(
        file.id,
        lines.map((line) => JSON.parse(line)),
      );
      return respondWith(200, { ...file, purpose: 'batch' });
    }
    if (kind === 'files' && action === 'content') return jsonl(files.get(id) ?? []);
    if (kind === 'files') return respondWith(200, { id, object: 'file', deleted: files.delete(id) });
    if (method === 'POST' && id === '') {
      const { input_file_id, endpoint, metadata = null } = json() as Loose;
      const total = files.get(input_file_id)?.length ?? 0;
      const batch = {
        ...{ id: `batch_${randomUUID()}`, object: 'batch', endpoint, errors: null, input_file_id, metadata },
        ...{ completion_window: '24h', status: 'validating', output_file_id: null, error_file_id: null, created_at: 1 },
        request_counts: { total, completed: 0, failed: 0 },
      };
      batches.set(batch.id, batch);
      return respondWith(200, batch);
    }
    const batch = batches.get(id);
    if (!batch) return respondWith(404, { error: { message: 'No such batch.' } });
    const output = `file-of-${id}`;
    files.set(output, (files.get(batch.input_file_id) ?? []).map(resultOf));
    return respondWith(200, Object.assign(batch, { status: 'completed', output_file_id: output }));
  };
}

/**
 * Returns the result line of a request line. Source:
 * https://platform.openai.com/docs/api-reference/batch/request-output
 */
const resultOf = ({ custom_id, body: { model } }: Loose): object => ({
  ...{ id: `batch_req_${custom_id}`, custom_id, error: null },
  response: {
    ...{ status_code: 200, request_id: 'r' },
    body: {
      ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, usage: TOKENS },
      choices: [{ index: 0, message: { role: 'assistant', content: HELLO }, finish_reason: 'stop', logprobs: null }],
    },
  },
});

/** Batches of messages. Source: https://platform.claude.com/docs/en/api/messages/batches */
function createAnthropicBatches(): (request: RecordedRequest) => Response {
  const batches = new Map<string, Loose>();
  return ({ method, path: at, json }) => {
    const [, , , , id = '', action] = (at.split('?')[0] ?? '').split('/');
    const now = new Date().toISOString();
    if (method === 'POST' && id === '') {
      const { requests } = json() as Loose;
      const batch = {
        ...{ id: `msgbatch_${randomUUID()}`, type: 'message_batch', processing_status: 'in_progress' },
        request_counts: { processing: requests.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
        ...{ results_url: null, created_at: now, expires_at: now, ended_at: null, cancel_initiated_at: null },
      };
      batches.set(batch.id, { batch, requests });
      return respondWith(200, batch);
    }
    const known = batches.get(id);
    if (!known) return respondWith(404, { error: { type: 'not_found_error', message: 'No such batch.' } });
    const { batch, requests } = known;
    if (action === 'results')
      return jsonl(
        requests.map(({ custom_id, params: { model } }: Loose) => ({
          custom_id,
          result: {
            type: 'succeeded',
            message: {
              ...{ id: 'msg_1', type: 'message', role: 'assistant', model, content: [{ type: 'text', text: HELLO }] },
              ...{ stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 9, output_tokens: 3 } },
            },
          },
        })),
      );
    const results = `https://api.anthropic.com/v1/messages/batches/${id}/results`;
    const counts = { processing: 0, succeeded: requests.length, errored: 0, canceled: 0, expired: 0 };
    return respondWith(
      200,
      Object.assign(batch, {
        ...{ processing_status: 'ended', ended_at: now, results_url: results },
        request_counts: counts,
      }),
    );
  };
}

/**
 * Google's embeddings and batches. Sources: https://ai.google.dev/api/embeddings, https://ai.google.dev/api/batch-api
 */
function createGoogle(): (request: RecordedRequest) => Response {
  const batches = new Map<string, Loose>();
  return ({ path: at, json }) => {
    if (at.endsWith(':batchEmbedContents')) {
      const { requests } = json() as Loose;
      const embeddings = requests.map((_: unknown, index: number) => ({ values: VECTORS[index] }));
      return respondWith(200, { embeddings });
    }
    const [, model] = /models\/([^:]+):batchGenerateContent$/.exec(at) ?? [];
    if (model !== undefined) {
      const { batch } = json() as Loose;
      const name = `batches/${randomUUID()}`;
      const { requests } = batch.inputConfig.requests;
      const stats = { requestCount: String(requests.length) };
      const metadata = {
        ...{ '@type': 'x', name, model: `models/${model}`, displayName: batch.displayName },
        ...{ state: 'BATCH_STATE_PENDING', createTime: new Date().toISOString(), batchStats: stats },
      };
      batches.set(name, { name, metadata });
      return respondWith(200, { name, metadata });
    }
    const known = batches.get(at.replace(/^\/v1beta\/|:cancel$/g, ''));
    if (!known) return respondWith(404, { error: { code: 404, message: 'No such batch.', status: 'NOT_FOUND' } });
    const response = {
      candidates: [{ content: { role: 'model', parts: [{ text: HELLO }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 },
    };
    const inlined = { inlinedResponses: { inlinedResponses: [{ response }] } };
    Object.assign(known, { done: true, response: { '@type': 'y', ...inlined } });
    Object.assign(known.metadata, { state: 'BATCH_STATE_SUCCEEDED', output: inlined });
    return respondWith(200, known);
  };
}

export async function startOperationsVendor(): Promise<OperationsVendor> {
  const [openai, anthropic, google] = [createOpenaiBatches(), createAnthropicBatches(), createGoogle()];
  const respond = (request: RecordedRequest): Response => {
    const { path: at } = request;
    const single = SINGLE[at.replace(/^\/v1\/|\?.*$/g, '')];
    if (single) return single(request);
    if (at.startsWith('/v1beta/')) return google(request);
    return at.startsWith('/v1/messages/') ? anthropic(request) : openai(request);
  };
  const upstream = await startScriptedUpstream((wire) => {
    const response = respond(wire.request);
    return typeof response === 'function' ? response(wire) : wire.send(response);
  });
  const realtime = await startRealtimeVendor();
  return {
    ...{ url: upstream.url, realtimeUrl: realtime.url },
    async close() {
      await upstream.close();
      await realtime.close();
    },
  };
}
