import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import {
  type ChatCodec,
  type ChatRequest,
  type FieldRule,
  type FieldRules,
  type FieldTable,
  type HttpRequest,
  isGatewayError,
  readObject,
} from '../../contract/index.ts';
import { type Cell, itShows } from './cells.ts';
import { deepFreeze } from './deep-freeze.ts';
import { valuesAt } from './dialect-format.ts';
import { SAMPLES, type Sample } from './provider-samples.ts';
import { CALL, type ProviderSubject, SECRET, streamCall } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Routing fields of other gateways. A request to this gateway cannot choose a host, a key or a header. */
const ROUTING = ['api_base', 'api_key', 'base_url', 'extra_body', 'extra_headers', 'headers', 'organization'] as const;

/** Default table: every field of OpenAI's must be sent or reported. */
const NO_TABLE: FieldTable = Object.freeze({ fields: {}, unknown: 'dropped' });

/** Tests that every field of a chat request is handled as in the provider's table. */
export function testRequests({ name, provider }: ProviderSubject): void {
  const { describe, it } = findRunner();
  const { chat, fields: table = NO_TABLE } = provider;
  if (!chat) return;
  const messages = deepFreeze([{ role: 'user', content: 'Hello' }] as const);
  const translate = (fields: object) => chat.request({ model: CALL.model, messages, ...fields }, CALL);

  describe('a chat request', () => {
    it('goes to a path below the base URL and contains no key', () => {
      const request = translate({ temperature: 0.5 });
      assert.match(request.path, /^\/[^\s#]*$/);
      assert.ok(!request.path.includes('..') && !JSON.stringify(request).includes(SECRET));
    });

    it('is repeatable, and does not modify its input', () => {
      const fields = allFields(table.fields);
      const input = deepFreeze({ model: CALL.model, messages: structuredClone(messages), ...fields });
      const make = () => outcomeOf(() => chat.request(input as unknown as ChatRequest, CALL));
      assert.deepEqual(make(), make());
    });

    it('names the model as the provider knows it, not as the caller wrote it', () => {
      const request = chat.request({ model: 'an/alias', messages }, CALL);
      assert.ok(JSON.stringify([request.path, request.body]).includes(CALL.model));
      assert.ok(!JSON.stringify([request.path, request.body]).includes('an/alias'));
    });

    it('treats null as absent', () => {
      const nothing = Object.fromEntries(Object.keys(SAMPLES).map((field) => [field, null]));
      assert.deepEqual(toJson(translate(nothing)), toJson(translate({})));
    });

    it('requests a stream if the call is one', () => {
      const streamed = chat.request({ model: CALL.model, messages, stream: true }, streamCall());
      assert.notDeepEqual(toJson(streamed), toJson(translate({ stream: false })));
    });

    for (const field of Object.keys(SAMPLES))
      it(`is the same streamed and not, with ${field}`, () => assertSameStreamed(chat, messages, field));

    for (const field of ROUTING) {
      it(`does not send "${field}"`, () => {
        const request = translate({ [field]: 'https://evil.example' });
        assert.ok(!JSON.stringify(request.body).includes('evil.example'));
        assert.ok(!JSON.stringify([request.path, request.headers ?? {}]).includes('evil.example'));
      });
    }

    // A field outside the table is tried with each known model: at least one must accept it.
    const models = [CALL.model, ...(table.variants ?? []).map(({ example }) => example.model)];
    const byModel = models.map(
      (model) => (fields: object) => chat.request({ model, messages, ...fields }, { ...CALL, model }),
    );
    for (const field of Object.keys(SAMPLES)) {
      const tried = table.fields[field] ? translate : (byModel.find((one) => takes(one, field)) ?? translate);
      const rule = table.fields[field] ?? impliedRule(tried, field);
      itShows(it, cell(name, field, rule), `${verb(rule)} ${field}`, () => {
        assertRule(tried, field, rule, table.fields);
        if (rule.rule !== 'refused' && rule.rule !== 'dropped') assertPlaces(tried, field);
      });
    }
    for (const variant of table.variants ?? []) {
      for (const [field, rule] of Object.entries(variant.fields)) {
        if (!SAMPLES[field]) continue;
        it(`${verb(rule)} ${field} for ${variant.when}`, () => {
          const call = { ...CALL, model: variant.example.model };
          const inVariant = (more: object) => chat.request({ messages, ...variant.example, ...more }, call);
          assertRule(inVariant, field, rule, { ...table.fields, ...variant.fields }, variant.example);
        });
      }
    }
  });
}

/** Current names of the deprecated tool fields; a codec may report these. */
const NEWER: Readonly<Record<string, string>> = Object.freeze({ functions: 'tools', function_call: 'tool_choice' });

type Translate = (fields: object) => HttpRequest;

function assertRule(
  translate: Translate,
  field: string,
  rule: FieldRule,
  rules: FieldRules,
  example: object = {},
): void {
  const sample = SAMPLES[field];
  if (!sample) return;
  const own = example as Readonly<Record<string, unknown>>;
  const {
    value,
    words = [],
    others = othersOf(sample.value),
  }: Sample = field in example ? { value: own[field], others: [] } : sample;
  const parallel = Object.entries(sample.requires ?? {}).filter(([name]) => rules[name]?.rule !== 'refused');
  const say = (said: unknown) => translate({ ...Object.fromEntries(parallel), [field]: said });
  if (rule.rule === 'refused') {
    assertRefused(() => say(value), field);
    return;
  }
  const sent = say(value);
  const { body = {}, dropped = [] } = sent;
  const reported = dropped.includes(field);
  const newerReport = dropped.includes(NEWER[field] ?? field);
  if (rule.rule === 'dropped') {
    assert.ok(!(field in body), `${field} is not sent`);
    assert.ok(reported, `${field} is reported as dropped`);
    return;
  }
  if (rule.rule === 'passed' && rule.note === undefined) {
    assert.deepEqual(valuesAt(body, field), [value], `${field} is sent as it is, for the table notes no change`);
    return;
  }
  const without = outcomeOf(() => say(null));
  if (reported) {
    const isWordless = words.length === 0 || Object.keys(example).length > 0;
    assert.ok(
      isWordless || !isSame(sent, without),
      `${field} is reported as dropped and changes nothing: its rule is "dropped", not "${rule.rule}"`,
    );
    return;
  }
  if (newerReport) return;
  assert.ok(!isSame(sent, without), `${field} is ${rule.rule}, says the table, but the request is the same without it`);
  if (rule.rule === 'emulated') {
    assertWords(field, words, sent);
    return;
  }

  const place = rule.rule === 'passed' ? field : isPath(rule.to) ? rule.to : '';
  const at = (request: unknown): unknown =>
    place === '' ? saidOf(request) : valuesAt((request as HttpRequest).body, place);
  const [found, before] = [at(sent), at(without)];
  assert.ok(!isDeepStrictEqual(found, []), `${field} is sent as ${place}`);
  assert.ok(!isDeepStrictEqual(found, before), `${place} is the same without ${field}`);
  assertWords(field, words, found);
  if (words.length > 0 || others.length === 0 || isDeepStrictEqual(found, [value])) return;
  assert.ok(
    others.some((other) => !isDeepStrictEqual(at(outcomeOf(() => say(other))), found)),
    `${place || 'the request'} is ${JSON.stringify(found)} whatever ${field} says: ${JSON.stringify([value, ...others])}`,
  );
}

/** Asserts that a field has the same effect in a request for a stream and for a whole response. */
function assertSameStreamed(chat: ChatCodec, messages: ChatRequest['messages'], field: string): void {
  const { value, requires } = SAMPLES[field] ?? {};
  const fields = { ...requires, [field]: value };
  const make = (stream: boolean, more: object) =>
    toJson(
      outcomeOf(() => chat.request({ model: CALL.model, messages, ...more, stream }, stream ? streamCall() : CALL)),
    ) as Partial<HttpRequest>;
  const plain = membersThatDiffer(make(true, {}).body, make(false, {}).body);
  const [streamed, whole] = [make(true, fields), make(false, fields)];
  assert.deepEqual(streamed.dropped, whole.dropped, 'the same fields are reported as dropped');
  const more = membersThatDiffer(streamed.body, whole.body).filter((name) => !plain.includes(name));
  assert.deepEqual(more, [], `with ${field}, these members differ between a stream and a whole response`);
}

function membersThatDiffer(one: unknown, other: unknown): readonly string[] {
  const [first, second] = [readObject(one), readObject(other)];
  const names = new Set([...Object.keys(first), ...Object.keys(second)]);
  return [...names].filter((name) => !isDeepStrictEqual(first[name], second[name]));
}

/** Asserts that each place in the value of a field changes the request. A field that is reported as dropped may change none. */
function assertPlaces(translate: Translate, field: string): void {
  const { value, requires, free = [] } = SAMPLES[field] ?? {};
  const say = (said: unknown) => outcomeOf(() => translate({ ...requires, [field]: said }));
  const sent = say(value);
  const { dropped = [] } = sent as HttpRequest;
  if (dropped.includes(field) || dropped.includes(NEWER[field] ?? field)) return;
  for (const place of placesIn(value)) {
    if (place.length === 0 || free.includes(place.join('.'))) continue;
    const isReported = !isDeepStrictEqual(toJson(say(changeAt(value, place))), toJson(sent));
    assert.ok(isReported, `the request is the same whatever ${[field, ...place].join('.')} says`);
  }
}

/** Returns the path of each text, number and boolean in a value. */
function placesIn(value: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([name, each]) => placesIn(each, [...at, name]));
}

/** Returns a frozen copy of a value with another text, number or boolean at a path. */
function changeAt(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined)
    return typeof value === 'boolean' ? !value : typeof value === 'number' ? value + 1 : `${String(value)}q`;
  const changed = Object.entries(value as object).map(([key, each]) => [
    key,
    key === name ? changeAt(each, rest) : each,
  ]);
  return deepFreeze(Array.isArray(value) ? changed.map(([, each]) => each) : Object.fromEntries(changed));
}

