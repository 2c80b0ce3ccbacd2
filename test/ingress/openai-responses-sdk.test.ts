import { expect } from 'chai';
import OpenAI from 'openai';
import type { ResponseInputItem, Tool } from 'openai/resources/responses/responses';
import { type IngressRig, MODEL_OF, startIngressRig, type Wire } from '../support/gateways/ingress-rig.ts';
import { sayAnywhere } from '../support/vendors/responses-wire.ts';
import type { Piece } from '../support/vendors/vendor-wires.ts';

const LOOKUP: Tool = {
  type: 'function',
  name: 'lookup',
  parameters: { type: 'object', properties: {} },
  strict: false,
};
const PATCH: Tool = { type: 'custom', name: 'apply_patch' };
const SEARCH: Tool = {
  type: 'tool_search',
  execution: 'client',
  description: 'Searches for tools.',
  parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
};
const READ = {
  type: 'function',
  name: 'read',
  description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
  strict: false,
  defer_loading: true,
} as const;

describe('the official OpenAI SDK’s responses', () => {
  let rig: IngressRig;
  let openai: OpenAI;
  before(async () => {
    rig = await startIngressRig();
    openai = rig.gateway.openai();
  });
  after(() => rig.stop());

  for (const wire of ['openai', 'anthropic', 'gemini', 'mistral'] as const satisfies readonly Wire[]) {
    const model = MODEL_OF[wire];

    it(`are created without a stream (${wire})`, async () => {
      sayAnywhere(rig, wire, { pieces: [{ text: 'Hello' }] });
      const response = await openai.responses.create({ model, input: 'Hi', store: false });
      expect(response.output_text).to.equal('Hello');
      expect(response.usage?.total_tokens).to.equal(25);
    });

    it(`are streamed, and combined (${wire})`, async () => {
      const pieces = [{ text: 'I look.' }, { call: 'lookup', id: 'call_one', arguments: '{"a":1}' }];
      sayAnywhere(rig, wire, { pieces });
      const stream = openai.responses.stream({ model, input: 'Hi', tools: [LOOKUP], store: false });
      let text = '';
      for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta;
      const { output, status } = await stream.finalResponse();
      expect(text).to.equal('I look.');
      expect(status).to.equal('completed');
      expect(output.map(({ type }) => type)).to.deep.equal(['message', 'function_call']);
      expect(output[1]).to.include({ name: 'lookup', arguments: '{"a":1}' });
    });

    it(`are parsed if they follow a schema (${wire})`, async () => {
      sayAnywhere(rig, wire, { pieces: [{ text: '{"a":1}' }] });
      const schema = {
        type: 'object',
        properties: { a: { type: 'integer' } },
        required: ['a'],
        additionalProperties: false,
      };
      const text = { format: { type: 'json_schema', name: 'thing', schema, strict: true } } as const;
      const response = await openai.responses.parse({ model, input: 'Hi', text, store: false });
      expect(JSON.parse(response.output_text)).to.deep.equal({ a: 1 });
    });

    it(`complete a tool loop with their previous output (${wire})`, async () => {
      const input: ResponseInputItem[] = [{ role: 'user', content: 'Edit it.' }];
      const args = JSON.stringify({ input: '*** Begin' });
      sayAnywhere(rig, wire, {
        pieces: [{ reasoning: 'Hm' }, { call: 'apply_patch', id: 'call_one', arguments: args }],
        custom: ['apply_patch'],
        encrypted: 'secret',
      });
      const include = ['reasoning.encrypted_content'] as const;
      const first = await openai.responses.create({
        model,
        input,
        tools: [PATCH],
        include: [...include],
        store: false,
      });
      const call = first.output.find((item) => item.type === 'custom_tool_call');
      expect(call?.input).to.equal('*** Begin');
      input.push(...(first.output as ResponseInputItem[]), {
        type: 'custom_tool_call_output',
        call_id: call?.call_id ?? '',
        output: 'ok',
      });
      sayAnywhere(rig, wire, { pieces: [{ text: 'Done' }] });
      const second = await openai.responses.create({
        model,
        input,
        tools: [PATCH],
        include: [...include],
        store: false,
      });
      expect(second.output_text).to.equal('Done');
    });
  }

  for (const wire of ['anthropic', 'gemini', 'mistral'] as const)
    for (const stream of [false, true])
      it(`complete a loop with tools that the caller searches (${wire}${stream ? ', streamed' : ''})`, async () => {
        const body = { model: MODEL_OF[wire], tools: [SEARCH], store: false };
        const input: ResponseInputItem[] = [{ role: 'user', content: 'Read it.' }];
        const respond = async (pieces: readonly Piece[]) => {
          sayAnywhere(rig, wire, { pieces });
          if (!stream) return await openai.responses.create({ ...body, input });
          return await openai.responses.stream({ ...body, input }).finalResponse();
        };
        const first = await respond([{ call: 'tool_search', id: 'call_one', arguments: '{"query":"read a file"}' }]);
        const [search] = first.output;
        expect(search).to.include({ type: 'tool_search_call', execution: 'client', call_id: 'call_one' });
        expect(search).to.have.property('arguments').that.deep.equals({ query: 'read a file' });

        const found: ResponseInputItem = {
          type: 'tool_search_output',
          execution: 'client',
          call_id: 'call_one',
          tools: [{ type: 'namespace', name: 'files', description: 'Files.', tools: [READ] }],
        };
        input.push(...(first.output as ResponseInputItem[]), found);
        const second = await respond([{ call: 'files__read', id: 'call_two', arguments: '{"path":"a"}' }]);
        expect(second.output[0]).to.include({ type: 'function_call', name: 'read', namespace: 'files' });

        // A search that finds the same tool again.
        input.push(...(second.output as ResponseInputItem[]), {
          type: 'function_call_output',
          call_id: 'call_two',
          output: 'Hello',
        });
        input.push({ ...search, call_id: 'call_three' } as ResponseInputItem, { ...found, call_id: 'call_three' });
        const third = await respond([{ text: 'It says Hello.' }]);
        expect(third.output_text).to.equal('It says Hello.');
        const sent = JSON.stringify(rig.lastBody(wire));
        expect(sent).to.include('Reads a file.').and.include('read a file').and.include('tool_search');
      });

  it('are refused with the SDK’s own error classes', async () => {
    const refused = await openai.responses
      .create({ model: 'echo/nothing', input: 'Hi' })
      .catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(OpenAI.NotFoundError);
    const bad = await openai.responses
      .create({ model: 'echo/echo', input: 'Hi', max_output_tokens: -5 })
      .catch((error: unknown) => error);
    expect(bad)
      .to.be.instanceOf(OpenAI.BadRequestError)
      .and.to.include({ param: 'max_output_tokens', code: 'invalid_request' });
  });
});
