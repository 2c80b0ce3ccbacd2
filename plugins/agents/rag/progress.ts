import type { Log } from '../../../core/index.ts';

export interface Progress {
  step(what: string): void;
  end(): void;
}

const WIDTH = 30;

/** Fewer steps than this are over before anybody reads of them. */
const MIN_STEPS = 20;

/** A bar on a terminal; elsewhere one log line for every tenth. */
export function createProgress(total: number, log: Log, terminal: NodeJS.WriteStream = process.stderr): Progress {
  let done = 0;
  let shown = 0;
  if (total < MIN_STEPS) return { step: () => undefined, end: () => undefined };
  return {
    step(what) {
      done += 1;
      const tenth = Math.floor((done * 10) / total);
      if (terminal.isTTY) {
        const filled = Math.round((done * WIDTH) / total);
        terminal.write(
          `\r\u001b[Kindexing [${'#'.repeat(filled).padEnd(WIDTH)}] ${done}/${total} ${what.slice(0, 40)}`,
        );
      } else if (tenth > shown) log.info({ done, total }, `the knowledge base is indexed to ${tenth * 10} %`);
      shown = Math.max(shown, tenth);
    },
    end() {
      if (terminal.isTTY) terminal.write('\r\u001b[K');
    },
  };
}
