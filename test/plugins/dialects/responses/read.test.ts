import { expect } from 'chai';
import { bodyFactsOf } from '../../../../contract/facts.ts';
import { GatewayError } from '../../../../contract/index.ts';
import { RESPONSES_NATIVE as native } from '../../../../plugins/formats/openai-responses/native.ts';
import { readBody } from '../../../support/formats/responses-dialect.ts';

const messagesOf = (input: unknown) => readBody({ input }).request.messages;
const call = (id: string, name = 'f') => ({ type: 'function_call', call_id: id, name, arguments: '{"a":1}' });
const called = (id: string, name = 'f') => ({ id, type: 'function', function: { name, arguments: '{"a":1}' } });
const result = (id: string, output: unknown = 'ok') => ({ type: 'function_call_output', call_id: id, output });
const thought = (id: string, more: object = {}) => ({
  type: 'reasoning',
  id,
  summary: [{ type: 'summary_text', text: `about ${id}` }],
  ...more,
});
const said = (text: string) => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
});
const lookup = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } };

function refusalOf(body: object): GatewayError {
  try {
    readBody(body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('it was read');
}

describe('a request for a response, as a canonical one', () => {
  it('has the instructions first, then the input', () => {
    expect(readBody({ instructions: 'Be brief.' }).request.messages).to.deep.equal([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]);
  });

  it('keeps roles, and images and files as parts', () => {
    const content = [
      { type: 'input_text', text: 'See' },
      { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'original' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' },
      { type: 'input_file', file_url: 'https://a.example/c.pdf' },
      { type: 'image_url', image_url: { url: 'https://a.example/d.png' } },
    ];
    expect(
      messagesOf([
        { role: 'developer', content: 'Hm' },
        { type: 'message', role: 'user', content },
      ]),
    ).to.deep.equal([
      { role: 'developer', content: 'Hm' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'high' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
          { type: 'file', file: { file_url: 'https://a.example/c.pdf' } },
          { type: 'image_url', image_url: { url: 'https://a.example/d.png' } },
        ],
      },
    ]);
  });

  it('makes one turn of the calls that an assistant made at once, and a message of each result', () => {
    expect(
      messagesOf([
        said('Look'),
        call('a'),
        call('b'),
        result('a'),
        result('b', [
          { type: 'input_text', text: 'x' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==' },
        ]),
      ]),
    ).to.deep.equal([
      { role: 'assistant', content: 'Look', tool_calls: [called('a'), called('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'ok' },
      {
        role: 'tool',
        tool_call_id: 'b',
        content: [
          { type: 'text', text: 'x' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        ],
      },
    ]);
  });

  it('keeps reasoning with the item after it, and an unusual order', () => {
    const items = [
      thought('rs_1', { encrypted_content: 'tg1.x' }),
      said('First'),
      thought('rs_2'),
      call('a'),
      result('a'),
    ];
    const [turn] = messagesOf(items);
    expect(turn?.order).to.deep.equal(['reasoning:0', 'reasoning:1', 'content:0', 'reasoning:2', 'tool:0']);
    expect(turn?.reasoning_content).to.equal('about rs_1\n\nabout rs_2');
    expect(turn?.reasoning_details).to.deep.equal([
      { kind: 'summary', text: 'about rs_1', format: 'responses', id: 'rs_1' },
      { kind: 'encrypted', data: 'tg1.x', format: 'responses', id: 'rs_1' },
      { kind: 'summary', text: 'about rs_2', format: 'responses', id: 'rs_2' },
    ]);
  });

  it('drops trailing reasoning, and reports it', () => {
    const { request, dropped } = readBody({ input: [thought('rs_1'), { role: 'user', content: 'Hi' }] });
    expect(request.messages).to.deep.equal([{ role: 'user', content: 'Hi' }]);
    expect(dropped).to.deep.equal(['input.reasoning']);
  });

  it('returns the reasoning of another format to it, with its sealed signature', () => {
    const signed = thought('rs_1', { encrypted_content: 'tgr.anthropic..tg1.a.b.c' });
    const hidden = { type: 'reasoning', summary: [], encrypted_content: 'tgr.anthropic..tg1.d.e.f' };
    expect(messagesOf([signed, hidden, said('Hi')])[0]?.reasoning_details).to.deep.equal([
      { kind: 'text', text: 'about rs_1', data: 'tg1.a.b.c', format: 'anthropic' },
      { kind: 'encrypted', data: 'tg1.d.e.f', format: 'anthropic' },
    ]);
  });

  it('keeps refusals and phases of earlier answers', () => {
    const refused = {
      type: 'message',
      role: 'assistant',
      phase: 'final_answer',
      content: [{ type: 'refusal', refusal: 'No.' }],
    };
    expect(messagesOf([refused])).to.deep.equal([
      { role: 'assistant', content: null, refusal: 'No.', dialect_fields: { responses: { phase: 'final_answer' } } },
    ]);
  });

  it('describes actions of the vendor’s tools as text of at most 4 kB', () => {
    const short = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } };
    const long = { type: 'image_generation_call', id: 'ig_1', result: 'A'.repeat(5000) };
    const { request, dropped } = readBody({
      input: [short, long, { type: 'local_shell_call_output', id: 'o', output: 'done' }],
    });
    expect(request.messages).to.deep.equal([
      {
        role: 'assistant',
        content: '{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}',
      },
      { role: 'user', content: '{"type":"local_shell_call_output","output":"done"}' },
    ]);
    expect(dropped).to.deep.equal(['input.image_generation_call']);
  });

  it('maps every field that bounds or raises the cost, and the other ones that chat has', () => {
    const { request, dropped } = readBody({
      stream: true,
      max_output_tokens: 100,
      reasoning: { effort: 'high', summary: 'auto' },
      text: { verbosity: 'low', format: { type: 'json_schema', name: 'a', schema: { type: 'object' }, strict: true } },
      service_tier: 'flex',
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 3,
      parallel_tool_calls: false,
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      truncation: 'disabled',
      store: false,
      include: ['reasoning.encrypted_content'],
      client_metadata: { session: 'x' },
    });
    const { messages: _, model: __, ...fields } = request;
    expect(fields).to.deep.equal({
      temperature: 0.5,
      top_p: 0.9,
      parallel_tool_calls: false,
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      service_tier: 'flex',
      prompt_cache_key: 'k',
      stream: true,
      max_completion_tokens: 100,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' }, strict: true } },
      verbosity: 'low',
      reasoning_effort: 'high',
      logprobs: true,
      top_logprobs: 3,
      dialect_fields: { responses: { truncation: 'disabled', reasoning: { summary: 'auto' } } },
    });
    expect(dropped).to.deep.equal([]);
  });

  it('keeps unknown fields for vendors with the format, and reports them', () => {
    const { request, dropped } = readBody({
      context_management: [{ type: 'compaction' }],
      truncation: 'auto',
      max_tool_calls: 3,
    });
    expect(Object.keys(request.dialect_fields?.['responses'] ?? {})).to.deep.equal([
      'context_management',
      'truncation',
      'max_tool_calls',
    ]);
    expect(dropped).to.deep.equal(['context_management', 'truncation', 'max_tool_calls']);
  });

  it('treats null as missing', () => {
    const { request } = readBody({
      tools: null,
      tool_choice: null,
      text: null,
      reasoning: null,
      temperature: null,
      max_output_tokens: null,
      metadata: null,
    });
    expect(request).to.deep.equal({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
  });

  it('is refused if it runs in the background, and if it is empty', () => {
    expect(refusalOf({ background: true })).to.include({ code: 'invalid_request', param: 'background' });
    expect(refusalOf({ input: [] })).to.include({ code: 'invalid_request', param: 'input' });
  });
});

describe('the tools of a request for a response', () => {
  it('G42: convert a custom tool to a function with one string, with its grammar as text', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' };
    const { request } = readBody({ tools: [{ type: 'custom', name: 'apply_patch', description: 'Edits.', format }] });
    const [tool] = request.tools ?? [];
    expect(tool?.function.name).to.equal('apply_patch');
    expect(tool?.function.description).to.equal('Edits.\n\nThe input must follow this grammar (lark):\nstart: "a"');
    expect(tool?.function.parameters).to.have.property('required').that.deep.equals(['input']);
  });

  it('G43: unfold namespaces and additional tools, under names of at most 64 characters', () => {
    const long = 'x'.repeat(60);
    const tools = [
      {
        type: 'namespace',
        name: 'mail',
        description: 'Letters.',
        tools: [
          { ...lookup, description: 'Finds.' },
          { ...lookup, name: long },
        ],
      },
    ];
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'custom', name: 'exec' }] },
      { role: 'user', content: 'Hi' },
    ];
    const { request, place } = readBody({ tools, input });
    const names = request.tools?.map((tool) => tool.function.name) ?? [];
    expect(names[0]).to.equal('mail__f');
    expect(names[1])
      .to.match(/^mail__x{49}_[0-9a-f]{8}$/)
      .and.to.have.length(64);
    expect(names[2]).to.equal('exec');
    expect(request.tools?.[0]?.function.description).to.equal('Letters.\n\nFinds.');
    expect(place?.('tools[1].function.parameters')).to.equal('tools[0].tools[1].parameters');
    expect(place?.('tools[2].function.name')).to.equal('input[0].tools[0].name');
  });

  it('are refused if two would have the same name', () => {
    const tools = [
      { ...lookup, name: 'mail__f' },
      { type: 'namespace', name: 'mail', tools: [lookup] },
    ];
    expect(refusalOf({ tools })).to.include({ code: 'invalid_request', param: 'tools[1].tools[0].name' });
  });

  it('omit the vendor’s server tools, and report the requirement', () => {
    const { request, dropped, needs } = readBody({
      tools: [
        lookup,
        { type: 'web_search' },
        { type: 'local_shell' },
        { type: 'file_search', vector_store_ids: ['vs_1'] },
        { type: 'image_generation', model: 'gpt-image-1' },
        { type: 'code_interpreter', container: 'cntr_1' },
      ],
    });
    expect(request.tools).to.have.length(1);
    expect(dropped).to.deep.equal([
      'tools.web_search',
      'tools.local_shell',
      'tools.file_search',
      'tools.image_generation',
      'tools.code_interpreter',
    ]);
    expect(needs).to.deep.equal([
      { kind: 'server tool', name: 'web_search', param: 'tools[1]', optional: true },
      { kind: 'server tool', name: 'file_search', param: 'tools[3]', optional: true },
      { kind: 'reference', name: 'vector_store_ids', param: 'tools[3].vector_store_ids' },
      { kind: 'server tool', name: 'image_generation', param: 'tools[4]', optional: true },
      { kind: 'model', name: 'gpt-image-1', param: 'tools[4].model' },
      { kind: 'server tool', name: 'code_interpreter', param: 'tools[5]', optional: true },
      { kind: 'reference', name: 'container', param: 'tools[5].container' },
    ]);
  });

  const CHOICES: readonly (readonly [choice: unknown, canonical: unknown, need?: string])[] = [
    ['required', 'required'],
    [
      { type: 'function', name: 'f' },
      { type: 'function', function: { name: 'f' } },
    ],
    [
      { type: 'custom', name: 'p' },
      { type: 'function', function: { name: 'p' } },
    ],
    [
      { type: 'function', name: 'g', namespace: 'n' },
      { type: 'function', function: { name: 'n__g' } },
    ],
    [
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }, { type: 'web_search' }] },
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
    ],
    [{ type: 'web_search' }, undefined, 'web_search'],
    [{ type: 'mcp', server_label: 'x' }, undefined, 'mcp'],
  ];
  for (const [choice, canonical, need] of CHOICES)
    it(`are chosen from by ${JSON.stringify(choice)}`, () => {
      const { request, needs } = readBody({ tools: [lookup, { type: 'web_search' }], tool_choice: choice });
      expect(request.tool_choice).to.deep.equal(canonical);
      const found = needs?.filter(({ param }) => param === 'tool_choice').map(({ kind, name }) => `${kind} ${name}`);
      expect(found).to.deep.equal(need === undefined ? [] : [`native ${need}`]);
    });

  it('need a vendor that has them if one is required and only the vendor’s are left', () => {
    const { request, needs } = readBody({ tools: [{ type: 'web_search' }], tool_choice: 'required' });
    expect(request.tool_choice).to.equal(undefined);
    expect(needs?.at(-1)).to.deep.equal({ kind: 'native', name: 'web_search', param: 'tool_choice' });
  });
});

