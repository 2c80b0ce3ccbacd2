/** Bytes on their way from a program to a reader. The writer never waits, so the program is soon done. */
export interface ByteQueue extends AsyncIterable<Uint8Array> {
  push(bytes: Uint8Array): void;
  end(): void;
  /** Ends the iteration with an error, after the bytes that were there. Nothing after an end or a failure counts. */
  fail(error: unknown): void;
  /** True once there are bytes, false at an end without any; rejects with a failure before the first byte. */
  readonly started: Promise<boolean>;
}

/** `onLeave` runs when the listener leaves before the end. */
export function createByteQueue(onLeave: () => void): ByteQueue {
  const bytes: Uint8Array[] = [];
  let outcome: { readonly error?: unknown } | undefined;
  let wake = () => {};
  let start: (some: boolean) => void = () => {};
  let refuse: (error: unknown) => void = () => {};
  const started = new Promise<boolean>((resolve, reject) => {
    start = resolve;
    refuse = reject;
  });
  // A reader of the iteration alone gets the failure there.
  started.catch(() => {});

  function finish(how: { readonly error?: unknown }): void {
    if (outcome) return;
    outcome = how;
    if ('error' in how) refuse(how.error);
    else start(false);
    wake();
  }

  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const next = bytes.shift();
        if (next) yield next;
        else if (outcome) {
          if ('error' in outcome) throw outcome.error;
          return;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      if (!outcome) onLeave();
    }
  }

  return {
    push(piece) {
      if (outcome) return;
      bytes.push(piece);
      start(true);
      wake();
    },
    end: () => finish({}),
    fail: (error) => finish({ error }),
    started,
    [Symbol.asyncIterator]: read,
  };
}
