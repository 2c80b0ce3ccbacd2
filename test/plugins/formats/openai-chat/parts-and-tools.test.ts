import { expect } from 'chai';
import type { ChatRequest } from '../../../../contract/index.ts';
import { loadProviders } from '../../../support/plugins/all-providers.ts';

const PROVIDERS = await loadProviders();
const SOUND = { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } };
const VIDEO = { type: 'video_url', video_url: { url: 'https://example.org/v.mp4' } };
const toolOf = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });
const CHOICE = { mode: 'required', tools: [{ type: 'function', function: { name: 'look' } }] };

/** Request that a vendor receives, or `param` of its rejection. */
function sentBy(vendor: string, extra: object): Readonly<Record<string, unknown>> | string {
  const provider = PROVIDERS.find(({ name }) => name === vendor)?.provider;
  const model = 'some-model';
  const request = { model, messages: [{ role: 'user', content: 'Hi' }], ...extra } as unknown as ChatRequest;
  try {
    return provider?.chat?.request(request, { model, stream: false, created: 0, id: 'x', request }).body as Readonly<
      Record<string, unknown>
    >;
  } catch (error) {
    return (error as { readonly param?: string }).param ?? String(error);
  }
}

const requestWith = (part: object) => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hm?' }, part] }],
});

describe('parts and tools that not every vendor has', () => {
  for (const [vendor, sound, video] of [
    ['openai', true, false],
    ['mistral', true, false],
    ['openrouter', true, true],
    ['openai-compatible', true, true],
    ['deepseek', false, false],
    ['groq', false, false],
    ['ollama', false, false],
    ['xai', false, false],
  ] as const)
    it(`are ${sound ? 'sent to' : 'refused for'} ${vendor} as sound, and ${video ? 'sent' : 'refused'} as video (E20)`, () => {
      for (const [part, isTaken] of [
        [SOUND, sound],
        [VIDEO, video],
      ] as const) {
        const sent = sentBy(vendor, requestWith(part));
        if (isTaken) expect(JSON.stringify(sent)).to.include(JSON.stringify(part));
        else expect(sent).to.equal('messages[0].content[1].type');
      }
    });

  it('are functions only if a vendor supports no other tools (E20)', () => {
    const tools = [toolOf('look'), { type: 'custom', custom: { name: 'patch' } }];
    expect(sentBy('openai', { tools })).to.have.property('tools').with.length(2);
    for (const vendor of ['groq', 'xai', 'together'])
      expect(sentBy(vendor, { tools }), vendor).to.equal('tools[1].type');
  });

  it('are those in `allowed_tools` if a vendor does not support the choice (E20)', () => {
    const request = {
      tools: [toolOf('look'), toolOf('send')],
      tool_choice: { type: 'allowed_tools', allowed_tools: CHOICE },
    };
    expect(sentBy('openai', request)).to.deep.include(request);
    for (const vendor of ['groq', 'xai', 'openrouter'])
      expect(sentBy(vendor, request), vendor).to.deep.include({ tools: [toolOf('look')], tool_choice: 'required' });
  });
});
