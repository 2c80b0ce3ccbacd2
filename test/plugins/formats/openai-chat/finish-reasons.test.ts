import { expect } from 'chai';
import { StreamFailure } from '../../../../contract/index.ts';
import { mapFinishReason } from '../../../../plugins/formats/openai-chat/response.ts';

describe('finish reasons', () => {
  const MAPPED: readonly (readonly [string, boolean, string])[] = [
    ['stop', false, 'stop'],
    ['STOP', false, 'stop'],
    ['length', false, 'length'],
    ['MAX_TOKENS', false, 'length'],
    ['model_length', false, 'length'],
    ['eos', false, 'stop'],
    ['SAFETY', false, 'content_filter'],
    ['content_filter', true, 'content_filter'],
    ['function_call', false, 'function_call'],
    ['tool_use', true, 'tool_calls'],
    ['stop', true, 'tool_calls'],
    ['length', true, 'length'],
    ['sensitive', false, 'content_filter'],
    ['model_context_window_exceeded', false, 'length'],
  ];
  for (const [reason, calledTools, mapped] of MAPPED) {
    it(`maps ${reason}${calledTools ? ' after tool calls' : ''} to ${mapped} (E19)`, () => {
      expect(mapFinishReason(reason, calledTools, {})).to.equal(mapped);
    });
  }

  for (const [reason, failure] of [
    ['error', 'broken_off'],
    ['abort', 'broken_off'],
    ['insufficient_system_resource', 'overloaded'],
    ['network_error', 'broken_off'],
  ] as const) {
    it(`treats ${reason} as a failure of class ${failure}, and not as an end (E19)`, () => {
      expect(() => mapFinishReason(reason, false, {}))
        .to.throw(StreamFailure)
        .with.nested.property('failure.class', failure);
    });
  }

  it('G11: has no word for a reason that no table has, which is not a failure', () => {
    for (const reason of ['never heard of', 'constructor'])
      expect(mapFinishReason(reason, false, {}), reason).to.equal(undefined);
  });

  it('keeps `stop` with tool calls if the vendor means it', () => {
    expect(mapFinishReason('stop', true, { keepsStop: true })).to.equal('stop');
  });

  it('prefers a vendor’s own meaning', () => {
    expect(mapFinishReason('load', false, { finishReasons: { load: 'length' } })).to.equal('length');
  });
});