describe('the references of a request', () => {
  it('is named with its place: conversations, prompts, files of the operator’s account', () => {
    const input = [
      {
        role: 'user',
        content: [
          { type: 'input_file', file_id: 'file_1' },
          { type: 'input_image', file_id: 'file_2' },
        ],
      },
      { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file_3' } },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'x', annotations: [{ type: 'file_citation', file_id: 'f' }] }],
      },
    ];
    const { needs = [] } = readBody({ input, conversation: 'conv_1', prompt: { id: 'pmpt_1' } });
    const found = bodyFactsOf({ input }, native.effects ?? {}).needs;
    expect([...needs, ...found].map(({ kind, param }) => `${kind} ${param}`)).to.have.members([
      'reference conversation',
      'reference prompt',
      'reference input[0].content[0].file_id',
      'reference input[0].content[1].file_id',
      'reference input[1].output.file_id',
    ]);
  });

  it('have their places in the caller’s body', () => {
    const { place } = readBody({
      instructions: 'Be brief.',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_image', image_url: 'x' },
          ],
        },
        thought('r'),
        call('a'),
        result('a'),
      ],
    });
    expect(place?.('messages[0].content')).to.equal('instructions');
    expect(place?.('messages[1].content[1].image_url.url')).to.equal('input[0].content[1].image_url');
    expect(place?.('messages[2].tool_calls[0].function.arguments')).to.equal('input[2].arguments');
    expect(place?.('messages[3].tool_call_id')).to.equal('input[3].tool_call_id');
    expect(place?.('max_completion_tokens')).to.equal('max_output_tokens');
    expect(place?.('response_format.json_schema.schema')).to.equal('text.format.schema');
    expect(place?.('reasoning_effort')).to.equal('reasoning.effort');
    expect(place?.('temperature')).to.equal('temperature');
  });
});
