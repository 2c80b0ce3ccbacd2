/** Claude on Bedrock: Anthropic's own format, with the model in the path and events in frames. */
import {
  type ChatCodec,
  type CodecCall,
  type HttpRequest,
  readObject,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
} from '../../../contract/index.ts';
import { anthropicResponse, anthropicStream } from '../anthropic/read-response.ts';
import { anthropicRequest, betaNames } from '../anthropic/write-request.ts';
import { assertNoException } from './read-response.ts';
import { modelPath } from './write-request.ts';

/** Source: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html */
const VERSION = 'bedrock-2023-05-31';

/** Betas that Bedrock does not support. */
const RULES = Object.freeze({ deny: ['thinking-binding-controls-2026-08-01'], always: [] });

/** Returns true for the id of a Claude model or of its inference profile. */
export function isClaude(model: string): boolean {
  return /(?:^|[./])anthropic\.claude/.test(model);
}

/** Anthropic's request body without the fields that Bedrock takes in the path. */
function claudeRequest(...[input, call]: Parameters<ChatCodec['request']>): HttpRequest {
  const { body, headers, dropped, added } = anthropicRequest(input, call, RULES);
  const { model: _model, stream: _stream, ...rest } = readObject(body);
  const betas = betaNames(headers?.['anthropic-beta']);
  return {
    path: modelPath(call.model, call.stream ? 'invoke-with-response-stream' : 'invoke'),
    body: { anthropic_version: VERSION, ...(betas.length > 0 && { anthropic_beta: betas }), ...rest },
    ...(added && { added }),
    ...(dropped && { dropped }),
  };
}

/** Payload of an event. */
const BYTES = /"bytes"\s*:\s*"([A-Za-z0-9+/=]*)"/;

/** Decodes Anthropic's stream events, each base64-encoded in a Bedrock event. */
function claudeStream(call: CodecCall): StreamDecoder {
  const decoder = anthropicStream(call);
  return {
    push(event: SseEvent) {
      assertNoException(event);
      if (event.event !== 'chunk') return [];
      // Base64 needs no JSON parser.
      const bytes = BYTES.exec(event.data)?.[1];
      if (bytes === undefined)
        throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent an event without bytes.' });
      return decoder.push({ data: Buffer.from(bytes, 'base64').toString('utf8') });
    },
    end: () => decoder.end(),
    progress: () => decoder.progress?.() ?? 'open',
  };
}

export const CLAUDE: Pick<ChatCodec, 'request' | 'response' | 'stream'> = Object.freeze({
  request: claudeRequest,
  response: (body, call) => anthropicResponse(body, call),
  stream: claudeStream,
});
