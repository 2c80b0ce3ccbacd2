import { expect } from 'chai';
import type { ChatMessage, ChatRequest } from '../../../../contract/index.ts';
import type { GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest } from '../../../../plugins/formats/google/write-request.ts';
import { chatRequest, codecCall, user } from '../../../support/formats/codec.ts';

const MODEL = 'gemini-3.8-flash';

function translate(fields: Partial<ChatRequest>, model = MODEL): GeminiRequest {
  return geminiRequest(chatRequest(fields), codecCall({ model })).body as GeminiRequest;
}

function contents(messages: readonly ChatMessage[], model = MODEL): unknown {
  return translate({ messages }, model).contents;
}

describe('gemini parts', () => {
  const PNG = 'data:image/png;base64,iVBORw0KGgo=';
  for (const [title, part, expected] of [
    [
      'a data: image',
      { type: 'image_url', image_url: { url: PNG } },
      { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
    ],
    [
      'an image behind a URL',
      { type: 'image_url', image_url: { url: 'https://x.test/a.JPG?x=1' } },
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://x.test/a.JPG?x=1' } },
    ],
    [
      'a file of unknown type behind a URL',
      { type: 'image_url', image_url: { url: 'https://youtu.be/x' } },
      { fileData: { fileUri: 'https://youtu.be/x' } },
    ],
    [
      'sound',
      { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } },
    ],
    [
      'a PDF',
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
      { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
    ],
  ] as const) {
    it(`sends ${title}`, () => {
      expect(contents([user([part])])).to.deep.equal([{ role: 'user', parts: [expected] }]);
    });
  }

  for (const [title, part, param] of [
    [
      'plain http',
      { type: 'image_url', image_url: { url: 'http://x.test/a.png' } },
      'messages[0].content[0].image_url.url',
    ],
    [
      'a data: URL that is not base64',
      { type: 'image_url', image_url: { url: 'data:image/png,abc' } },
      'messages[0].content[0].image_url.url',
    ],
    [
      'an unknown kind of sound',
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'midi' } },
      'messages[0].content[0].input_audio.format',
    ],
    ['a file of OpenAI’s', { type: 'file', file: { file_id: 'file-1' } }, 'messages[0].content[0].file'],
    ['an unknown part', { type: 'hologram' }, 'messages[0].content[0].type'],
  ] as const) {
    it(`refuses ${title}`, () => {
      expect(() => contents([user([part])]))
        .to.throw()
        .with.property('param', param);
    });
  }
});
