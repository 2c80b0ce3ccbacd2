import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { Schema } from '../../../contract/json.ts';
import { requestError, toParam } from '../../../core/http/error-answer.ts';

/** Error of a value under a schema. */
function errorOf(schema: Schema, value: unknown, where?: string) {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  validate(value);
  const [error] = validate.errors ?? [];
  if (!error) throw new Error('the value has no error');
  return requestError(error, value, where);
}

const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: 'object', properties, ...rest });

describe('the error of a request', () => {
  const ROWS: readonly (readonly [schema: Schema, value: unknown, param: string | undefined, message: string])[] = [
    [object({}), undefined, undefined, 'The request has no body; send a JSON object.'],
    [object({}), [], undefined, 'The body must be a JSON object.'],
    [object({}, { required: ['model'] }), {}, 'model', '"model" is required.'],
    [object({ n: { type: 'integer' } }), { n: 'x' }, 'n', '"n" must be an integer.'],
    [object({ n: { type: ['string', 'null'] } }), { n: 1 }, 'n', '"n" must be a string or null.'],
    [object({ n: { minimum: 1 } }), { n: 0 }, 'n', '"n" must be >= 1.'],
    [object({ r: { enum: ['a', 'b'] } }), { r: 'c' }, 'r', '"r" must be one of "a", "b".'],
    [object({ c: { const: 5 } }), { c: 6 }, 'c', '"c" must be 5.'],
    [object({ s: { minLength: 1 } }), { s: '' }, 's', '"s" must not be empty.'],
    [object({ s: { maxLength: 2 } }), { s: 'abc' }, 's', '"s" must have at most 2 characters.'],
    [object({ l: { minItems: 1 } }), { l: [] }, 'l', '"l" must have at least 1 item(s).'],
    [object({}, { additionalProperties: false }), { extra: 1 }, 'extra', '"extra" is not a field of this request.'],
    [object({ p: { pattern: '^a$' } }), { p: 'b' }, 'p', '"p" must match ^a$.'],
    [
      object({ m: { items: object({}, { required: ['role'] }) } }),
      { m: [{}] },
      'm[0].role',
      '"m[0].role" is required.',
    ],
  ];
  it('names the path of a body in another format (G4)', () => {
    const chat = object({}, { required: ['messages'] });
    expect(errorOf(chat, { model: 'm', input: 'hi' })).to.include({
      param: 'messages',
      message: '"messages" is required. Send a body with "input" to /v1/responses.',
    });
    const responses = object({}, { required: ['input'] });
    expect(errorOf(responses, { messages: [] }).message).to.include('/v1/chat/completions');
    const gemini = object({}, { required: ['contents'] });
    expect(errorOf(gemini, { messages: [] }).message).to.equal(
      '"contents" is required. Send a body with "messages" to /v1/chat/completions.',
    );
    expect(errorOf(responses, { contents: [] }).message).to.include(':generateContent');
    expect(errorOf(object({}, { required: ['model', 'messages'] }), { contents: [] }).message).to.include(
      '/v1beta/models/{model}:generateContent',
    );
    expect(errorOf(responses, {}).message).to.equal('"input" is required.');
    expect(errorOf(chat, { input: 'hi' }, 'query').message).to.equal('query "messages" is required.');
  });

  for (const [schema, value, param, message] of ROWS)
    it(`is ${message}`, () => {
      const error = errorOf(schema, value);
      expect(error).to.include({ code: 'invalid_request', message });
      expect(error.param).to.equal(param);
    });

  it('has the place, for a query', () => {
    expect(errorOf(object({}, { required: ['q'] }), {}, 'query').message).to.equal('query "q" is required.');
  });

  it('names fields as a caller writes them, with a limited length', () => {
    expect(toParam('/messages/0/content/12/image_url/url')).to.equal('messages[0].content[12].image_url.url');
    expect(toParam('/a~1b/c~0d')).to.equal('a/b.c~d');
    expect(toParam(`/${'x'.repeat(5000)}`).length).to.be.lessThan(100);
    expect(toParam('/x'.repeat(5000)).length).to.equal(198);
  });
});