/** Other values of a field whose sample has none. */
function othersOf(value: unknown): readonly unknown[] {
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [Number.isInteger(value) ? value + 1 : value / 2];
  return [];
}

function assertWords(field: string, words: readonly string[], found: unknown): void {
  const text = JSON.stringify(found);
  for (const word of words) assert.ok(text.includes(word), `"${word}" of ${field} does not arrive`);
}

/** Returns the part of a request that the vendor receives. */
function saidOf(request: unknown): unknown {
  const { dropped: _dropped, ...said } = request as HttpRequest;
  return said;
}

function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(toJson(saidOf(one)), toJson(saidOf(other)));
}

function assertRefused(translate: () => unknown, field: string): void {
  assert.throws(translate, (error: unknown) => {
    assert.ok(isGatewayError(error), 'a refusal is a GatewayError');
    assert.equal(error.code, 'invalid_request');
    assert.equal(error.param, field);
    return true;
  });
}

/** Returns true if a field is sent unchanged. */
function takes(translate: Translate, field: string): boolean {
  const { value, requires: parallel } = SAMPLES[field] ?? {};
  try {
    return isDeepStrictEqual(valuesAt(translate({ ...parallel, [field]: value }).body, field), [value]);
  } catch {
    return false;
  }
}

/**
 * Rule for a field outside the table: passed unchanged, or reported as dropped. An error occurs again in the field's
 * test.
 */
