import { expect } from 'chai';
import {
  chatBody,
  type Draft,
  draftOfRequest,
  EMPTY_DRAFT,
  linkText,
  readLink,
  sampleOf,
} from '../../../plugins/console/app/playground-draft.ts';

const IMAGE = 'data:image/gif;base64,R0lGOD';
const DRAFT: Draft = {
  models: ['north/m', 'south/m'],
  system: 'Be brief.',
  turns: [
    { role: 'user', text: 'Größe? שלום', images: [] },
    { role: 'assistant', text: '7 cm', images: [] },
  ],
  prompt: 'And the weight?',
  images: [],
  tools: '[{ "name": "look_up" }]',
  schema: '{ "type": "object" }',
  parameters: { temperature: '0.2', stop: 'END', seed: '' },
};

describe('a request of the playground', () => {
  it('has the conversation, parameters, tools and the schema in OpenAI’s format', () => {
    expect(chatBody(DRAFT, 'north/m')).to.deep.equal({
      model: 'north/m',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Größe? שלום' },
        { role: 'assistant', content: '7 cm' },
        { role: 'user', content: 'And the weight?' },
      ],
      temperature: 0.2,
      stop: ['END'],
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } },
      tools: [{ type: 'function', function: { name: 'look_up' } }],
      stream: true,
    });
  });

  it('has the fields of Anthropic’s format as sample code', () => {
    const code = sampleOf(DRAFT, 'Anthropic SDK', 'http://gateway');
    expect(code).to.include('"stop_sequences"').and.to.include('"output_config"').and.to.include('"max_tokens": 1024');
    expect(sampleOf({ ...DRAFT, parameters: { max_tokens: '9' } }, 'Anthropic SDK', '')).to.include('"max_tokens": 9');
  });

  it('explains a schema and tools that are not JSON', () => {
    expect(() => chatBody({ ...DRAFT, schema: '{' }, 'm')).to.throw('The schema is not JSON');
    expect(() => chatBody({ ...DRAFT, tools: '{' }, 'm')).to.throw('The tools are not JSON');
  });

  it('is the same after a link', () => {
    expect(readLink(linkText(DRAFT))).to.deep.equal(DRAFT);
  });

  it('has neither images nor keys in a link', () => {
    const key = `tg_${'a'.repeat(12)}_${'b'.repeat(49)}`;
    const text = linkText({
      ...DRAFT,
      images: [IMAGE],
      prompt: `my key is ${key}`,
      system: 'sk-proj-0123456789abcdef01',
    });
    const read = readLink(text);
    expect([read.images, read.prompt, read.system]).to.deep.equal([[], 'my key is …', '…']);
  });

  it('is bounded in models, and refuses a link that is cut', () => {
    expect(readLink(linkText({ ...DRAFT, models: ['a', 'b', 'c', 'd'] })).models).to.deep.equal(['a', 'b', 'c']);
    expect(() => readLink(linkText(DRAFT).slice(0, -9))).to.throw('The link is incomplete');
    expect(readLink(btoa('{"models":7,"turns":[["system","x"],3],"parameters":[]}'))).to.deep.equal({
      ...EMPTY_DRAFT,
      prompt: '',
    });
  });

  it('is filled from a stored request', () => {
    const request = chatBody({ ...DRAFT, images: [IMAGE] }, 'north/m');
    const draft = draftOfRequest(request, 'smart');
    expect(draft).to.deep.include({
      models: ['smart'],
      system: 'Be brief.',
      turns: DRAFT.turns,
      prompt: 'And the weight?',
      images: [IMAGE],
      parameters: { temperature: '0.2', stop: 'END' },
    });
    expect(JSON.parse(draft.schema)).to.deep.equal({ type: 'object' });
    expect(draftOfRequest(undefined, 'smart').prompt).to.equal('');
  });
});
