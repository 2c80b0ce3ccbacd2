/** Formats of a chat in tests of failures: the request, and the shapes of an error and a response. */
import type { IncomingHttpHeaders } from 'node:http';
import { expect } from 'chai';
import { ERRORS, type ErrorCode, type JsonObject } from '../../../contract/index.ts';
import { MESSAGES_ERRORS } from '../../../plugins/formats/anthropic/errors.ts';
import { FAILED_CODE } from '../../../plugins/formats/openai-responses/errors.ts';
import { readMessagesStream } from '../formats/messages-grammar.ts';
import { readEvents } from '../formats/responses-dialect.ts';
import { findDisorder } from '../formats/responses-grammar.ts';

/** Response as a caller receives it. */
export interface Heard {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Data of a stream's events. */
  readonly frames: readonly string[];
  /** False if the connection was cut before the end of the response. */
  readonly whole: boolean;
}

/** Columns of the table of failures. */
export const FORM_NAMES = ['whole', 'stream', 'Messages', 'Responses'] as const;
export type FormName = (typeof FORM_NAMES)[number];

/** Request fields that the formats share. */
export interface ChatFields {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: readonly object[];
  readonly user?: string;
}

export interface FailureForm {
  readonly name: FormName;
  readonly stream: boolean;
  readonly path: string;
  body(response: ChatFields): object;
  /** Text of a complete response; fails for any other. */
  text(heard: Heard): string;
  /** Tool calls in a stream: name and arguments, as text. */
  calls(heard: Heard): readonly (readonly [name: string, text: string])[];
  /** Finish reason, in the format's own word. */
  finish(heard: Heard): unknown;
  /** Content of an error. Fails unless it has this code, in the format's shape, and in a stream after this text. */
  error(heard: Heard, code: ErrorCode, before: string): { readonly message: string };
}

const isStream = (heard: Heard): boolean => heard.headers['content-type']?.startsWith('text/event-stream') === true;
const objectOf = (text: string): JsonObject => JSON.parse(text) as JsonObject;

/** Error as the complete response. */
function wholeError(heard: Heard, code: ErrorCode): { readonly message: string } {
  expect(heard.status, heard.text).to.equal(ERRORS[code].status);
  expect(heard.headers['content-type']).to.match(/^application\/json/);
  const { error } = objectOf(heard.text) as { error: { code: string; message: string } };
  expect(error.code, error.message).to.equal(code);
  return error;
}

const chat = (stream: boolean): FailureForm => ({
  ...{ name: stream ? 'stream' : 'whole', stream, path: '/v1/chat/completions' },
  body: (response) => ({ ...response, stream }),
  text(heard) {
    expect(heard.status, heard.text).to.equal(200);
    if (!stream) return textOfChoice(objectOf(heard.text), 'message');
    expect(heard.frames.at(-1)).to.equal('[DONE]');
    expect(heard.frames.filter((frame) => frame === '[DONE]')).to.have.lengthOf(1);
    return heard.frames
      .slice(0, -1)
      .map((frame) => textOfChoice(objectOf(frame), 'delta'))
      .join('');
  },
  calls: (heard) => joinCalls(heard.frames.slice(0, -1).map(objectOf)),
  finish(heard) {
    const parts = stream ? heard.frames.slice(0, -1).map(objectOf) : [objectOf(heard.text)];
    return parts.flatMap((part) => choiceOf(part)?.['finish_reason'] ?? []).at(-1);
  },
  error(heard, code, before) {
    if (!isStream(heard)) return wholeError(heard, code);
    const { error } = objectOf(heard.frames.at(-1) ?? '') as { error: { code: string; message: string } };
    expect(error.code).to.equal(code);
    expect(heard.text).not.to.include('[DONE]');
    const words = heard.frames.slice(0, -1).map((frame) => textOfChoice(objectOf(frame), 'delta'));
    expect(words.join('')).to.equal(before);
    return error;
  },
});

function choiceOf(value: JsonObject): JsonObject | undefined {
  return (value['choices'] as readonly JsonObject[])[0];
}

function textOfChoice(value: JsonObject, field: 'message' | 'delta'): string {
  const said = choiceOf(value)?.[field] as { readonly content?: string | null } | undefined;
  return said?.content ?? '';
}

interface CallPiece {
  readonly index: number;
  readonly function: { readonly name?: string; readonly arguments?: string };
}

