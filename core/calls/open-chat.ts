import type { Target } from '../contract/call.ts';
import type { ChatRequest } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { ChatCodec, HttpRequest, ResponseHeaders } from '../contract/provider.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { exchange, noteRefusal, PageError } from './attempt.ts';
import type { LiveCall } from './live-call.ts';
import { codecCall, type PipelineDeps, providerOf } from './run.ts';

/** The largest whole answer that is read, in bytes. */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

/** What the HTTP layer tells about an answer beside its body. */
export interface AnswerNotes {
  readonly call: LiveCall;
  readonly target: Target;
  readonly dropped: readonly string[];
  /** The vendor's rate limits as `x-ratelimit-*`. */
  readonly rateLimits: Readonly<Record<string, string>>;
}

/** Decodes an answer; an error inside it is noted as work that was not done. */
export function readAnswer<T>(call: LiveCall, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    noteRefusal(call, error);
    throw error;
  }
}

/** Parses a whole answer; vendors may send blank lines before the JSON as keep-alive. */
export function parseAnswer(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    if (/^\s*</.test(bytes.toString('utf8', 0, 64))) throw new PageError(cause);
    throw new GatewayError('provider_invalid_response', 'The provider answered with something that is not JSON.', {
      cause,
    });
  }
}

export interface OpenedChat {
  readonly upstreamResponse: UpstreamResponse;
  readonly codec: ChatCodec;
  readonly codecInfo: ReturnType<typeof codecCall>;
  readonly dropped: readonly string[];
  readonly rateLimits: Readonly<Record<string, string>>;
}

/** Translates and sends a chat request to one target. */
export async function openChat(
  deps: PipelineDeps,
  call: LiveCall<'chat'>,
  target: Target,
  stream: boolean,
): Promise<OpenedChat> {
  const provider = providerOf(deps, target);
  const codec = provider.chat;
  if (!codec)
    throw new GatewayError('unsupported_model', `The provider "${target.provider}" has no chat models.`, {
      param: 'model',
    });
  const input: ChatRequest =
    call.request.model === target.model ? call.request : { ...call.request, model: target.model };
  const codecInfo = codecCall(call, target, stream);
  const request: HttpRequest = codec.request(input, codecInfo);
  const upstreamResponse = await exchange(
    { upstream: deps.upstream, hooks: deps.hooks.chat },
    call,
    target,
    provider,
    request,
  );
  call.measures.firstByteAt ??= call.elapsedMs;
  return {
    upstreamResponse,
    codec,
    codecInfo,
    dropped: request.dropped ?? [],
    rateLimits: rateLimitsOf(provider.rateLimits, upstreamResponse.headers),
  };
}

const RATE_LIMIT = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/;
const NO_LIMITS: Readonly<Record<string, string>> = Object.freeze({});

function rateLimitsOf(
  read: ((headers: ResponseHeaders) => Readonly<Record<string, string>>) | undefined,
  headers: ResponseHeaders,
): Readonly<Record<string, string>> {
  if (read) return read(headers);
  let limits: Record<string, string> | undefined;
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || !name.startsWith('x-ratelimit-') || !RATE_LIMIT.test(name)) continue;
    limits ??= {};
    limits[name] = value;
  }
  return limits ?? NO_LIMITS;
}
