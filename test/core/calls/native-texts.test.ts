import { expect } from 'chai';
import type { ChatRequest } from '../../../contract/index.ts';
import { placeInBody, withNativeTexts, withoutNativeTexts } from '../../../core/calls/native-texts.ts';

const MESSAGES = [{ role: 'user', content: 'Hi' }] as const;

const shownOf = (body: unknown, fields: object = {}, isNative = true) => {
  const request = { model: 'm', messages: MESSAGES, ...fields } as ChatRequest;
  const client = { body, request, isNative };
  const shown = withNativeTexts({ client, request } as unknown as Parameters<typeof withNativeTexts>[0]);
  return { request, shown: shown as ChatRequest };
};
const textsOf = (...given: Parameters<typeof shownOf>) => shownOf(...given).shown.native_texts;

describe('texts of a body that only a vendor with its format receives', () => {
  it('G66: are empty if the canonical request has every text of the body', () => {
    const tool = { function: { name: 'f', parameters: { type: 'object', properties: { city: { type: 'string' } } } } };
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"city":"Rome","at":["noon"]}' } };
    const file = { file: { file_data: 'data:application/pdf;base64,JVBERi0=' } };
    const text = { file: { file_data: `data:text/plain;base64,${Buffer.from('A text').toString('base64')}` } };
    const body = {
      ...{ model: 'other', stream: true, system: 'Hi', max_tokens: 9 },
      input: { city: 'Rome', at: ['noon'] },
      sources: [
        { type: 'base64', data: 'JVBERi0=' },
        { type: 'text', data: 'A text' },
      ],
      tools: [{ name: 'f', input_schema: { properties: { city: { type: 'string' } } } }],
    };
    expect(textsOf(body, { tools: [tool], calls: [call], files: [file, text] })).to.equal(undefined);
  });

  it('G66: include other texts at their places, with the members that define their type', () => {
    const source = { type: 'base64', media_type: 'text/plain', data: 'SGVsbG8gd29ybGQ=', more: 1 };
    const body = {
      blocks: [{ type: 'text', text: 'Hi' }, { type: 'document', source, title: 'Plan' }, { text: 'Hi' }],
    };
    const { more: _more, ...read } = source;
    expect(textsOf(body)).to.deep.equal({ blocks: [null, { type: 'document', source: read, title: 'Plan' }] });
  });

  it('G66: include a text that the canonical request has only as an identifier', () => {
    expect(textsOf({ id: 'x', title: 'x' }, { id: 'x' })).to.deep.equal({ title: 'x' });
  });

  it('G66: include names of properties', () => {
    expect(textsOf({ schema: { properties: { plan: { type: 'string' } } } })).to.deep.equal({
      schema: { properties: { plan: null } },
    });
  });

  it('are read from the body once, when a hook reads them', () => {
    let reads = 0;
    const body = Object.defineProperty({}, 'title', { enumerable: true, get: () => `Plan ${++reads}` });
    const { shown } = shownOf(body);
    expect([shown.model, reads]).to.deep.equal(['m', 0]);
    expect([shown.native_texts, shown.native_texts, reads]).to.deep.equal([
      { title: 'Plan 1' },
      { title: 'Plan 1' },
      1,
    ]);
  });

  it('are ignored for a request that no vendor gets in its own format', () => {
    const { request, shown } = shownOf({ title: 'Plan' }, {}, false);
    expect(shown).to.equal(request);
  });

  it('G66: keep the body if a hook changes other fields, but not if it changes or removes the texts', () => {
    const { shown } = shownOf({ title: 'Plan' });
    const { native_texts: _texts, ...rest } = shown;
    const reported = [{ ...shown, user: 'ann' }, { ...shown, native_texts: { title: '***' } }, rest];
    expect(reported.map((prepared) => withoutNativeTexts(shown, prepared))).to.deep.equal([
      { request: { ...rest, user: 'ann' }, isNative: true },
      { request: rest, isNative: false },
      { request: rest, isNative: false },
    ]);
  });

  it('have places in the body', () => {
    expect(['native_texts.blocks[1].title', 'messages[0].content'].map(placeInBody)).to.deep.equal([
      'blocks[1].title',
      undefined,
    ]);
  });
});
