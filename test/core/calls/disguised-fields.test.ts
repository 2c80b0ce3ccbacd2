import { expect } from 'chai';
import type { ChatRequest } from '../../../contract/chat.ts';
import { factsOf } from '../../../contract/facts.ts';
import { assertNoDisguisedFields } from '../../../core/calls/gates.ts';

const REQUEST = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };
const text = (part: object) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x', ...part }] }] });
const call = (more: object) => ({ id: 'c', type: 'function', function: { name: 'f', arguments: '{}', ...more } });

describe('a disguised variant of a known field', () => {
  const REFUSED: readonly (readonly [fields: object, param: string])[] = [
    [{ Model: 'dear' }, 'Model'],
    [{ MAX_TOKENS: 100_000 }, 'MAX_TOKENS'],
    [{ 'me\u017f\u017fages': [] }, 'me\u017f\u017fages'],
    [{ max_to\u212Aens: 1 }, 'max_to\u212Aens'],
    [{ Messages: [] }, 'Messages'],
    [{ Service_Tier: 'priority' }, 'Service_Tier'],
    [{ messages: [{ role: 'user', content: 'x', Content: 'y' }] }, 'messages[0].Content'],
    [text({ Text: 'y' }), 'messages[0].content[0].Text'],
    [
      { messages: [{ role: 'assistant', tool_calls: [call({ Name: 'g' })] }] },
      'messages[0].tool_calls[0].function.Name',
    ],
    [{ tools: [{ type: 'function', function: { name: 'f', NAME: 'g' } }] }, 'tools[0].function.NAME'],
  ];
  for (const [fields, param] of REFUSED) {
    it(`D1: is refused by its name: ${param}`, () => {
      expect(() => assertNoDisguisedFields(factsOf({ ...REQUEST, ...fields } as ChatRequest).disguised))
        .to.throw()
        .that.includes({ code: 'invalid_request', param });
    });
  }

  const TAKEN: readonly object[] = [
    {},
    { topK: 5, Unknown: 1, 'x-y': 2 },
    { metadata: { Model: 'x' } },
    { tools: [{ type: 'function', function: { name: 'f', parameters: { properties: { Name: {}, name: {} } } } }] },
    { logit_bias: { A: 1 } },
  ];
  for (const fields of TAKEN) {
    it(`D1: is not found in ${JSON.stringify(fields)}`, () => {
      expect(() => assertNoDisguisedFields(factsOf({ ...REQUEST, ...fields } as ChatRequest).disguised)).to.not.throw();
    });
  }
});