function joinCalls(chunks: readonly JsonObject[]): readonly (readonly [string, string])[] {
  const calls: [string, string][] = [];
  for (const chunk of chunks) {
    const { tool_calls = [] } = (choiceOf(chunk)?.['delta'] ?? {}) as { readonly tool_calls?: readonly CallPiece[] };
    for (const { index, function: piece } of tool_calls) {
      const [name, text] = calls[index] ?? ['', ''];
      calls[index] = [name + (piece.name ?? ''), text + (piece.arguments ?? '')];
    }
  }
  return calls;
}

const messages = (stream: boolean): FailureForm => ({
  ...{ name: 'Messages', stream, path: '/v1/messages' },
  body: ({ user, ...requests }) => ({ ...requests, stream, ...(user && { metadata: { user_id: user } }) }),
  text(heard) {
    expect(heard.status, heard.text).to.equal(200);
    const read = stream ? readMessagesStream(heard.text) : undefined;
    expect(read?.error).to.equal(undefined);
    return textOfParts(read?.content ?? objectOf(heard.text)['content']);
  },
  calls: (heard) =>
    readMessagesStream(heard.text).content.flatMap(({ type, name, input }) =>
      type === 'tool_use' ? [[String(name), JSON.stringify(input)] as const] : [],
    ),
  finish: (heard) => (stream ? readMessagesStream(heard.text).delta : objectOf(heard.text))['stop_reason'],
  error(heard, code, before) {
    const { type, status } = MESSAGES_ERRORS[code];
    const read = isStream(heard) ? readMessagesStream(heard.text) : undefined;
    if (read) expect(textOfParts(read.content)).to.equal(before);
    else expect(heard.status, heard.text).to.equal(status ?? ERRORS[code].status);
    const body = read?.error ?? objectOf(heard.text);
    expect(body).to.have.all.keys('type', 'error', 'request_id');
    const error = body['error'] as { type: string; message: string };
    expect(error.type, heard.text).to.equal(type);
    return error;
  },
});

const responses = (stream: boolean): FailureForm => ({
  ...{ name: 'Responses', stream, path: '/v1/responses' },
  body: ({ max_tokens, messages: input, ...rest }) => ({ ...rest, input, max_output_tokens: max_tokens, stream }),
  text(heard) {
    expect(heard.status, heard.text).to.equal(200);
    const response = stream ? (lastEvent(heard)['response'] as JsonObject) : objectOf(heard.text);
    expect(response['status'], heard.text).to.equal('completed');
    return textOfItems(response);
  },
  calls: (heard) =>
    itemsOf(lastEvent(heard)['response'] as JsonObject).flatMap(({ type, name, arguments: text }) =>
      type === 'function_call' ? [[String(name), String(text)] as const] : [],
    ),
  finish(heard) {
    const response = stream ? (lastEvent(heard)['response'] as JsonObject) : objectOf(heard.text);
    const details = response['incomplete_details'] as { readonly reason?: string } | null | undefined;
    return details?.reason ?? response['status'];
  },
  error(heard, code, before) {
    if (!isStream(heard)) return wholeError(heard, code);
    const event = lastEvent(heard);
    expect(event['type']).to.equal('response.failed');
    const { error } = event['response'] as { error: { code: string; message: string } };
    expect(error.code).to.equal(FAILED_CODE[code]);
    const words = readEvents(heard.text).map((each) => (each.type.endsWith('text.delta') ? String(each['delta']) : ''));
    expect(words.join('')).to.equal(before);
    return error;
  },
});

/** Last event of a stream whose events are in order. */
function lastEvent(heard: Heard): JsonObject {
  const all = readEvents(heard.text);
  expect(findDisorder(all), heard.text).to.deep.equal([]);
  return all.at(-1) ?? {};
}

function textOfParts(parts: unknown): string {
  return (parts as readonly { readonly text?: string }[]).map(({ text = '' }) => text).join('');
}

function itemsOf({ output }: JsonObject): readonly JsonObject[] {
  return output as readonly JsonObject[];
}

function textOfItems(response: JsonObject): string {
  return itemsOf(response)
    .map(({ content = [] }) => textOfParts(content))
    .join('');
}

export const CHAT = chat(false);
const ALL: readonly FailureForm[] = [
  ...[CHAT, chat(true)],
  ...[messages(false), messages(true)],
  ...[responses(false), responses(true)],
];

/** Formats in which a failure can occur: all, only the streaming ones, or only the others. */
export function formsOf(stream: boolean | undefined): readonly FailureForm[] {
  return ALL.filter((form) => stream === undefined || form.stream === stream);
}
