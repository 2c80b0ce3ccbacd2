import type { DialectContext } from '../../../core/index.ts';
import type { GeminiBody } from './types.ts';

/** How the responses of one stream are put on the wire. */
export interface Frames {
  readonly contentType: string;
  readonly keepAlive: string;
  frame(value: unknown): string;
  /** What ends the stream. */
  end(): string;
}

/** Server-sent events with `alt=sse`; else one JSON array, sent element by element. */
export function framesOf({ input: { query } }: DialectContext<GeminiBody>): Frames {
  return query['alt'] === 'sse' ? sseFrames() : arrayFrames();
}

function sseFrames(): Frames {
  return {
    contentType: 'text/event-stream; charset=utf-8',
    keepAlive: SSE_KEEP_ALIVE,
    frame: (value) => `data: ${JSON.stringify(value)}\n\n`,
    end: () => '',
  };
}

export const SSE_KEEP_ALIVE = ': keep-alive\n\n';

/** White space may stand anywhere between elements, so a line break says that we are still here. */
function arrayFrames(): Frames {
  let isOpen = false;
  return {
    contentType: 'application/json; charset=utf-8',
    keepAlive: '\n',
    frame(value) {
      const lead = isOpen ? ',\n' : '[';
      isOpen = true;
      return lead + JSON.stringify(value);
    },
    end: () => (isOpen ? ']\n' : '[]\n'),
  };
}
