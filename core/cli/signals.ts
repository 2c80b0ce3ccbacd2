import { closeSync, openSync } from 'node:fs';

/** The signals that may drain a gateway. */
export type StopSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/** What a process that a signal ends at once exits with. */
export const EXIT_OF: Readonly<Record<StopSignal, number>> = Object.freeze({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 });

export interface SignalWork {
  /** A drain, or the end at once when there was one before. */
  stop(signal: StopSignal): void;
  reload(): void;
}

/**
 * Listens to signals: SIGTERM and SIGINT drain. SIGHUP reloads a service; in a terminal it means that this was closed, and drains.
 * Which of the two it is, is asked now: a closed terminal is none any more.
 */
export function listenToSignals({ stop, reload }: SignalWork): void {
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  const isInTerminal = hasTerminal();
  process.on('SIGHUP', () => (isInTerminal ? stop('SIGHUP') : reload()));
}

/** Whether a terminal controls this process: only then `/dev/tty` can be opened. On Windows SIGHUP is a closed console. */
function hasTerminal(): boolean {
  if (process.platform === 'win32') return true;
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

export function draining(signal: StopSignal): string {
  return `${signal}: draining; running answers finish first (send it again to stop at once)\n`;
}
