import { expect } from 'chai';
import type { Plugin } from '../../../contract/index.ts';
import cerebras from '../../../plugins/providers/cerebras.ts';
import fireworks from '../../../plugins/providers/fireworks.ts';
import lmstudio from '../../../plugins/providers/lmstudio.ts';
import moonshot from '../../../plugins/providers/moonshot.ts';
import vllm from '../../../plugins/providers/vllm.ts';
import zai from '../../../plugins/providers/zai.ts';
import { translate } from '../../support/formats/translate.ts';

const TOOLS = [{ type: 'function', function: { name: 'f' } }];
const GONE = undefined;

type Row = readonly [plugin: Plugin<object, 'provider'>, given: object, sent: object, dropped?: readonly string[]];

/** Fields of a caller, and the fields that the vendor receives. */
const ROWS: readonly Row[] = [
  [cerebras, { model: 'gpt-oss-120b', reasoning_effort: 'none' }, { reasoning_effort: 'low' }],
  [cerebras, { model: 'qwen-3.8-27b', reasoning_effort: 'none' }, { reasoning_effort: 'none' }],
  [cerebras, { max_tokens: 9 }, { max_completion_tokens: 9, max_tokens: GONE }],
  [cerebras, { frequency_penalty: 1 }, { frequency_penalty: GONE }, ['frequency_penalty']],
  [fireworks, { reasoning_effort: 'xhigh', max_completion_tokens: 9 }, { reasoning_effort: 'high', max_tokens: 9 }],
  [fireworks, { echo: true }, { echo: GONE }, ['echo']],
  [moonshot, { model: 'kimi-k3.1-pro', reasoning_effort: 'medium' }, { reasoning_effort: 'high' }],
  [moonshot, { model: 'kimi-k3', reasoning_effort: 'none' }, { reasoning_effort: 'low' }],
  [moonshot, { model: 'kimi-k2.6', reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
  [moonshot, { model: 'kimi-k2.7-code', reasoning_effort: 'none' }, { thinking: GONE }, ['reasoning_effort']],
  [moonshot, { model: 'kimi-k3', temperature: 0.5 }, { temperature: GONE }, ['temperature']],
  [moonshot, { model: 'moonshot-v1-128k', temperature: 0.5, n: 2 }, { temperature: 0.5, n: 2 }],
  [moonshot, { model: 'kimi-k2.6', tools: TOOLS, tool_choice: 'required' }, { tool_choice: 'auto' }, ['tool_choice']],
  [moonshot, { model: 'kimi-k3', tools: TOOLS, tool_choice: 'required' }, { tool_choice: 'required' }],
  [zai, { model: 'glm-5.3', reasoning_effort: 'medium' }, { reasoning_effort: 'high' }],
  [zai, { model: 'glm-4.7', reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
  [zai, { model: 'glm-4.7', reasoning_effort: 'high' }, { reasoning_effort: GONE }, ['reasoning_effort']],
  [zai, { tools: TOOLS, tool_choice: 'none' }, { tools: GONE, tool_choice: GONE }],
  [zai, { tools: TOOLS, tool_choice: 'required' }, { tool_choice: 'auto' }, ['tool_choice']],
  [zai, { user: 'anna', stop: 'END' }, { user_id: 'anna', stop: ['END'] }],
  [vllm, { reasoning_effort: 'xhigh', structured_outputs: { choice: ['a'] } }, { reasoning_effort: 'xhigh' }],
  [vllm, { structured_outputs: { choice: ['a'] } }, { structured_outputs: { choice: ['a'] } }],
  [
    lmstudio,
    { response_format: { type: 'json_object' } },
    { response_format: { type: 'json_schema', json_schema: { name: 'object', schema: { type: 'object' } } } },
  ],
  [lmstudio, { response_format: { type: 'text' }, ttl: 60 }, { response_format: { type: 'text' }, ttl: 60 }],
];

describe('vendors of open models', () => {
  for (const [plugin, given, sent, reported = []] of ROWS)
    it(`${plugin.name} gets ${JSON.stringify(sent)} of ${JSON.stringify(given)}`, () => {
      const { body, dropped = [] } = translate(plugin, given);
      for (const [field, value] of Object.entries(sent)) expect(body[field], field).to.deep.equal(value);
      expect(dropped).to.deep.equal(reported);
    });

  it('kimi gets thinking with each earlier response, an empty one if the caller dropped it; moonshot-v1 does not', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Yes?' },
      { role: 'user', content: 'Go on' },
    ] as const;
    const sent = (model: string) => JSON.stringify(translate(moonshot, { model, messages }).body['messages']);
    expect(sent('kimi-k3')).to.include('"reasoning_content":""');
    expect(sent('moonshot-v1-8k')).to.not.include('reasoning_content');
  });
});
