import { expect } from 'chai';
import { StreamFailure } from '../../../../contract/index.ts';
import { geminiStream } from '../../../../plugins/formats/google/read-stream.ts';
import { codecCall, collect, type Decoded, decode, fixture, readSse } from '../../../support/formats/codec.ts';

function play(name: string): Decoded {
  return decode(geminiStream(codecCall({ stream: true })), readSse(fixture(`gemini/${name}.sse`)));
}

describe('gemini streams', () => {
  it('open with the role, end with one finish reason and the last usage', () => {
    const { chunks, complete } = play('stream');
    expect(chunks[0]?.choices[0]?.delta).to.deep.equal({ role: 'assistant', content: '', refusal: null });
    expect(collect(chunks)).to.deep.include({ content: 'Grüß Gott 👋!', finish: ['stop'], roles: 1 });
    expect(chunks.at(-1)).to.deep.include({ choices: [] });
    expect(chunks.at(-1)?.usage).to.deep.include({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 });
    expect(chunks.filter(({ usage }) => usage)).to.have.length(1);
    expect(complete).to.equal(true);
  });

  it('carry every part of a chunk: thinking, text and parallel calls with their signature', () => {
    const { chunks } = play('stream-tools');
    const whole = collect(chunks);
    expect(whole.reasoning).to.equal('The user wants weather.');
    expect(whole.content).to.equal('Looking.');
    expect(whole.calls).to.deep.equal([
      { id: 'fc_1__thought__CiQBcsjafG1wX3Fib_rY-0pQk3s', name: 'get_weather', arguments: '{"city":"Paris"}' },
      { id: 'call_chatcmpl-test_0_1', name: 'get_time', arguments: '{}' },
    ]);
    expect(chunks.at(-1)?.usage).to.deep.include({ prompt_tokens: 40, completion_tokens: 33, total_tokens: 73 });
  });

  it('end with tool_calls although the last event has STOP and no call', () => {
    expect(collect(play('stream-tools').chunks).finish).to.deep.equal(['tool_calls']);
  });

  it('go on over events without parts', () => {
    expect(collect(play('stream-no-parts').chunks)).to.deep.include({ content: 'ok', finish: ['length'] });
  });

  it('end once if the vendor sends STOP in every event', () => {
    expect(collect(play('stream-repeated-stop').chunks)).to.deep.include({ content: 'one two', finish: ['stop'] });
  });

  it('end as filtered when the prompt was blocked', () => {
    const { chunks, complete } = play('stream-blocked');
    expect(collect(chunks)).to.deep.include({ content: '', finish: ['content_filter'], roles: 1 });
    expect(complete).to.equal(true);
  });

  it('are not complete, and get no invented end, when the vendor broke off', () => {
    const { chunks, complete } = play('cut');
    expect(complete).to.equal(false);
    expect(collect(chunks).finish).to.deep.equal([]);
    expect(chunks.at(-1)?.usage?.completion_tokens).to.equal(3);
  });

  it('fail with the class of an error in their midst', () => {
    const decoder = geminiStream(codecCall());
    const [first, second] = readSse(fixture('gemini/failure-midway.sse'));
    expect(collect(decoder.push(first!)).content).to.equal('half');
    expect(() => decoder.push(second!))
      .to.throw(StreamFailure)
      .with.nested.property('failure.class', 'overloaded');
  });

  it('keep several candidates apart', () => {
    const { chunks } = play('stream-two-candidates');
    expect(collect(chunks, 0)).to.deep.include({ content: 'Aa', finish: ['stop'], roles: 1 });
    expect(collect(chunks, 1)).to.deep.include({ content: 'Bb', finish: ['length'], roles: 1 });
  });

  it('are not complete when one of several candidates has no end', () => {
    const decoder = geminiStream(codecCall());
    decoder.push({
      data: '{"candidates":[{"index":0,"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"x"}]}}]}',
    });
    expect(decoder.end().complete).to.equal(false);
  });

  for (const reason of ['OTHER', 'SOMETHING_NEW'])
    it(`G11: are incomplete after ${reason}, and fail without content`, () => {
      const play = (parts: readonly object[]) => {
        const decoder = geminiStream(codecCall());
        const last = { content: { parts }, finishReason: reason };
        const chunks = decoder.push({ data: JSON.stringify({ candidates: [last] }) });
        return collect([...chunks, ...decoder.end().chunks]);
      };
      expect(play([{ text: 'Half a' }])).to.deep.include({ content: 'Half a', finish: ['length'] });
      expect(() => play([]))
        .to.throw(StreamFailure)
        .with.nested.property('failure.class', 'broken_off');
    });

  it('G10: are finished when every requested candidate has an end, and ending with their usage', () => {
    const decoder = geminiStream({ ...codecCall(), request: { model: 'm', messages: [], n: 2 } });
    const progress = (event: object) => {
      decoder.push({ data: JSON.stringify(event) });
      return decoder.progress?.();
    };
    expect(progress({ candidates: [{ index: 0, finishReason: 'STOP' }] })).to.equal('open');
    expect(progress({ candidates: [{ index: 1, content: { parts: [{ text: 'x' }] } }] })).to.equal('open');
    expect(progress({ candidates: [{ index: 1, finishReason: 'STOP' }] })).to.equal('finished');
    expect(progress({ usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 } })).to.equal('ending');
  });

  for (const reason of ['MALFORMED_FUNCTION_CALL', 'MISSING_THOUGHT_SIGNATURE'])
    it(`E19: fail after the text when the model stopped with ${reason}`, () => {
      const decoder = geminiStream(codecCall());
      const last = { content: { parts: [{ text: 'Half a' }] }, finishReason: reason };
      expect(collect(decoder.push({ data: JSON.stringify({ candidates: [last] }) }))).to.deep.include({
        content: 'Half a',
        finish: [],
      });
      expect(() => decoder.end())
        .to.throw(StreamFailure)
        .with.nested.property('failure.class', 'broken_off');
    });

  it('ignore blank events and a [DONE] that a proxy added, and fail on what is not JSON', () => {
    const decoder = geminiStream(codecCall());
    expect(decoder.push({ data: '' })).to.deep.equal([]);
    expect(decoder.push({ data: '[DONE]' })).to.deep.equal([]);
    expect(() => decoder.push({ data: '<html>' })).to.throw(StreamFailure);
  });

  it('that never begin are not complete', () => {
    expect(geminiStream(codecCall()).end()).to.deep.equal({ chunks: [], complete: false });
  });
});
