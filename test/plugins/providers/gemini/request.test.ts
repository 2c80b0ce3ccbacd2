import { expect } from 'chai';

import { geminiRequest, modelPath } from '../../../../plugins/formats/google/write-request.ts';
import { chatRequest, codecCall } from '../../../support/formats/codec.ts';

const MODEL = 'gemini-3.8-flash';

describe('gemini requests', () => {
  it('requests a stream of server-sent events, which the vendor sends only with alt=sse', () => {
    const { path } = geminiRequest(chatRequest(), codecCall({ model: MODEL, stream: true }));
    expect(path).to.equal('/models/gemini-3.8-flash:streamGenerateContent?alt=sse');
  });

  for (const [model, path] of [
    ['gemini-2.5-pro', '/models/gemini-2.5-pro'],
    ['models/gemini-2.5-pro', '/models/gemini-2.5-pro'],
    ['tunedModels/mine-1', '/tunedModels/mine-1'],
    ['a b?x=1#y:z', '/models/a%20b%3Fx%3D1%23y%3Az'],
  ] as const) {
    it(`writes the model "${model}" into the path as ${path}`, () => {
      expect(modelPath(model)).to.equal(path);
    });
  }

  for (const model of ['../v1/files', 'models/../x', 'a//b', './x']) {
    it(`refuses the model name "${model}", which would leave its place in the path`, () => {
      expect(() => modelPath(model))
        .to.throw('model')
        .with.property('param', 'model');
    });
  }
});
