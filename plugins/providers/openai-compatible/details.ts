import { isObject, type JsonObject, type ReasoningDetail, readArray, readString } from '../../../core/index.ts';
import { readRelayDetails } from '../kit/index.ts';

/** No reasoning is longer; what goes on beyond it is left out. */
const MAX_LENGTH = 8 * 1024 * 1024;

export interface DetailTracker {
  /** The blocks that a delta ends, each whole: those that are open, once something else than reasoning begins. */
  push(value: unknown, isOver: boolean): readonly ReasoningDetail[];
}

/** Puts the pieces of a relay's streamed `reasoning_details` together: a block goes out whole, when its last piece is there. */
export function trackDetails(): DetailTracker {
  let open: JsonObject | undefined;
  let length = 0;

  function close(): readonly ReasoningDetail[] {
    const whole = open;
    open = undefined;
    length = 0;
    return whole ? readRelayDetails([whole]) : [];
  }

  function add(piece: JsonObject): readonly ReasoningDetail[] {
    if (open && isSame(open, piece)) {
      const next = joined(open, piece);
      length += JSON.stringify(piece).length;
      if (length <= MAX_LENGTH) open = next;
      return [];
    }
    const ended = close();
    open = piece;
    return ended;
  }

  return {
    push(value, isOver) {
      const ended = readArray(value).flatMap((piece) => (isObject(piece) ? add(piece) : []));
      return isOver ? [...ended, ...close()] : ended;
    },
  };
}

/** Whether a piece goes on with a block: pieces of one block have its type and index. */
function isSame(open: JsonObject, piece: JsonObject): boolean {
  const isEncrypted = open['type'] === 'reasoning.encrypted';
  return !isEncrypted && open['type'] === piece['type'] && (open['index'] ?? 0) === (piece['index'] ?? 0);
}

function joined(open: JsonObject, piece: JsonObject): JsonObject {
  const textOf = (field: string): object => {
    const text = (readString(open[field]) ?? '') + (readString(piece[field]) ?? '');
    return text === '' ? {} : { [field]: text };
  };
  const said = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined);
  return { ...open, ...Object.fromEntries(said), ...textOf('text'), ...textOf('summary') };
}
