import type { DialectNativeStream, DialectStream } from '../../../core/index.ts';
import { createEvents, type EventWriter } from './events.ts';
import { createNativeEvents } from './native-events.ts';
import type { ResponsesContext } from './response.ts';
import type { ResponsesEvent } from './types.ts';

/** Events as server-sent ones. */
function frames(events: readonly ResponsesEvent[]): string {
  return events
    .map((event) => `event: ${event.type.replace(/[\r\n]/g, '')}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');
}

function streamOf<Input>(writer: EventWriter<Input>) {
  return {
    push: (input: Input) => frames(writer.push(input)),
    end: () => frames(writer.end()),
    fail: (error: Parameters<EventWriter<Input>['fail']>[0]) => frames(writer.fail(error)),
    response: () => writer.response(),
  };
}

/** A response written from canonical chunks. */
export function stream(context: ResponsesContext): DialectStream {
  return streamOf(createEvents(context));
}

/** A response of a vendor that speaks this format itself. */
export function nativeStream(context: ResponsesContext): DialectNativeStream {
  return streamOf(createNativeEvents(context));
}
