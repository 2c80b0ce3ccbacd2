import { expect } from 'chai';
import { assertEvent } from '../../../plugins/operations/realtime/events.ts';

describe('G69: field names of realtime events in another case', () => {
  for (const [title, event, param] of [
    ['of an event', { type: 'session.update', Session: {} }, 'Session'],
    ['of a response', { type: 'response.create', response: { Input: [] } }, 'Input'],
    ['of instructions', { type: 'response.create', response: { Instructions: 'x' } }, 'Instructions'],
    [
      'of a part in an item',
      { type: 'conversation.item.create', item: { content: [{ type: 'input_text', Text: 'x' }] } },
      'Text',
    ],
    [
      'of nested settings',
      { type: 'session.update', session: { audio: { input: { Transcription: { model: 'm' } } } } },
      'Transcription',
    ],
    ['with a long s', { type: 'session.update', ſession: {} }, 'ſession'],
  ] as const)
    it(`are refused: ${title}`, () => {
      expect(() => assertEvent(event)).to.throw(`\`${param}\` must be spelled`);
    });

  it('are free in schemas of tools and in metadata', () => {
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: { Text: {} } } }];
    assertEvent({ type: 'session.update', session: { tools } });
    assertEvent({ type: 'response.create', response: { metadata: { Model: 'x' } } });
  });
});
