import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { GatewayError } from '../../../../contract/index.ts';
import type { ResponsesBody } from '../../../../plugins/formats/openai-responses/types.ts';
import { RESPONSES_REQUEST } from '../../../../plugins/formats/openai-responses/types.ts';
import { contextOf, native, readBody, stream } from '../../../support/formats/responses-dialect.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(RESPONSES_REQUEST);

const TYPES =
  'message reasoning function_call function_call_output custom_tool_call custom_tool_call_output item_reference additional_tools compaction web_search_call input_text output_text input_image input_file refusal function custom namespace mcp __proto__'.split(
    ' ',
  );
const FIELDS =
  'type id call_id role name namespace content arguments input output summary encrypted_content tools text image_url file_id file_data detail annotations format parameters strict description container environment phase __proto__ constructor'.split(
    ' ',
  );

const field = fc.constantFrom(...FIELDS);
const value = fc.oneof(fc.constantFrom(...TYPES), fc.jsonValue({ maxDepth: 3 }));
const { item } = fc.letrec<{ item: object }>((tie) => ({
  item: fc
    .tuple(
      fc.constantFrom(...TYPES),
      fc.dictionary(field, fc.oneof({ maxDepth: 2 }, value, fc.array(tie('item'), { maxLength: 3 })), { maxKeys: 6 }),
    )
    .map(([type, fields]) => ({ ...fields, type })),
}));
const body = fc
  .record(
    {
      model: fc.constant('m'),
      input: fc.oneof(fc.string(), fc.array(item, { maxLength: 5 })),
      tools: fc.array(item, { maxLength: 4 }),
      tool_choice: fc.oneof(fc.constantFrom('auto', 'none', 'required', 'odd'), item),
      text: fc.option(fc.record({ format: item })),
      include: fc.array(fc.string(), { maxLength: 2 }),
      metadata: fc.dictionary(field, value, { maxKeys: 2 }),
      odd: value,
    },
    { requiredKeys: ['model', 'input'] },
  )
  .filter((made) => validate(made));

describe('any valid body by the schema of Responses', () => {
  it('is read, written and passed on, or refused with the place of the error', () => {
    let taken = 0;
    fc.assert(
      fc.property(body, (made) => {
        const whole = made as unknown as ResponsesBody;
        let read: ReturnType<typeof readBody>;
        try {
          read = readBody(whole);
        } catch (error) {
          expect(error).to.be.instanceOf(GatewayError).and.to.include({ code: 'invalid_request' });
          expect((error as GatewayError).param).to.be.a('string');
          return;
        }
        taken += 1;
        expect(read.dropped?.every((name) => /^[\w.-]{1,80}$/.test(name))).to.equal(true);
        const change = { before: read.request, after: read.request, model: 'm', stream: false };
        native.patch(whole, { ...change, open: () => undefined, scope: (text) => text });
        expect(stream(contextOf(whole, read.request)).end()).to.include('response.completed');
      }),
      { numRuns: generatedCases(300) },
    );
    expect(taken).to.be.greaterThan(generatedCases(40));
  });
});
