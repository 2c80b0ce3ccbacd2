import { expect } from 'chai';
import { partOf } from '../../../support/generated-cases.ts';
import { respondWith } from '../../../support/vendors/scripted-upstream.ts';
import type { ScriptedOutput } from '../../../support/vendors/vendor-wires.ts';
import { type AiRig, KEY, PACKAGES, respondAs, startAi } from './rig.ts';

const CALLS: ScriptedOutput = {
  pieces: [
    { reasoning: 'I look at both.', signature: 'c2lnbmVk' },
    { text: 'One moment.' },
    { call: 'sales', id: 'call_1', arguments: '{"day":"mon"}' },
    { call: 'stock', id: 'call_2', arguments: '{"day":"tue"}' },
  ],
  usage: { prompt: 100, completion: 40, cached: 60 },
};
const TOOLS = ['sales', 'stock'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { day: { type: 'string' } } } },
}));
const REQUEST = { model: 'acme/m-1', messages: [{ role: 'user', content: 'Sales and stock?' }], tools: TOOLS };

interface Message {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[];
}

// In the quick tests one half of the packages; `loops.test.ts` runs the other.
for (const [name, { wire, key, refuses = [], ignores = [], lacks = {} }] of partOf(Object.entries(PACKAGES), 1, 2))
  describe(`the package ${name}`, () => {
    let rig: AiRig;
    before(async () => {
      rig = await startAi(name);
    });
    after(() => rig.stop());

    for (const stream of [false, true])
      it(`gives text, reasoning, parallel calls, usage and the bill${stream ? ' of a stream' : ''}`, async () => {
        rig.vendor.script(respondAs(wire, CALLS));
        const response = await rig.gateway.openai().chat.completions.create({
          ...REQUEST,
          stream: stream as false,
          ...(stream && { stream_options: { include_usage: true } }),
        } as never);
        const said: { message: Message; finish: unknown; usage: unknown; id: unknown } = stream
          ? await gather(response as never)
          : whole(response as never);
        expect(said.message.content).to.equal('One moment.');
        expect(said.message.reasoning_content).to.equal('I look at both.');
        expect(
          said.message.tool_calls?.map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
        ).to.deep.equal([
          ['sales', { day: 'mon' }],
          ['stock', { day: 'tue' }],
        ]);
        expect(said.finish).to.equal('tool_calls');
        expect(said.usage).to.deep.include({ prompt_tokens: 100, completion_tokens: 40 });
        const isCached = lacks['cached tokens'] === undefined;
        if (isCached) expect(said.usage).to.have.nested.property('prompt_tokens_details.cached_tokens', 60);
        expect(rig.vendor.requests.at(-1)?.headers[key[0]]).to.equal(key[1] + KEY);
        // 40 new, 60 cached and 40 written tokens, or 100 new ones.
        const [line] = rig.gateway.logs.filter(({ msg }) => msg === 'request').slice(-1);
        expect(line).to.deep.include({ provider: 'acme', cost_usd: isCached ? '0.00015' : '0.00018', outcome: 'ok' });
      });

    it('takes images, tool results and limits', async () => {
      rig.vendor.script(respondAs(wire, { pieces: [{ text: 'Done' }] }));
      const response = await rig.gateway.post('/v1/chat/completions', {
        ...REQUEST,
        messages: [
          { role: 'developer', content: 'Be brief.' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'See' },
              { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
            ],
          },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'sales', arguments: '{"day":"mon"}' } }],
          },
          { role: 'tool', tool_call_id: 'call_1', content: '{"total":3}' },
        ],
        ...{ max_completion_tokens: 50, temperature: 0.5, stop: 'END' },
      });
      const text = await response.text();
      if (refuses.includes('tool results')) {
        expect([response.status, text.includes('results of tools')], text).to.deep.equal([404, true]);
        return;
      }
      expect(response.status, text).to.equal(200);
      const sent = JSON.stringify(rig.sent());
      const dropped = response.headers.get('x-tollgate-dropped')?.split(', ') ?? [];
      expect(dropped).to.include.members(ignores);
      const END = ignores.includes('stop') ? [] : ['END'];
      for (const part of ['Be brief.', 'iVBORw0KGgo=', 'total', '"sales"', ...END, '50']) expect(sent).to.include(part);
    });

    it('passes on errors with the time of a retry', async () => {
      const error = { error: { type: 'rate_limit_error', message: 'Slow down' } };
      rig.vendor.script(({ send }) => send(respondWith(429, error, { 'retry-after': '7' })));
      const response = await rig.gateway.post('/v1/chat/completions', { ...REQUEST, stream: true });
      expect([response.status, response.headers.get('retry-after')]).to.deep.equal([429, '7']);
      expect(await response.json()).to.have.nested.property('error.code', 'upstream_rate_limited');
    });

    it('gets a schema for its response, or is refused', async () => {
      rig.vendor.script(respondAs(wire, { pieces: [{ text: '{"day":"mon"}' }] }));
      const schema = {
        type: 'object',
        properties: { weekday: { type: 'string' } },
        required: ['weekday'],
        additionalProperties: false,
      };
      const response = await rig.gateway.post('/v1/chat/completions', {
        ...{ model: 'acme/m-1', messages: REQUEST.messages },
        response_format: { type: 'json_schema', json_schema: { name: 'day', schema, strict: true } },
      });
      const text = await response.text();
      if (refuses.includes('schema'))
        expect([response.status, text.includes('response_format')], text).to.deep.equal([404, true]);
      else expect([response.status, JSON.stringify(rig.sent()).includes('weekday')], text).to.deep.equal([200, true]);
    });
  });

function whole(response: { id: unknown; choices: { message: Message; finish_reason: unknown }[]; usage: unknown }) {
  const [choice] = response.choices;
  return { id: response.id, message: choice?.message ?? {}, finish: choice?.finish_reason, usage: response.usage };
}

interface Chunk {
  readonly id: string;
  readonly usage?: unknown;
  readonly choices: readonly {
    readonly finish_reason: string | null;
    readonly delta: Message & {
      readonly tool_calls?: readonly { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
  }[];
}

/** Joins a stream as clients do. */
async function gather(stream: AsyncIterable<Chunk>) {
  let [content, reasoning, id, finish, usage]: [string, string, unknown, unknown, unknown] = [
    '',
    '',
    '',
    '',
    undefined,
  ];
  const calls: { id: string; function: { name: string; arguments: string } }[] = [];
  for await (const chunk of stream) {
    id = chunk.id;
    usage = chunk.usage ?? usage;
    const [choice] = chunk.choices;
    if (!choice) continue;
    finish = choice.finish_reason ?? finish;
    content += choice.delta.content ?? '';
    reasoning += choice.delta.reasoning_content ?? '';
    for (const call of choice.delta.tool_calls ?? []) {
      const found = calls[call.index] ?? { id: call.id ?? '', function: { name: '', arguments: '' } };
      calls[call.index] = found;
      found.function.name += call.function?.name ?? '';
      found.function.arguments += call.function?.arguments ?? '';
    }
  }
  return { id, message: { content, reasoning_content: reasoning, tool_calls: calls }, finish, usage };
}
