import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  type Call,
  type ChatChunk,
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  ERRORS,
  type ErrorCode,
  GatewayError,
  isGatewayError,
  type Outcome,
} from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { testDefinition } from './plugin.ts';
import { callOf, type PluginKit, type PluginSubject, responseOf, setUpPlugin } from './plugin-subject.ts';
import { chunksOf, contentOf, PLACES } from './policy-samples.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';

/** Options of {@link testPolicy}. */
export interface PolicyKit extends PluginKit {
  /**
   * Model texts that no caller may see in part or whole: in no choice, reasoning, refusal or tool argument, however
   * they are chunked.
   */
  readonly hides?: readonly string[];
  /** Caller texts for which the call is refused, in any message. */
  readonly refuses?: readonly string[];
  /** Texts of caller and model that pass unchanged. */
  readonly lets?: readonly string[];
}

const HARMLESS = 'Good morning, 世界 🌍.\n\nTwo lines.';
const HOSTILE: readonly string[] = [
  ...['', '\u0000', '"}]', '__proto__', '\u202Eabc', '💥'.repeat(500), 'a'.repeat(10_000), '\ud800'],
];
const HOSTILE_ERRORS: readonly string[] = ['', '<html>'.repeat(1000), '{"error":', '\r\nset-cookie: x=1', '__proto__'];

/** Characters per chunk of a streamed response. */
const CUTS: readonly number[] = [1, 3, 7, 10_000];

/**
 * Runs the tests that every policy must pass:
 * - A JSON response and a stream give the same result, for any place of a text and any chunks.
 * - Resources acquired for a call are released.
 * - Only GatewayErrors are thrown.
 * - The options `hides`, `refuses` and `lets` hold.
 *
 * ```ts
 * import { testPolicy } from 'tollgate/conformance';
 * import redact from '../redact.ts';
 * testPolicy({ plugin: redact, hides: ['orion'], lets: ['Good morning.'] });
 * ```
 */
export function testPolicy(kit: PolicyKit): void {
  const { describe, it } = findRunner(kit.runner);
  describe(`the policy ${nameOf(kit.plugin)}: what every policy promises`, () => {
    requirePlugin(kit.plugin, 'policy');
    testDefinition(kit, async (subject) => {
      const response = responseOf('m', [{ content: HARMLESS }]);
      await enter(subject, [{ role: 'user', content: HARMLESS }]);
      await receive(subject, response);
      await stream(subject, chunksOf(response, 3));
      for (const text of kit.refuses ?? []) await orRefusal(() => enter(subject, [{ role: 'user', content: text }]));
      for (const text of kit.hides ?? []) await orRefusal(() => receive(subject, responseOf('m', [{ content: text }])));
      for (const { handler } of subject.hooksOf('finish')) await handler(callOf(requestOf(HARMLESS)), outcomeOf('ok'));
    });
    testWholeAndStreamed(kit);
    testCallers(kit);

    describe('errors', () => {
      it('stay errors, with a gateway code, for any error of the provider', () =>
        withPolicy(kit, async (subject) => {
          for (const code of Object.keys(ERRORS) as readonly ErrorCode[])
            for (const message of HOSTILE_ERRORS)
              for (const { handler } of subject.hooksOf('error')) {
                const given = Object.freeze(new GatewayError(code, message));
                const renamed = await orRefusal(async () => handler(callOf(requestOf(HARMLESS)), given));
                assert.ok(
                  renamed === undefined || isGatewayError(renamed),
                  `${code}: gives a GatewayError, or nothing`,
                );
                assert.ok(renamed === undefined || renamed.status >= 400, `${code}: cannot become a success`);
              }
        }));
    });

    describe('the end of a call', () => {
      for (const status of ['ok', 'error', 'aborted'] as const)
        it(`releases its resources, when it ended as "${status}"`, () =>
          withPolicy(kit, async (subject) => {
            const first = await admit(subject, callOf(requestOf(HARMLESS), { id: 'call_0' }), status);
            for (let at = 1; at < 5; at++) {
              const again = await admit(subject, callOf(requestOf(HARMLESS), { id: `call_${at}` }), status);
              if (codeOf(again) === 'rate_limited' && codeOf(first) === undefined) continue;
              assert.equal(codeOf(again), codeOf(first), `call ${at + 1} after ${at} that have ended`);
            }
          }));
      it('causes no error, also if nothing was admitted', () =>
        withPolicy(kit, async (subject) => {
          for (const { handler } of subject.hooksOf('finish'))
            await handler(callOf(requestOf(HARMLESS)), outcomeOf('aborted'));
        }));
    });
  });
}

