import type { Logger } from 'pino';
import { isColorSupported, type PrettyOptions, prettyFactory } from 'pino-pretty';
import { CONTROL_CHARACTERS, createLogger, type LoggerOptions } from '../core/logger.ts';

interface ProgramLogOptions extends Omit<LoggerOptions, 'toPretty'> {
  /** `auto`: pretty on a terminal, JSON elsewhere. */
  readonly format: 'auto' | 'json' | 'pretty';
  readonly isTerminal: boolean;
}

/** Log of the program: JSON like the gateway's own, or short lines on a terminal. */
export function createProgramLog({ format, isTerminal, ...options }: ProgramLogOptions): Logger {
  const isPretty = format === 'pretty' || (format === 'auto' && isTerminal);
  return createLogger({
    ...options,
    toPretty: isPretty ? createPretty(isTerminal, options.level === 'debug') : undefined,
  });
}

/** Log for plugins that are only set up for inspection: errors alone. */
export function quietLog(): Logger {
  return createProgramLog({ level: 'error', format: 'auto', isTerminal: false, destination: process.stderr });
}

/** Longest wait for stdout to take the last lines, in milliseconds. */
const LONGEST_FLUSH_MS = 1000;

/** Resolves when all log lines are written, or after a timeout. For a process about to exit. */
export async function flushLog(logger: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LONGEST_FLUSH_MS);
    logger.flush(() => resolve());
  });
  clearTimeout(timer);
}

type MessageFormat = Exclude<PrettyOptions['messageFormat'], string | false | undefined>;
type Colors = Parameters<MessageFormat>[3]['colors'];

/**
 * Formats lines for a person: `10:02:11.033 INFO: POST /v1/chat/completions 200 12 ms echo/echo key=… req_…`. With
 * `isWhole` it shows all fields of a request, else the most important ones.
 */
function createPretty(isTerminal: boolean, isWhole: boolean): (line: string) => string {
  return prettyFactory({
    colorize: isTerminal && isColorSupported,
    translateTime: 'HH:MM:ss.l',
    customPrettifiers: { time: (time) => String(time) },
    hideObject: true,
    messageFormat: ({ level: _level, time: _time, msg, err, ...fields }, _key, _label, { colors }) => {
      const isRequest = typeof fields['route'] === 'string' && typeof fields['dur_ms'] === 'number';
      if (isRequest && !isWhole) return describeRequest(fields, colors);
      const pairs = Object.entries(fields).map(([name, value]) => `${toText(name)}=${toText(value)}`);
      return [toText(msg ?? ''), ...pairs].join(' ') + describeError(err);
    },
  });
}

/** Most important fields of a request's line. The JSON log has the others, and so does level debug. */
function describeRequest(fields: Readonly<Record<string, unknown>>, colors: Colors): string {
  const { method, route, path, status, dur_ms, provider, model, error, key, request_id } = fields;
  const color = Number(status) >= 500 ? colors.red : Number(status) >= 400 ? colors.yellow : colors.green;
  const words = [
    path === undefined ? route : `${toText(method)} ${toText(path)}`,
    error === undefined ? undefined : error,
    `${Math.round(Number(dur_ms))} ms`,
    provider === undefined ? undefined : `${toText(provider)}/${toText(model)}`,
    key === undefined ? undefined : `key=${toText(key)}`,
    request_id,
  ];
  const [what, ...rest] = words.filter((word) => word !== undefined).map(toText);
  return [what, color(toText(status)), ...rest].join(' ');
}

/** Formats the stack of an error, on lines of its own. */
function describeError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return error === undefined ? '' : ` err=${toText(error)}`;
  return `\n${'stack' in error && typeof error.stack === 'string' ? toText(error.stack) : toText(error)}`;
}

function toText(value: unknown): string {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text.replace(CONTROL_CHARACTERS, '?');
}