function impliedRule(translate: Translate, field: string): FieldRule {
  const sample = SAMPLES[field];
  try {
    const { dropped = [] } = translate({ ...sample?.requires, [field]: sample?.value });
    return { rule: dropped.includes(field) ? 'dropped' : 'passed' };
  } catch {
    return { rule: 'passed' };
  }
}

function cell(provider: string, field: string, rule: FieldRule): Cell {
  const says = {
    passed: 'verified',
    renamed: 'verified',
    emulated: 'emulated',
    dropped: 'not offered',
    refused: 'refused',
  };
  return { provider, feature: `\`${field}\``, says: says[rule.rule] as Cell['says'] };
}

function verb(rule: FieldRule): string {
  return { passed: 'passes', renamed: 'renames', emulated: 'emulates', dropped: 'drops and tells', refused: 'refuses' }[
    rule.rule
  ];
}

/** Returns every sample that is not refused. */
function allFields(rules: FieldRules): object {
  const taken = Object.entries(SAMPLES).filter(([field]) => rules[field]?.rule !== 'refused');
  return Object.fromEntries(taken.map(([field, { value }]) => [field, value]));
}

function isPath(to: string | undefined): to is string {
  return to !== undefined && /^\w+(\[\])?(\.\w+(\[\])?)*$/.test(to);
}

/** Returns the request, or the refusal of incompatible fields. */
function outcomeOf(translate: () => unknown): unknown {
  try {
    return translate();
  } catch (error) {
    if (isGatewayError(error) && error.code === 'invalid_request') return { refused: error.param };
    throw error;
  }
}

function toJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
