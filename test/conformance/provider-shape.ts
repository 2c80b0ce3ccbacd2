import assert from 'node:assert/strict';
import type { ChatChunk, ChatResponse, ToolCallDelta, Usage } from '../../contract/index.ts';
import type { Fixture } from './provider-subject.ts';

const FINISH = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

/** Content of a stream after its chunks are combined. */
export interface Outcome {
  readonly choices: readonly OutcomeChoice[];
  readonly usage: Usage | undefined;
}

export interface OutcomeChoice {
  readonly index: number;
  readonly content: string;
  readonly reasoning_content: string;
  readonly refusal: string;
  /** Log probabilities of the content by token. */
  readonly logprobs: readonly { readonly token: string; readonly logprob: number }[];
  readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finish_reason: string | null;
}

type Building = { -readonly [K in keyof OutcomeChoice]: OutcomeChoice[K] };

/** Asserts that a JSON response has OpenAI's exact shape. */
export function assertResponse(response: ChatResponse): void {
  assert.equal(response.object, 'chat.completion');
  assertHead(response);
  assert.ok(response.choices.length > 0, 'an answer has choices');
  for (const choice of response.choices) {
    assert.ok(Number.isInteger(choice.index));
    assert.ok(FINISH.has(choice.finish_reason), `"${choice.finish_reason}" is no finish reason of OpenAI's`);
    assert.ok('logprobs' in choice, 'a choice has logprobs, null if need be');
    const { message } = choice;
    assert.equal(message.role, 'assistant');
    assert.ok(message.content === null || typeof message.content === 'string');
    assert.ok(message.refusal === null || typeof message.refusal === 'string');
    for (const call of message.tool_calls ?? []) {
      assert.ok(call.id !== '' && call.function.name !== '', 'a tool call has an id and a name');
      assert.doesNotThrow(() => JSON.parse(call.function.arguments), 'arguments are JSON');
    }
    if (message.tool_calls)
      assert.equal(new Set(message.tool_calls.map(({ id }) => id)).size, message.tool_calls.length);
  }
  if (response.usage) assertUsage(response.usage);
}

/** Asserts that usage adds up as in OpenAI's API. */
export function assertUsage(usage: Usage): void {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  for (const tokens of [prompt, completion, total]) assert.ok(Number.isSafeInteger(tokens) && tokens >= 0);
  assert.equal(total, prompt + completion, 'the total is the sum');
  assert.ok((usage.prompt_tokens_details?.cached_tokens ?? 0) <= prompt, 'the prompt includes cached tokens');
  assert.ok(
    (usage.completion_tokens_details?.reasoning_tokens ?? 0) <= completion,
    'the completion includes reasoning',
  );
}

/** Asserts that chunks have OpenAI's exact shape and order, and combines them. */
export function readChunks(chunks: readonly ChatChunk[]): Outcome {
  const choices = new Map<number, Building>();
  let usage: Usage | undefined;
  for (const chunk of chunks) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    assertHead(chunk);
    assert.deepEqual([chunk.id, chunk.created, chunk.model], [chunks[0]?.id, chunks[0]?.created, chunks[0]?.model]);
    assert.equal(usage, undefined, 'nothing comes after the usage');
    assert.ok(!('obfuscation' in chunk), 'padding is taken out');
    if (chunk.usage) {
      assert.deepEqual(chunk.choices, [], 'usage comes in a chunk of its own');
      assertUsage(chunk.usage);
      usage = chunk.usage;
    } else {
      assert.ok(chunk.choices.length > 0, 'a chunk says something');
    }
    for (const choice of chunk.choices) readChoice(choice, choices);
  }
  return { choices: [...choices.values()].sort((a, b) => a.index - b.index), usage };
}

