import type { Log } from '../../../core/index.ts';

export interface Progress {
  /** `done` of `total` are done, and `what` is next. */
  show(what: string, done: number, total: number): void;
  end(): void;
}

const WIDTH = 30;

/** Fewer steps than this are done before a report would be read. */
const MIN_STEPS = 20;

/** A bar on a terminal; elsewhere one log line for every tenth. */
export function createProgress(
  log: Log,
  terminal: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
): Progress {
  let shown = 0;
  let isDrawn = false;
  return {
    show(what, done, total) {
      if (total < MIN_STEPS) return;
      const tenth = Math.floor((done * 10) / total);
      if (terminal.isTTY) {
        const filled = '#'.repeat(Math.round((done * WIDTH) / total)).padEnd(WIDTH);
        terminal.write(`\r\u001b[Kindexing [${filled}] ${done}/${total} ${printable(what).slice(0, 40)}`);
        isDrawn = true;
      } else if (tenth > shown) log.info({ done, total }, `the knowledge base is indexed to ${tenth * 10} %`);
      shown = Math.max(shown, tenth);
    },
    end() {
      if (isDrawn) terminal.write('\r\u001b[K');
    },
  };
}

/** A file's name must not move the cursor or colour the terminal. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}
