import type { DestinationStream } from 'pino';
import { isColorSupported, type PrettyOptions, prettyFactory } from 'pino-pretty';

/** What moves the cursor or turns the direction of text on a terminal: a caller's words (a model's name) may have it. */
export const CONTROL_CHARACTERS = /(?!\n)[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

export interface PrettyStreamOptions {
  readonly isTerminal: boolean;
  /** Whether all fields of a request are shown, and not only those that a person looks for first. */
  readonly isWhole: boolean;
}

type Fields = Record<string, unknown>;
type MessageFormat = Exclude<PrettyOptions['messageFormat'], string | false | undefined>;
type Colors = Parameters<MessageFormat>[3]['colors'];

/** Where pino may write for a person: `10:02:11.033 INFO: POST /v1/chat/completions 200 12 ms echo/echo key=… req_…`. */
export function prettyStream(
  stream: DestinationStream & { readonly flush?: (done?: () => void) => void },
  { isTerminal, isWhole }: PrettyStreamOptions,
): DestinationStream {
  const toPretty = prettyFactory({
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
  return Object.assign(
    { write: (line: string) => stream.write(toPretty(line)) },
    stream.flush && { flush: stream.flush.bind(stream) },
  );
}

/** What a person looks for first in a request's line. The other fields are in the JSON log, and shown at level debug. */
function describeRequest(fields: Fields, colors: Colors): string {
  const { method, route, path, status, dur_ms, provider, model, error, key, req_id } = fields;
  const color = Number(status) >= 500 ? colors.red : Number(status) >= 400 ? colors.yellow : colors.green;
  const words = [
    path === undefined ? route : `${toText(method)} ${toText(path)}`,
    error === undefined ? undefined : error,
    `${Math.round(Number(dur_ms))} ms`,
    provider === undefined ? undefined : `${toText(provider)}/${toText(model)}`,
    key === undefined ? undefined : `key=${toText(key)}`,
    req_id,
  ];
  const [what, ...rest] = words.filter((word) => word !== undefined).map(toText);
  return [what, color(toText(status)), ...rest].join(' ');
}

/** The stack of an error, on lines of its own. */
function describeError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return error === undefined ? '' : ` err=${toText(error)}`;
  return `\n${'stack' in error && typeof error.stack === 'string' ? toText(error.stack) : toText(error)}`;
}

function toText(value: unknown): string {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text.replace(CONTROL_CHARACTERS, '?');
}
