import type { ChatChunk, DialectStream, FinishReason, GatewayError, Usage } from '../../../contract/index.ts';
import { errorEvent, failedError } from './errors.ts';
import type { ResponsesEvent } from './types.ts';
import {
  createSetting,
  endOf,
  outputFor,
  type ResponseState,
  type ResponsesContext,
  responseId,
  responseObject,
} from './write-response.ts';

/** Writes a streamed response as event objects; SSE frames and websocket frames are made from them. */
export interface EventWriter<Input> {
  push(input: Input): readonly ResponsesEvent[];
  end(): readonly ResponsesEvent[];
  fail(error: GatewayError): readonly ResponsesEvent[];
  /** Complete response, after a successful end. */
  response(): unknown;
}

/** Events of a response written from canonical chunks. */
function createEvents(context: ResponsesContext): EventWriter<ChatChunk> {
  let events: ResponsesEvent[] = [];
  let sequence = 0;
  let isStarted = false;
  let model = context.request.model;
  let finish: FinishReason | null = null;
  let usage: Usage | undefined;
  let whole: unknown;
  const emit = (type: string, fields: Readonly<Record<string, unknown>>): void => {
    events.push({ type, sequence_number: sequence++, ...fields });
  };
  const output = outputFor(context, createSetting(context, emit));
  const responseOf = (state: Pick<ResponseState, 'status' | 'incomplete' | 'error' | 'output'>) =>
    responseObject(context, { id: responseId(context), model, usage, ...state });

  function start(): void {
    if (isStarted) return;
    isStarted = true;
    const response = responseOf({ status: 'in_progress', output: [] });
    emit('response.created', { response });
    emit('response.in_progress', { response });
  }

  function sent(): readonly ResponsesEvent[] {
    const written = events;
    events = [];
    return written;
  }

  return {
    push(chunk) {
      if (!isStarted && chunk.model !== '') model = chunk.model;
      start();
      usage = chunk.usage ?? usage;
      const choice = chunk.choices.find(({ index }) => index === 0);
      if (choice) {
        output.delta(choice.delta, choice.logprobs);
        finish = choice.finish_reason ?? finish;
      }
      return sent();
    },
    end() {
      start();
      output.close(finish);
      const { status, ...reason } = endOf(finish, output.hasRefusal);
      whole = responseOf({ status, ...reason, output: output.items() });
      emit(`response.${status}`, { response: whole });
      return sent();
    },
    fail(error) {
      start();
      emit('error', errorEvent(error));
      emit('response.failed', {
        response: responseOf({ status: 'failed', error: failedError(error), output: output.items() }),
      });
      return sent();
    },
    response: () => whole,
  };
}

/** Formats events as server-sent events. */
function frames(events: readonly ResponsesEvent[]): string {
  return events
    .map((event) => `event: ${event.type.replace(/[\r\n]/g, '')}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');
}

export function streamOf<Input>(writer: EventWriter<Input>) {
  return {
    push: (input: Input) => frames(writer.push(input)),
    end: () => frames(writer.end()),
    fail: (error: Parameters<EventWriter<Input>['fail']>[0]) => frames(writer.fail(error)),
    response: () => writer.response(),
  };
}

/** Streams a response written from canonical chunks. */
export function streamResponse(context: ResponsesContext): DialectStream {
  return streamOf(createEvents(context));
}
