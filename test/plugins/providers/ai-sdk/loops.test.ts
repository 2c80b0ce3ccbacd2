import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { expect } from 'chai';
import type OpenAI from 'openai';
import { partOf } from '../../../support/generated-cases.ts';
import type { ScriptedOutput } from '../../../support/vendors/vendor-wires.ts';
import { type AiRig, PACKAGES, respondAs, startAi } from './rig.ts';

const CALLING: ScriptedOutput = {
  pieces: [
    { reasoning: 'Let me look.', signature: 'c2lnbmVk' },
    { call: 'look', id: 'toolu_1', arguments: '{"at":"x"}', signature: 'Y2FsbGVk' },
    { call: 'look', id: 'toolu_2', arguments: '{"at":"y"}' },
  ],
};
const DONE: ScriptedOutput = { pieces: [{ text: 'Both are fine.' }] };
const PARAMETERS = { type: 'object' as const, properties: { at: { type: 'string' } } };

/** Completes a loop with two calls by a client of a vendor; returns the text at its end. */
const CLIENTS: Readonly<Record<string, (rig: AiRig) => Promise<string | null | undefined>>> = {
  async openai({ gateway }) {
    const client = gateway.openai();
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Look at x and y.' }];
    const body = {
      model: 'acme/m-1',
      tools: [{ type: 'function', function: { name: 'look', parameters: PARAMETERS } }],
    };
    const first = await client.chat.completions.stream({ ...body, messages } as never).finalMessage();
    const results = (first.tool_calls ?? []).map(({ id }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: 'fine',
    }));
    const last = await client.chat.completions
      .stream({ ...body, messages: [...messages, first, ...results] } as never)
      .finalMessage();
    return last.content;
  },
  async anthropic({ gateway }) {
    const client = new Anthropic({ apiKey: gateway.key, baseURL: gateway.url, maxRetries: 0 });
    const body = { model: 'acme/m-1', max_tokens: 2000, tools: [{ name: 'look', input_schema: PARAMETERS }] };
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Look at x and y.' }];
    const first = await client.messages.stream({ ...body, messages }).finalMessage();
    const results = first.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'fine' }] : [],
    );
    const last = await client.messages
      .stream({ ...body, messages: [...messages, first, { role: 'user', content: results }] })
      .finalMessage();
    return last.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  },
  async google({ gateway }) {
    const headers = { authorization: `Bearer ${gateway.key}` };
    const client = new GoogleGenAI({ apiKey: gateway.key, httpOptions: { baseUrl: gateway.url, headers } });
    const config = {
      thinkingConfig: { includeThoughts: true },
      tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: PARAMETERS }] }],
    };
    const contents: { role: string; parts: object[] }[] = [{ role: 'user', parts: [{ text: 'Look at x and y.' }] }];
    const parts: { functionCall?: { id?: string; name?: string } }[] = [];
    for await (const piece of await client.models.generateContentStream({ model: 'acme/m-1', contents, config }))
      parts.push(...(piece.candidates?.[0]?.content?.parts ?? []));
    const results = parts.flatMap(({ functionCall: call }) =>
      call ? [{ functionResponse: { id: call.id, name: call.name, response: { output: 'fine' } } }] : [],
    );
    contents.push({ role: 'model', parts }, { role: 'user', parts: results });
    let text = '';
    for await (const piece of await client.models.generateContentStream({ model: 'acme/m-1', contents, config }))
      text += piece.text ?? '';
    return text;
  },
};

// In the quick tests one half of the packages; `chat.test.ts` runs the other.
for (const [name, { wire, mark, refuses = [] }] of partOf(Object.entries(PACKAGES), 0, 2))
  describe(`a streamed tool loop by ${name}`, () => {
    let rig: AiRig;
    before(async () => {
      rig = await startAi(name);
    });
    after(() => rig.stop());

    for (const [client, complete] of Object.entries(CLIENTS))
      if (refuses.includes('tool results'))
        it(`44: is refused for the client of ${client}, since the package ignores results`, async () => {
          rig.vendor.script(respondAs(wire, CALLING), respondAs(wire, DONE));
          const error: unknown = await complete(rig).catch((thrown: unknown) => thrown);
          expect(error).to.be.instanceOf(Error);
          expect((error as { status?: number }).status).to.equal(404);
          expect(String(error)).to.include('results of tools');
        });
      else
        it(`44: completes with the client of ${client}`, async () => {
          rig.vendor.script(respondAs(wire, CALLING), respondAs(wire, DONE));
          expect(await complete(rig)).to.equal('Both are fine.');
          const sent = JSON.stringify(rig.sent());
          expect(sent.match(/fine/g), sent).to.have.length(2);
          if (mark !== undefined) expect(sent, sent).to.include(mark);
        });
  });