function readChoice(
  { index, delta, finish_reason, ...rest }: ChatChunk['choices'][number],
  all: Map<number, Building>,
): void {
  assert.ok('logprobs' in rest, 'a choice has logprobs, null if need be');
  const known = all.get(index);
  assert.equal(delta.role, known ? undefined : 'assistant', 'the role is in the first delta, and only there');
  const choice: Building = known ?? {
    index,
    content: '',
    reasoning_content: '',
    refusal: '',
    logprobs: [],
    tool_calls: [],
    finish_reason: null,
  };
  all.set(index, choice);
  if (choice.finish_reason !== null) {
    assert.ok(isAnnotation(delta, finish_reason), 'only notes come after the end');
    return;
  }
  choice.content += delta.content ?? '';
  choice.reasoning_content += delta.reasoning_content ?? '';
  choice.refusal += delta.refusal ?? '';
  choice.logprobs = [...choice.logprobs, ...readLogprobs(rest.logprobs)];
  choice.tool_calls = (delta.tool_calls ?? []).reduce(joinToolCall, choice.tool_calls);
  if (finish_reason === null) return;
  assert.ok(FINISH.has(finish_reason), `"${finish_reason}" is no finish reason of OpenAI's`);
  choice.finish_reason = finish_reason;
}

/** Choice without content: Azure's filter sends its results this way, also after the end. */
function isAnnotation(delta: object, finish: string | null): boolean {
  return Object.keys(delta).length === 0 && finish === null;
}

function readLogprobs(logprobs: unknown): OutcomeChoice['logprobs'] {
  const { content } = (logprobs ?? {}) as { readonly content?: OutcomeChoice['logprobs'] | null };
  for (const { token, logprob } of content ?? []) {
    assert.ok(typeof token === 'string' && typeof logprob === 'number', 'a log probability is of a token');
  }
  return content ?? [];
}

function joinToolCall(calls: OutcomeChoice['tool_calls'], delta: ToolCallDelta): OutcomeChoice['tool_calls'] {
  const { index, id, type } = delta;
  const { name, arguments: text = '' } = delta.function ?? {};
  const known = calls[index];
  if (!known) {
    assert.equal(index, calls.length, 'tool calls are counted from 0');
    assert.ok(id && name && type === 'function', 'a tool call begins with id, type and name');
    return [...calls, { id, name, arguments: text }];
  }
  assert.equal(id, undefined, 'the id comes once');
  assert.equal(name, undefined, 'the name comes once');
  return calls.with(index, { ...known, arguments: known.arguments + text });
}

function assertHead({ id, created, model }: Pick<ChatResponse, 'id' | 'created' | 'model'>): void {
  assert.ok(typeof id === 'string' && id !== '', 'there is an id');
  assert.ok(typeof model === 'string' && model !== '', 'there is a model');
  assert.ok(Number.isInteger(created) && created > 0 && created < 100_000_000_000, 'created is in Unix seconds');
}

/** Asserts that `actual` contains `expected`: for objects the named fields, for lists every item. */
export function assertIncludes(actual: unknown, expected: unknown, path = '$'): void {
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), `${path} is a list`);
    assert.equal(actual.length, expected.length, `${path} has ${expected.length} items`);
    expected.forEach((item, at) => {
      assertIncludes(actual[at], item, `${path}[${at}]`);
    });
  } else if (typeof expected === 'object' && expected !== null) {
    assert.ok(typeof actual === 'object' && actual !== null, `${path} is an object`);
    for (const [key, value] of Object.entries(expected)) {
      assertIncludes((actual as Record<string, unknown>)[key], value, `${path}.${key}`);
    }
  } else {
    assert.deepEqual(actual, expected, path);
  }
}

/** Asserts the expectation of a fixture. A fixture without one is a failing to-do, since nothing else says what its bytes mean. */
export function assertExpected(actual: unknown, { name, expected }: Fixture): void {
  assert.ok(
    expected,
    `to do: write ${name}.expected.json, after the vendor's bytes. Result now: ${JSON.stringify(actual)}`,
  );
  assertIncludes(actual, expected);
}