function testWholeAndStreamed(kit: PolicyKit): void {
  const { describe, it } = findRunner();
  const { hides = [], lets = [] } = kit;
  const texts = [HARMLESS, ...hides.map((text) => `So ${text} it is.`), ...hides, ...lets];

  describe('a response', () => {
    for (const place of PLACES)
      it(`with text in ${place.where} is the same with and without a stream, however it is split`, () =>
        withPolicy(kit, async (subject) => {
          for (const text of texts) {
            const response = responseOf('m', place.choices(text));
            const whole = await orRefusal(() => receive(subject, response));
            for (const cut of CUTS) {
              const where = `cut every ${cut} letters: ${text.slice(0, 80)}`;
              const { chunks, refusal } = await streamOrRefuse(subject, chunksOf(response, cut));
              assert.equal(refusal?.code, codeOf(whole), `refused whole and streamed alike, ${where}`);
              if (!isGatewayError(whole)) assert.deepEqual(contentOf(chunks), contentOf([whole]), where);
            }
          }
        }));
    for (const text of lets)
      it(`passes unchanged: ${text.slice(0, 60)}`, () =>
        withPolicy(kit, async (subject) => {
          for (const place of PLACES) {
            const response = responseOf('m', place.choices(text));
            assert.deepEqual(contentOf([await receive(subject, response)]), contentOf([response]), place.where);
          }
        }));
    for (const text of hides)
      it(`hides ${JSON.stringify(text.slice(0, 60))}`, () =>
        withPolicy(kit, async (subject) => {
          for (const place of PLACES) {
            const response = responseOf('m', place.choices(`So ${text} it is.`));
            const whole = await orRefusal(() => receive(subject, response));
            assertHidden(text, isGatewayError(whole) ? [] : [whole], `whole, in ${place.where}`);
            assertUnsaid(text, whole);
            for (const cut of CUTS) {
              const { chunks, refusal } = await streamOrRefuse(subject, chunksOf(response, cut));
              assertHidden(text, chunks, `streamed, in ${place.where}`);
              assertUnsaid(text, refusal);
            }
          }
          const log = subject.logged.join('\n').toLowerCase();
          assert.ok(!log.includes(JSON.stringify(text.toLowerCase()).slice(1, -1)), 'the log repeats the text');
        }));
    it('keeps its end and usage, and the metadata of its chunks', () =>
      withPolicy(kit, async (subject) => {
        const response = responseOf('m', [{ content: HARMLESS }]);
        const changed = await orRefusal(() => receive(subject, response));
        if (!isGatewayError(changed) && changed.choices.length > 0)
          assert.deepEqual(changed.usage, response.usage, 'usage of a whole response');
        const { chunks } = await streamOrRefuse(subject, chunksOf(response, 3));
        for (const chunk of chunks) {
          assert.deepEqual(
            [chunk.object, chunk.id, chunk.model],
            ['chat.completion.chunk', response.id, response.model],
          );
          assert.ok(Array.isArray(chunk.choices), 'a chunk has choices');
        }
      }));
    it('is streamed concurrently with another one as it is alone', () =>
      withPolicy(kit, async (subject) => {
        const streams = [HARMLESS, 'Quite another text, of another call.'].map((text) =>
          chunksOf(responseOf('m', [{ content: text }]), 2),
        );
        const alone = [];
        for (const chunks of streams) alone.push(await streamOrRefuse(subject, chunks));
        // Another test reports a refusal of a single stream.
        if (alone.some(({ refusal }) => refusal)) return;
        const both = streams.map((chunks, at) => ({
          chunks,
          transforms: transformsOf(subject, `call_${at}`),
          out: [] as ChatChunk[],
        }));
        for (let at = 0; at < Math.max(...streams.map(({ length }) => length)); at++)
          for (const { chunks, transforms, out } of both)
            out.push(...(await pushAll(transforms, chunks.slice(at, at + 1))));
        for (const [at, { transforms, out }] of both.entries())
          assert.deepEqual(contentOf([...out, ...(await endAll(transforms))]), contentOf(alone[at]?.chunks ?? []));
      }));
    it('that is interrupted throws nothing later', () =>
      withPolicy(kit, async (subject) => {
        const controller = new AbortController();
        const call = callOf(requestOf(HARMLESS, true), { signal: controller.signal });
        const transforms = subject.hooksOf('stream').flatMap(({ handler }) => handler(call) ?? []);
        await pushAll(transforms, chunksOf(responseOf('m', [{ content: HARMLESS }]), 3).slice(0, 2));
        controller.abort(new Error('the caller left'));
        for (const { handler } of subject.hooksOf('finish')) await handler(call, outcomeOf('aborted'));
      }));
    it('of hostile texts is changed, or refused with a GatewayError', () =>
      withPolicy(kit, async (subject) => {
        for (const text of HOSTILE)
          for (const place of PLACES) {
            const response = responseOf('m', place.choices(text));
            await orRefusal(() => receive(subject, response));
            await orRefusal(() => stream(subject, chunksOf(response, 1000)));
          }
      }));
  });
}

