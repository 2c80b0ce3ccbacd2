import {
  type Call,
  type ChatChunk,
  definePlugin,
  ERRORS,
  type ErrorCode,
  formatUsd,
  GatewayError,
  isObject,
  type Outcome,
  parseSize,
  type RequestOf,
  type StreamTransform,
} from '../../contract/index.ts';
import { refuseUnseen } from './kit/guard.ts';
import { codedTextsOf, lengthOf } from './kit/judged-texts.ts';
import { requestVerdict, SERVICE } from './kit/service.ts';

/** Replacement from the service; undefined means no change. */
type Replacement = unknown;

/** Request fields with files of a caller: they are not sent, and stay unchanged. */
const FILES = ['file', 'images', 'mask'] as const;

const MAX_MESSAGE = 1000;

/** Reads the verdict of the service; throws for an invalid one. `field` names the replaceable field, if any. */
function readVerdict(body: unknown, instance: string, field?: string): Replacement {
  if (isObject(body)) {
    const { action, code = 'content_filtered', message } = body;
    if (action === 'pass') return undefined;
    if (action === 'replace' && field !== undefined && typeof body[field] === 'object' && body[field] !== null)
      return body[field];
    if (action === 'refuse' && isRefusal(code) && (message === undefined || typeof message === 'string'))
      throw new GatewayError(
        code,
        message?.slice(0, MAX_MESSAGE) ?? `The policy "${instance}" of this gateway rejected this call.`,
        { refusedBy: instance },
      );
  }
  const forms = field === undefined ? '' : `, {"action":"replace","${field}":…}`;
  throw new TypeError(`the service returned no verdict: {"action":"pass"}${forms} or {"action":"refuse"}`);
}

/** Returns true for error codes with a status below 500: a failure of the service is not a rejection. */
function isRefusal(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code) && ERRORS[code as ErrorCode].status < 500;
}

function describeCall(call: Call): object {
  const { id, requestId, operation, principal, tags, session, request, stream, targets, startedAt, client } = call;
  const { userId, account, keyId, plan } = principal;
  return {
    id,
    request_id: requestId,
    operation,
    model: request.model,
    stream,
    user: userId,
    account,
    key: keyId,
    plan,
    tags,
    session,
    dialect: client?.dialect,
    targets: targets.map(({ provider, model }) => `${provider}/${model}`),
    started_at: new Date(startedAt).toISOString(),
  };
}

function describeError({ code, status, message, param }: GatewayError): object {
  return { code, status, message, param: param ?? null };
}

function describeOutcome(outcome: Outcome): object {
  const { status, error, target, attempts, usage, cost, durationMs, firstByteMs, refusedBy } = outcome;
  return {
    status,
    ...(error && { error: describeError(error) }),
    refused_by: refusedBy,
    target: target && `${target.provider}/${target.model}`,
    attempts: attempts.length,
    usage,
    cost_usd: cost === undefined ? null : formatUsd(cost),
    duration_ms: durationMs,
    first_byte_ms: firstByteMs,
  };
}

/** Removes the caller's files from a request. */
function withoutFiles(request: object): object {
  return Object.fromEntries(Object.entries(request).filter(([name]) => !FILES.some((file) => file === name)));
}

/** Sends parts of a stream to the service, and passes its verdict on. */
function sendChunks(
  window: number,
  send: (chunks: readonly ChatChunk[], isLast: boolean) => Promise<Replacement>,
): StreamTransform {
  const held: ChatChunk[] = [];
  // Chunks buffered when the service failed; they are passed on with `onFailure: open`.
  let unsent: readonly ChatChunk[] | undefined;
  let size = 0;
  const flush = async (isLast: boolean): Promise<readonly ChatChunk[]> => {
    const chunks = held.splice(0);
    size = 0;
    // The chunk whose push fails is passed on separately.
    unsent = isLast ? chunks : chunks.slice(0, -1);
    const replaced = await send(chunks, isLast);
    unsent = undefined;
    return (replaced as readonly ChatChunk[] | undefined) ?? chunks;
  };
  return {
    async push(chunk) {
      held.push(chunk);
      for (const { delta } of chunk.choices) size += lengthOf(delta);
      return size < window ? [] : await flush(false);
    },
    end: async () => unsent ?? (held.length > 0 ? await flush(true) : []),
  };
}

