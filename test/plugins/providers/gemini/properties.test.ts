import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isGatewayError } from '../../../../contract/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import { geminiStream } from '../../../../plugins/formats/google/read-stream.ts';
import { geminiTraits } from '../../../../plugins/formats/google/tables.ts';
import type { GeminiContent, GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest } from '../../../../plugins/formats/google/write-request.ts';
import { chatRequests } from '../../../support/formats/chat-arbitraries.ts';
import { codecCall } from '../../../support/formats/codec.ts';

const MODELS = [
  'gemma-3-27b-it',
  'gemini-2.0-flash',
  'gemini-2.5-pro',
  'gemini-3.8-flash',
  'gemini-4-hydrogen',
] as const;

const calls = (content: GeminiContent): number => content.parts.filter((part) => part.functionCall).length;
const results = (content: GeminiContent): number => content.parts.filter((part) => part.functionResponse).length;

/** Rules whose violation the vendor rejects with a 400. */
function check(body: GeminiRequest, model: string): void {
  const traits = geminiTraits(model);
  assert.ok(body.contents.length > 0);
  assert.equal(body.contents[0]?.role, 'user');
  assert.equal(body.contents.at(-1)?.role, 'user');
  body.contents.forEach((content, index) => {
    const before = body.contents[index - 1];
    assert.ok(content.parts.length > 0);
    if (content.role === 'model') assert.equal(before?.role, 'user');
    assert.equal(results(content), content.role === 'user' && before ? calls(before) : 0);
    for (const part of content.parts) {
      assert.notEqual(part.text, '');
      const id = part.functionCall?.id ?? part.functionResponse?.id ?? 'x';
      assert.match(id, /^[A-Za-z0-9_-]{1,64}$/);
    }
    if (traits.signatures && calls(content) > 0) {
      assert.ok(content.parts.find((part) => part.functionCall)?.thoughtSignature);
    }
  });
  const config = body.generationConfig ?? {};
  const mode = body.toolConfig?.functionCallingConfig.mode;
  if (!traits.systemInstruction) assert.equal(body.systemInstruction, undefined);
  if (!traits.penalties) assert.ok(!('frequencyPenalty' in config) && !('presencePenalty' in config));
  if (body.toolConfig) assert.ok(body.tools);
  if (config['responseMimeType']) assert.ok(!body.tools || (traits.jsonWithTools && mode !== 'ANY'));
  assert.ok(!/"(pattern|minLength|const|allOf|\$schema)":(?!\{)/.test(JSON.stringify(body.tools ?? [])));
}

describe('gemini requests of any kind', () => {
  for (const model of MODELS) {
    it(`are valid for ${model}, or are refused by name`, () => {
      fc.assert(
        fc.property(chatRequests, fc.boolean(), (request, stream) => {
          const before = JSON.stringify(request);
          try {
            check(geminiRequest(request, codecCall({ model, stream })).body as GeminiRequest, model);
          } catch (error) {
            if (!isGatewayError(error)) throw error;
            assert.equal(error.code, 'invalid_request');
            assert.ok(error.param);
          }
          assert.equal(JSON.stringify(request), before);
        }),
      );
    });
  }
});

describe('gemini answers of any kind', () => {
  it('become a completion or a provider error, never an exception', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        try {
          geminiResponse({ candidates: body, usageMetadata: body }, codecCall());
          geminiResponse(body, codecCall());
        } catch (error) {
          assert.equal((error as Error).name, 'StreamFailure');
        }
      }),
    );
  });

  it('in streams become chunks or a provider error, never an exception', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (bodies) => {
        const decoder = geminiStream(codecCall());
        try {
          for (const candidates of bodies) {
            decoder.push({ data: JSON.stringify({ candidates }) });
            decoder.push({ data: JSON.stringify(candidates) });
          }
          decoder.end();
        } catch (error) {
          assert.equal((error as Error).name, 'StreamFailure');
        }
      }),
    );
  });
});
