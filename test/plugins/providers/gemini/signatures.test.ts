import { expect } from 'chai';
import type { ChatMessage } from '../../../../contract/index.ts';
import { openReasoning } from '../../../../core/calls/seals.ts';
import dialect from '../../../../plugins/dialects/gemini.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import {
  readCallId,
  SKIP_SIGNATURE,
  sealSignature,
  signedCallId,
} from '../../../../plugins/formats/google/signatures.ts';
import type { GeminiPart, GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest } from '../../../../plugins/formats/google/write-request.ts';
import { codecCall, jsonFixture } from '../../../support/formats/codec.ts';
import { dialectOf, read } from '../../dialects/gemini/given.ts';

const SIGNATURE = 'CiQBcsjafG1wX3Fib/rY+0pQk3s=';

function replay(calls: NonNullable<ChatMessage['tool_calls']>, model = 'gemini-3.8-flash'): readonly GeminiPart[] {
  const messages: ChatMessage[] = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: null, tool_calls: calls },
    ...calls.map(({ id }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: 'ok' })),
  ];
  const body = geminiRequest({ model, messages }, codecCall({ model })).body as GeminiRequest;
  return body.contents[1]?.parts ?? [];
}

const call = (id: string, more: object = {}): NonNullable<ChatMessage['tool_calls']>[number] => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
  ...more,
});

describe('gemini thought signatures', () => {
  it('return to the vendor from a client that stores only id, name and arguments', () => {
    const response = geminiResponse(jsonFixture('gemini/chat.json'), codecCall());
    const { id, type, function: called } = response.choices[0]!.message.tool_calls![0]!;
    const [part] = replay([{ id, type, function: { name: called.name, arguments: called.arguments } }]);
    expect(part).to.deep.equal({
      functionCall: { id: 'fc_9', name: 'get_weather', args: { city: 'Paris' } },
      thoughtSignature: SIGNATURE,
    });
  });

  for (const [where, more] of [
    [
      'extra_content, as Google’s OpenAI endpoint has it',
      { extra_content: { google: { thought_signature: SIGNATURE } } },
    ],
    [
      'function.thought_signature, as Portkey has it',
      { function: { name: 'f', arguments: '{}', thought_signature: SIGNATURE } },
    ],
    ['provider_specific_fields, as LiteLLM has it', { provider_specific_fields: { thought_signature: SIGNATURE } }],
  ] as const) {
    it(`are found in ${where}`, () => {
      expect(replay([call('a', more)])[0]?.thoughtSignature).to.equal(SIGNATURE);
    });
  }

  it('are found in an id that LiteLLM made, in plain base64', () => {
    expect(readCallId(`call_1__thought__${SIGNATURE}`)).to.deep.equal({ id: 'call_1', signature: SIGNATURE });
  });

  it('are replaced by the documented sentinel when a client lost them', () => {
    expect(replay([call('a')])[0]?.thoughtSignature).to.equal(SKIP_SIGNATURE);
  });

  it('stay absent on the second of parallel calls, as the vendor signs only the first', () => {
    const parts = replay([call(signedCallId('a', SIGNATURE)), call('b')]);
    expect(parts.map(({ thoughtSignature }) => thoughtSignature)).to.deep.equal([SIGNATURE, undefined]);
  });

  it('are not invented for models that do not require them', () => {
    expect(replay([call('a')], 'gemini-2.5-flash')[0]).to.not.have.property('thoughtSignature');
  });

  it('of texts travel on the message', () => {
    const body = {
      candidates: [
        { content: { parts: [{ text: 'Hi' }, { text: '', thoughtSignature: SIGNATURE }] }, finishReason: 'STOP' },
      ],
    };
    const { message } = geminiResponse(body, codecCall()).choices[0]!;
    const messages: ChatMessage[] = [{ role: 'user', content: 'x' }, message, { role: 'user', content: 'y' }];
    const request = geminiRequest({ model: 'gemini-3.8-flash', messages }, codecCall({ model: 'gemini-3.8-flash' }));
    expect((request.body as GeminiRequest).contents[1]?.parts).to.deep.equal([
      { text: 'Hi', thoughtSignature: SIGNATURE },
    ]);
  });

  for (const [whose, open, expected] of [
    ['its own account', (sealed: string) => sealed.replace('tg1.google.tag.', ''), [SIGNATURE, SIGNATURE, SIGNATURE]],
    ['another account', () => undefined, [undefined, SKIP_SIGNATURE]],
  ] as const)
    it(`that were sealed are opened for ${whose} if a request must be translated`, () => {
      const thoughtSignature = sealSignature(SIGNATURE, (data) => `tg1.google.tag.${data}`);
      const parts = [
        { text: 'Hm', thought: true, thoughtSignature },
        { text: 'Hi', thoughtSignature },
        { functionCall: { id: 'a', name: 'f', args: {} }, thoughtSignature },
        { executableCode: { language: 'PYTHON', code: '1' }, thoughtSignature },
      ];
      const results = [{ functionResponse: { id: 'a', name: 'f', response: {} } }];
      const contents = [
        { role: 'user', parts: [{ text: 'x' }] },
        { role: 'model', parts },
        { role: 'user', parts: results },
      ];
      const { request } = read(dialectOf(dialect), { contents }, { method: ':generateContent' });
      const opened = openReasoning(request, open);
      expect(opened.isOmitted).to.equal(whose === 'another account');
      const model = 'gemini-3.8-flash';
      const { body } = geminiRequest({ ...opened.request, model }, codecCall({ model }));
      const sent = (body as GeminiRequest).contents[1]?.parts.filter((part) => !('executableCode' in part));
      expect(sent?.map((part) => part.thoughtSignature)).to.deep.equal(expected);
      expect(JSON.stringify(body)).to.not.include(thoughtSignature);
    });

  it('keep ids in the alphabet that other vendors take, and out of ids when they are too long for one', () => {
    expect(signedCallId('a', SIGNATURE)).to.match(/^[A-Za-z0-9_-]+$/);
    expect(signedCallId('a', 'A'.repeat(5000))).to.equal('a');
    expect(signedCallId('a', 'not base64!')).to.equal('a');
  });
});