/**
 * Hooks of a call for programs other than plugins: each is sent as JSON to a service, which accepts, replaces or
 * rejects it.
 */
export default definePlugin({
  name: 'http-hook',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['url'],
    additionalProperties: false,
    properties: {
      url: { type: 'string', format: 'url', description: 'URL that receives the hooks by POST.' },
      ...SERVICE,
      hooks: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { enum: ['admit', 'prepare', 'receive', 'error', 'finish'] },
        default: ['prepare', 'receive'],
        description:
          'Hooks to send: start of a call (`admit`), request before it is sent to a provider (`prepare`), response or pieces of a stream (`receive`), error (`error`), result (`finish`).',
      },
      window: {
        type: 'integer',
        minimum: 1,
        maximum: 1_000_000,
        default: 1000,
        description: 'Number of characters of a stream that are buffered and sent at a time.',
      },
    },
  },
  setup(api, { url, headers, hooks, window, maxSize }) {
    const most = parseSize(maxSize);
    const send = async (call: Call, hook: string, content: object, field?: string): Promise<Replacement> => {
      const json = { version: 1, hook, call: describeCall(call), ...content };
      if (JSON.stringify(content).length > most)
        throw new GatewayError(
          'request_too_large',
          `The call exceeds the limit of ${most} characters of the policy "${api.instance}" of this gateway. Send less text.`,
          { refusedBy: api.instance },
        );
      return await requestVerdict(
        api,
        { url, headers },
        call,
        json,
        (body) => readVerdict(body, api.instance, field),
        hook === 'finish',
      );
    };
    const prepare = async (call: Call, request: object) => {
      const sent = withoutFiles(request);
      const texts = codedTextsOf(sent);
      const content = { request: sent, ...(texts.length > 0 && { coded_texts: texts }) };
      const given = await send(call, 'prepare', content, 'request');
      if (given === undefined) return undefined;
      const files = Object.entries(request).filter(([name]) => FILES.some((file) => file === name));
      return { ...withoutFiles(given as object), ...Object.fromEntries(files) } as RequestOf<'chat'>;
    };
    if (hooks.includes('prepare') || hooks.includes('receive'))
      refuseUnseen(api, (side) => hooks.includes(side === 'request' ? 'prepare' : 'receive'));
    if (hooks.includes('admit')) api.hook('admit', async (call) => void (await send(call, 'admit', {})));
    if (hooks.includes('prepare')) {
      api.hook('prepare', prepare);
      api.hook('prepare', { operations: ['count'], handler: prepare });
    }
    if (hooks.includes('receive')) {
      api.hook('receive', {
        operations: ['chat', 'mcp'],
        handler: async (call, response) =>
          (await send(call, 'receive', { response }, 'response')) as typeof response | undefined,
      });
      api.hook('stream', {
        operations: ['chat'],
        handler: (call) =>
          sendChunks(window, (chunks, isLast) => send(call, 'stream', { chunks, is_last: isLast }, 'chunks')),
      });
    }
    if (hooks.includes('error'))
      api.hook('error', async (call, error) => {
        const given = await send(call, 'error', { error: describeError(error) }, 'error').catch(() => undefined);
        if (!isObject(given)) return undefined;
        const { code = error.code, message = error.message } = given;
        if (typeof code !== 'string' || !Object.hasOwn(ERRORS, code) || typeof message !== 'string') return undefined;
        const { param, retryAfterMs, headers: reported, refusedBy } = error;
        const options = {
          headers: reported,
          cause: error,
          ...(param !== undefined && { param }),
        };
        return new GatewayError(code as ErrorCode, message.slice(0, MAX_MESSAGE), {
          ...options,
          ...(retryAfterMs !== undefined && { retryAfterMs }),
          ...(refusedBy !== undefined && { refusedBy }),
        });
      });
    if (hooks.includes('finish'))
      api.hook('finish', async (call, outcome) => {
        await send(call, 'finish', { outcome: describeOutcome(outcome) });
      });
  },
});
