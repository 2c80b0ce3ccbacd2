/** Walks over the frames of a sound as its bytes pass, without keeping them. */

/**
 * What stands at the beginning of `bytes`: the whole length of a frame, `more` when its header is not whole,
 * `stop` when nothing further can be read (a tag at the end, an encoding without lengths).
 */
export type FrameReader = (bytes: Buffer) => number | 'more' | 'stop';

export interface FrameWalker {
  push(bytes: Uint8Array): void;
  /** Whether the bytes ended inside a frame. */
  torn(): boolean;
}

export function createFrameWalker(read: FrameReader): FrameWalker {
  let pending: Buffer = Buffer.alloc(0);
  let skip = 0;
  let stopped = false;
  return {
    push(bytes) {
      if (stopped) return;
      let rest =
        pending.length > 0
          ? Buffer.concat([pending, bytes])
          : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      while (rest.length > 0) {
        if (skip === 0) {
          const length = read(rest);
          if (length === 'more') break;
          if (length === 'stop') {
            stopped = true;
            break;
          }
          skip = length;
        }
        const step = Math.min(skip, rest.length);
        skip -= step;
        rest = rest.subarray(step);
      }
      pending = stopped ? Buffer.alloc(0) : Buffer.from(rest);
    },
    torn: () => !stopped && (skip > 0 || pending.length > 0),
  };
}
