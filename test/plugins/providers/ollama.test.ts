import { expect } from 'chai';
import ollama from '../../../plugins/providers/ollama.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { translate } from '../../support/formats/translate.ts';

const one = { type: 'function', function: { name: 'one' } };
const two = { type: 'function', function: { name: 'two' } };

describe('ollama', () => {
  for (const [title, choice, tools, dropped] of [
    ['leaves the tools out for none', 'none', undefined, []],
    ['keeps the tools for auto', 'auto', [one, two], []],
    ['offers only the named tool', { type: 'function', function: { name: 'two' } }, [two], ['tool_choice']],
    ['cannot force a tool, and says so', 'required', [one, two], ['tool_choice']],
    [
      'keeps the tools when the named one is not there',
      { type: 'function', function: { name: 'x' } },
      [one, two],
      ['tool_choice'],
    ],
  ] as const) {
    it(title, () => {
      const sent = translate(ollama, { tools: [one, two], tool_choice: choice });
      expect(sent.body['tools']).to.deep.equal(tools);
      expect(sent.body).not.to.have.property('tool_choice');
      expect(sent.dropped).to.deep.equal(dropped);
    });
  }

  it('refuses images by URL, because no one would fetch them, and names the place', () => {
    const content = [
      { type: 'text', text: 'x' },
      { type: 'image_url', image_url: { url: 'https://x.example/a.png' } },
    ];
    expect(() => translate(ollama, { messages: [{ role: 'user', content }] }))
      .to.throw('only as `data:` URLs')
      .that.includes({ param: 'messages[0].content[1].image_url.url' });
  });

  it('needs no key and waits long for the first byte, while a model is read from disk', () => {
    const { credential, timeouts } = setUpProvider(ollama, {});
    expect(credential?.required).to.equal(false);
    expect(timeouts).to.deep.equal({ firstByteMs: 300_000 });
    expect(setUpProvider(ollama, { timeouts: { firstByte: '5s' } }).timeouts).to.deep.equal({ firstByteMs: 5000 });
  });
});
