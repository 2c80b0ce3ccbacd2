import { expect } from 'chai';
import { StreamFailure } from '../../../../contract/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import { geminiStream } from '../../../../plugins/formats/google/read-stream.ts';
import { codecCall, collect, decode } from '../../../support/formats/codec.ts';

const CALL = codecCall({ model: 'gemini-3.8-flash', stream: true });

/** Stream with one event per list of parts; the last one ends the candidate. */
function stream(...events: readonly (readonly object[])[]) {
  return decode(
    geminiStream(CALL),
    events.map((parts, at) => {
      const finish = at === events.length - 1 ? { finishReason: 'STOP' } : {};
      return { data: JSON.stringify({ candidates: [{ content: { role: 'model', parts }, index: 0, ...finish }] }) };
    }),
  );
}

const part = (functionCall: object, more: object = {}) => ({ functionCall, ...more });
const piece = (jsonPath: string, value: object) => ({ jsonPath, ...value });

describe('gemini’s arguments in pieces', () => {
  it('D24: are joined into one call', () => {
    const { chunks, complete } = stream(
      [part({ name: 'go', id: 'c1', willContinue: true }, { thoughtSignature: 'c2ln' })],
      [part({ partialArgs: [piece('$.city', { stringValue: 'New ', willContinue: true })], willContinue: true })],
      [part({ partialArgs: [piece('$.city', { stringValue: 'York' })], willContinue: true })],
      [
        part({
          partialArgs: [
            piece('$.days', { numberValue: 3 }),
            piece('$.fast', { boolValue: false }),
            piece('$.via', { nullValue: 'NULL_VALUE' }),
            piece('$.stops[1].name', { stringValue: 'B' }),
            piece("$['full name']", { stringValue: 'C' }),
          ],
          willContinue: true,
        }),
      ],
      [part({})],
    );
    expect(complete).to.equal(true);
    const { calls, finish } = collect(chunks);
    expect(calls.map(({ name }) => name)).to.deep.equal(['go']);
    expect(JSON.parse(calls[0]?.arguments ?? '')).to.deep.equal({
      city: 'New York',
      days: 3,
      fast: false,
      via: null,
      stops: [null, { name: 'B' }],
      'full name': 'C',
    });
    expect(calls[0]?.id).to.include('c2ln');
    expect(finish).to.deep.equal(['tool_calls']);
  });

  it('D24: create a call also if only the end closes it', () => {
    const { chunks } = stream(
      [part({ name: 'go', willContinue: true })],
      [part({ partialArgs: [piece('$.a', { stringValue: 'x' })], willContinue: true })],
      [],
    );
    expect(collect(chunks).calls[0]?.arguments).to.equal('{"a":"x"}');
  });

  it('D24: keep two calls apart', () => {
    const { chunks } = stream(
      [part({ name: 'go', willContinue: true })],
      [part({ partialArgs: [piece('$.a', { numberValue: 1 })] }), part({ name: 'stop', args: { b: 2 } })],
    );
    expect(collect(chunks).calls.map((call) => call.arguments)).to.deep.equal(['{"a":1}', '{"b":2}']);
  });

  for (const [title, events] of [
    [
      'break off in the middle of a text',
      [
        [
          part({
            name: 'go',
            willContinue: true,
            partialArgs: [piece('$.a', { stringValue: 'x', willContinue: true })],
          }),
        ],
        [],
      ],
    ],
    ['name no place', [[part({ name: 'go', partialArgs: [piece('city', { stringValue: 'x' })] })]]],
    ['name the prototype', [[part({ name: 'go', partialArgs: [piece('$.__proto__.x', { stringValue: 'x' })] })]]],
    ['begin within another call', [[part({ name: 'go', willContinue: true })], [part({ name: 'stop', args: {} })]]],
  ] as const) {
    it(`D24: are a failure when they ${title}`, () => {
      expect(() => stream(...events)).to.throw(StreamFailure);
    });
  }

  it('D24: are merged in a JSON response too', () => {
    const parts = [part({ name: 'go', partialArgs: [piece('$.a', { stringValue: 'x' })] })];
    const body = { candidates: [{ content: { parts }, finishReason: 'STOP' }] };
    const [choice] = geminiResponse(body, CALL).choices;
    expect(choice?.message.tool_calls?.[0]?.function.arguments).to.equal('{"a":"x"}');
  });
});
