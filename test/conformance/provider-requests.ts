import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import {
  type ChatRequest,
  type FieldRule,
  type FieldRules,
  type FieldTable,
  type HttpRequest,
  isGatewayError,
} from '../../contract/index.ts';
import { type Cell, itShows } from './cells.ts';
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
  const messages = [{ role: 'user', content: 'Hello' }] as const;
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
  const beside = Object.entries(sample.beside ?? {}).filter(([name]) => rules[name]?.rule !== 'refused');
  const say = (said: unknown) => translate({ ...Object.fromEntries(beside), [field]: said });
  if (rule.rule === 'refused') {
    assertRefused(() => say(value), field);
    return;
  }
  const sent = say(value);
  const { body = {}, dropped = [] } = sent;
  const told = dropped.includes(field);
  const toldAsNewer = dropped.includes(NEWER[field] ?? field);
  if (rule.rule === 'dropped') {
    assert.ok(!(field in body), `${field} is not sent`);
    assert.ok(told, `${field} is told as dropped`);
    return;
  }
  if (rule.rule === 'passed' && rule.note === undefined) {
    assert.deepEqual(valuesAt(body, field), [value], `${field} is sent as it is, for the table notes no change`);
    return;
  }
  const without = outcomeOf(() => say(null));
  if (told) {
    const isWordless = words.length === 0 || Object.keys(example).length > 0;
    assert.ok(
      isWordless || !isSame(sent, without),
      `${field} is told as dropped and changes nothing: its rule is "dropped", not "${rule.rule}"`,
    );
    return;
  }
  if (toldAsNewer) return;
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
  const { value, beside } = SAMPLES[field] ?? {};
  try {
    return isDeepStrictEqual(valuesAt(translate({ ...beside, [field]: value }).body, field), [value]);
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
    const { dropped = [] } = translate({ ...sample?.beside, [field]: sample?.value });
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

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
