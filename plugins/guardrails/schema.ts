import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import {
  type ChatChunk,
  definePlugin,
  GatewayError,
  OptionError,
  parseJson,
  parseSize,
  problemsOf,
  STANDARD_FORMATS,
  type StreamTransform,
} from '../../contract/index.ts';
import { refuseUnseen } from './kit/guard.ts';

/** Formats that are checked; any other is a hint. */
const FORMATS = Object.freeze(
  Object.fromEntries(Object.entries(STANDARD_FORMATS).map(([name, { accepts }]) => [name, accepts])),
);

/** Compiles the schema; an invalid one is an {@link OptionError}. */
function compile(schema: object): ValidateFunction {
  try {
    return new Ajv2020({ strict: false, formats: FORMATS, logger: false }).compile(schema);
  } catch (error) {
    throw new OptionError(
      '/schema',
      `is not a valid JSON Schema: ${(error as Error).message}`,
      'Write a JSON Schema, draft 2020-12.',
    );
  }
}

/** Content of a choice of a stream, buffered until it is complete. */
interface HeldContent {
  readonly chunks: ChatChunk[];
  text: string;
  /** True if the choice calls tools: it is then not a final response. */
  callsTools: boolean;
}

/** Requires responses to be JSON that conforms to a schema; others do not reach the caller. */
export default definePlugin({
  name: 'schema',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['schema'],
    additionalProperties: false,
    properties: {
      schema: {
        type: 'object',
        additionalProperties: true,
        description: 'JSON Schema (draft 2020-12) for the content of each response.',
      },
      maxSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '1mb',
        description: 'Maximum size of the content.',
      },
    },
  },
  check: ({ schema }) => problemsOf(() => compile(schema)),
  setup(api, { schema, maxSize }) {
    const fits = compile(schema);
    const most = parseSize(maxSize);
    const refuse = (what: string): GatewayError =>
      new GatewayError(
        'provider_invalid_response',
        `The response does not match the schema of the policy "${api.instance}" of this gateway: ${what}. Try again, or add the schema to the prompt.`,
        { refusedBy: api.instance },
      );
    const check = (content: string | null): void => {
      if (content === null) throw refuse('it has no content');
      if (content.length > most) throw refuse(`it is longer than ${most} characters`);
      const value = parseJson(content);
      if (value === undefined) throw refuse('it is not JSON');
      if (fits(value)) return;
      const [error] = fits.errors ?? [];
      // Path in the schema, not in the response: names there are written by the model.
      throw refuse(`${error?.schemaPath ?? '#'} ${error?.message ?? 'is not kept'}`);
    };
    refuseUnseen(api, (side) => side === 'response');
    api.hook('receive', {
      operations: ['chat'],
      handler(_call, { choices }) {
        for (const { message } of choices) if ((message.tool_calls ?? []).length === 0) check(message.content);
        return undefined;
      },
    });
    api.hook('stream', {
      operations: ['chat'],
      handler: (): StreamTransform => {
        const held = new Map<number, HeldContent>();
        return {
          push(chunk) {
            const passing: ChatChunk[] = [];
            for (const choice of chunk.choices) {
              const one: ChatChunk = { ...chunk, choices: [choice] };
              const own = held.get(choice.index) ?? { chunks: [], text: '', callsTools: false };
              held.set(choice.index, own);
              if ((choice.delta.tool_calls ?? []).length > 0) own.callsTools = true;
              own.text += choice.delta.content ?? '';
              if (own.text.length > most) throw refuse(`it is longer than ${most} characters`);
              own.chunks.push(one);
              if (own.callsTools || own.text === '') passing.push(...own.chunks.splice(0));
            }
            return passing;
          },
          end() {
            for (const { text, callsTools } of held.values()) if (!callsTools) check(text === '' ? null : text);
            return [...held.values()].flatMap(({ chunks }) => chunks);
          },
        };
      },
    });
  },
});