function testCallers(kit: PolicyKit): void {
  const { describe, it } = findRunner();
  const { refuses = [], lets = [] } = kit;

  describe('a request', () => {
    it('of hostile texts passes, or is refused with a GatewayError', () =>
      withPolicy(kit, async (subject) => {
        for (const text of HOSTILE)
          for (const messages of messagesOf(text)) await orRefusal(() => enter(subject, messages));
      }));
    for (const text of refuses)
      it(`with ${JSON.stringify(text.slice(0, 60))} is refused in any message, and not repeated`, () =>
        withPolicy(kit, async (subject) => {
          for (const messages of messagesOf(text)) {
            const where = JSON.stringify(messages).slice(0, 200);
            const refusal = await orRefusal(() => enter(subject, messages));
            assert.ok(isGatewayError(refusal), `it passes in ${where}`);
            assert.ok(refusal.status >= 400 && refusal.status < 500, `${refusal.code} is no refusal`);
            assert.ok(!refusal.message.toLowerCase().includes(text.toLowerCase()), 'the refusal repeats the text');
          }
          assert.ok(!subject.logged.join('\n').includes(JSON.stringify(text).slice(1, -1)), 'the log repeats the text');
        }));
    for (const text of lets)
      it(`passes unchanged: ${text.slice(0, 60)}`, () =>
        withPolicy(kit, async (subject) => {
          for (const messages of messagesOf(text)) {
            const { request } = await enter(subject, messages);
            assert.ok(JSON.stringify(request).includes(JSON.stringify(text).slice(1, -1)), 'it is in what is sent');
          }
        }));
  });
}

/** Sets the policy up, runs the function and closes the policy. */
async function withPolicy(kit: PolicyKit, run: (subject: PluginSubject) => Promise<void>): Promise<void> {
  const subject = await setUpPlugin(kit);
  try {
    await run(subject);
  } finally {
    await subject.close();
  }
}

function requestOf(text: string, stream = false): ChatRequest {
  return { model: 'm', messages: [{ role: 'user', content: text }], ...(stream && { stream }) };
}

/** A text in every kind of message, as a string and as a part. */
function messagesOf(text: string): readonly (readonly ChatMessage[])[] {
  const user: ChatMessage = { role: 'user', content: 'Hello' };
  const call = {
    id: 'c1',
    type: 'function' as const,
    function: { name: 'look', arguments: JSON.stringify({ at: text }) },
  };
  return [
    [{ role: 'user', content: text }],
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hello' },
          { type: 'text', text },
        ],
      },
    ],
    [{ role: 'system', content: text }, user],
    [{ role: 'user', content: text }, { role: 'assistant', content: 'Yes?' }, user],
    [
      user,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: text },
    ],
  ] as readonly (readonly ChatMessage[])[];
}

/** Runs the hooks of a request up to its sending. */
async function enter(
  subject: PluginSubject,
  messages: readonly ChatMessage[],
): Promise<{ readonly request: ChatRequest }> {
  let request: ChatRequest = deepFreeze({ model: 'm', messages });
  const id = `call_${randomUUID()}`;
  const fields = { id, state: new Map<symbol, unknown>(), headers: new Map<string, string>() };
  for (const { handler } of subject.hooksOf('admit')) await handler(callOf(request, fields));
  for (const { handler } of subject.hooksOf('prepare')) {
    const changed = await handler(callOf(request, fields), request);
    if (changed === undefined) continue;
    assert.ok(Array.isArray((changed as ChatRequest).messages), 'prepare gives a request, or nothing');
    request = deepFreeze(changed as ChatRequest);
  }
  for (const { handler } of subject.hooksOf('answer')) await handler(callOf(request, fields));
  for (const { handler } of subject.hooksOf('reserve')) await handler(callOf(request, fields));
  return { request };
}

