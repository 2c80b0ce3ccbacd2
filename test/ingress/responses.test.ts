import { expect } from 'chai';
import { createResponse } from '../support/clients/responses-client.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { sayAnywhere } from '../support/vendors/responses-wire.ts';

const LOOKUP = {
  type: 'function',
  name: 'lookup',
  description: 'Looks up.',
  parameters: { type: 'object', properties: { q: { type: 'string' } } },
};
const PATCH = { type: 'custom', name: 'apply_patch', description: 'Edits files.' };
const INPUT = '*** Begin Patch\n+ "é" \\ 😀\n*** End Patch';

describe('POST /v1/responses', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  it('sends a whole tool loop to vendors with other formats', async () => {
    const input = [
      { role: 'user', content: [{ type: 'input_text', text: 'Find a.' }] },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'I look.' }],
        encrypted_content: 'tg1.a.b.c',
      },
      { type: 'function_call', call_id: 'call_one', name: 'lookup', arguments: '{"q":"a"}' },
      { type: 'custom_tool_call', call_id: 'call_two', name: 'apply_patch', input: INPUT },
      { type: 'function_call_output', call_id: 'call_one', output: 'found' },
      { type: 'custom_tool_call_output', call_id: 'call_two', output: 'patched' },
    ];
    sayAnywhere(rig, 'mistral', { pieces: [{ text: 'Done' }] });
    const { status } = await createResponse(rig, {
      model: MODEL_OF.mistral,
      instructions: 'Be brief.',
      input,
      tools: [LOOKUP, PATCH],
    });
    expect(status).to.equal(200);
    const { messages } = rig.lastBody<{ messages: Record<string, unknown>[] }>('mistral');
    expect(messages.map(({ role }) => role)).to.deep.equal(['system', 'user', 'assistant', 'tool', 'tool']);
    const [one, two] = (messages[2]?.['tool_calls'] ?? []) as { function: { name: string; arguments: string } }[];
    expect([one?.function.name, two?.function.name]).to.deep.equal(['lookup', 'apply_patch']);
    expect(JSON.parse(two?.function.arguments ?? '')).to.deep.equal({ input: INPUT });
    sayAnywhere(rig, 'anthropic', { pieces: [{ text: 'Done' }] });
    expect((await createResponse(rig, { model: MODEL_OF.anthropic, input, tools: [LOOKUP, PATCH] })).status).to.equal(
      200,
    );
  });
});
