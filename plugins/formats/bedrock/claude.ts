/** Claude at Bedrock: Anthropic's own format, the model in the path, events in frames. */
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

/** Betas that are not at Bedrock. */
const RULES = Object.freeze({ deny: ['thinking-binding-controls-2026-08-01'], always: [] });

/** Whether a model is Claude, by its id or that of an inference profile. */
export function isClaude(model: string): boolean {
  return /(?:^|[./])anthropic\.claude/.test(model);
}

/** Anthropic's body, without what Bedrock has in the path. */
function claudeRequest(...[input, call]: Parameters<ChatCodec['request']>): HttpRequest {
  const { body, headers, dropped } = anthropicRequest(input, call, RULES);
  const { model: _model, stream: _stream, ...rest } = readObject(body);
  const betas = betaNames(headers?.['anthropic-beta']);
  return {
    path: modelPath(call.model, call.stream ? 'invoke-with-response-stream' : 'invoke'),
    body: { anthropic_version: VERSION, ...(betas.length > 0 && { anthropic_beta: betas }), ...rest },
    ...(dropped && { dropped }),
  };
}

/** Where an event has what it holds. */
const BYTES = /"bytes"\s*:\s*"([A-Za-z0-9+/=]*)"/;

/** The events of Anthropic's stream, each as base64 in one of Bedrock's. */
function claudeStream(call: CodecCall): StreamDecoder {
  const decoder = anthropicStream(call);
  return {
    push(event: SseEvent) {
      assertNoException(event);
      if (event.event !== 'chunk') return [];
      // Read as the text that it is: base64 needs no parser.
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