/** Admits a call and ends it; returns the error that refused it. */
async function admit(subject: PluginSubject, call: Call<'chat'>, status: Outcome['status']): Promise<unknown> {
  const refusal = await orRefusal(async () => {
    for (const { handler } of subject.hooksOf('admit')) await handler(call);
    for (const { handler } of subject.hooksOf('reserve')) await handler(call);
  });
  for (const { handler } of subject.hooksOf('finish')) await handler(call, outcomeOf(status));
  return refusal;
}

function outcomeOf(status: Outcome['status']): Outcome {
  return { status, attempts: [], estimated: false, sent: status === 'ok', durationMs: 1, upstreamMs: 1 };
}

const codeOf = (refusal: unknown): string | undefined => (isGatewayError(refusal) ? refusal.code : undefined);

/** Hooks on responses run in reverse order. */
async function receive(subject: PluginSubject, response: ChatResponse): Promise<ChatResponse> {
  let out = deepFreeze(response);
  for (const { handler } of subject.hooksOf('receive').toReversed()) {
    const changed = (await handler(callOf(requestOf('Hello')), out)) as ChatResponse | undefined;
    assert.ok(changed === undefined || Array.isArray(changed.choices), 'receive gives a response, or nothing');
    out = deepFreeze(changed ?? out);
  }
  return out;
}

type Transforms = readonly { push(chunk: ChatChunk): unknown; end?(): unknown }[];

function transformsOf(subject: PluginSubject, id = 'call_1'): Transforms {
  const call = callOf(requestOf('Hello', true), { id });
  return subject
    .hooksOf('stream')
    .toReversed()
    .flatMap(({ handler }) => handler(call) ?? [])
    .filter(({ observes }) => observes !== true);
}

async function stream(subject: PluginSubject, chunks: readonly ChatChunk[]): Promise<readonly ChatChunk[]> {
  const transforms = transformsOf(subject);
  return [...(await pushAll(transforms, chunks)), ...(await endAll(transforms))];
}

/** Streams until a refusal; returns the refusal and all chunks before it. */
async function streamOrRefuse(
  subject: PluginSubject,
  chunks: readonly ChatChunk[],
): Promise<{ readonly chunks: readonly ChatChunk[]; readonly refusal?: GatewayError }> {
  const transforms = transformsOf(subject);
  const seen: ChatChunk[] = [];
  const refusal = await orRefusal(async () => {
    for (const chunk of chunks) seen.push(...(await pushAll(transforms, [chunk])));
    seen.push(...(await endAll(transforms)));
    return undefined;
  });
  return { chunks: seen, ...(refusal && { refusal }) };
}

async function pushAll(transforms: Transforms, chunks: readonly ChatChunk[]): Promise<readonly ChatChunk[]> {
  let out: readonly ChatChunk[] = deepFreeze(chunks);
  for (const transform of transforms) {
    const given: ChatChunk[] = [];
    for (const chunk of out) given.push(...((await transform.push(chunk)) as readonly ChatChunk[]));
    out = deepFreeze(given);
  }
  return out;
}

/** Flushes each transform into the next ones. */
async function endAll(transforms: Transforms): Promise<readonly ChatChunk[]> {
  let out: readonly ChatChunk[] = [];
  for (const transform of transforms) {
    const given = await pushAll([transform], out);
    out = [...given, ...(((await transform.end?.()) ?? []) as readonly ChatChunk[])];
  }
  return deepFreeze(out);
}

/** Returns the result, or the GatewayError that refuses it. Any other error fails the test. */
async function orRefusal<T>(run: () => Promise<T>): Promise<T | GatewayError> {
  try {
    return await run();
  } catch (error) {
    assert.ok(
      isGatewayError(error),
      `throws no error of ours: ${String((error as Error | undefined)?.stack ?? error)}`,
    );
    return error;
  }
}

/** Asserts that a refusal does not repeat the refused text. */
function assertUnsaid(text: string, refusal: unknown): void {
  if (isGatewayError(refusal))
    assert.ok(!refusal.message.toLowerCase().includes(text.toLowerCase()), 'the refusal repeats the text');
}

function assertHidden(text: string, said: readonly (ChatResponse | ChatChunk)[], where: string): void {
  const all = Object.values(contentOf(said)).join('\n').toLowerCase();
  assert.ok(!all.includes(text.toLowerCase()), `it is seen ${where}`);
}
