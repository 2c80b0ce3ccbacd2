import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { compileOrder, type DialectFormat } from './dialect-format.ts';

const PATH = { type: 'string', description: 'a path such as "choices[].text"' };
const PATHS = { type: 'array', items: PATH, description: 'a list of paths such as ["choices[].text"]' };
const WORD = { type: 'string', minLength: 1, description: 'a word' };
const object = (properties: Readonly<Record<string, object>>, required: readonly string[], description: string) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
  description,
});
const STREAMED = {
  type: 'array',
  minItems: 1,
  description: 'a list of { "events": ["text"], "path": "text" }',
  items: object(
    { events: { type: 'array', items: WORD, description: 'a list of names of events' }, path: PATH },
    ['events', 'path'],
    'an object { "events": ["text"], "path": "text" }',
  ),
};
const PLACES = object(
  { type: PATH, message: PATH },
  ['type', 'message'],
  'an object { "type": path, "message": path }',
);
const ORDER = {
  type: 'string',
  description: 'the order of events as a regular expression over their names, "text* end"',
};
const HELD = ['reasoning_content', 'content', 'refusal', 'name', 'arguments'];

const SCHEMA = object(
  {
    $schema: { type: 'string' },
    events: {
      type: 'array',
      minItems: 1,
      description: 'a list of events, each { "name": "text", "when": { "path": value } }',
      items: object(
        {
          name: { type: 'string', pattern: '^[\\w-]+$', description: 'a word of a-z, 0-9, _ and -' },
          when: { type: 'object', description: 'values by path; null for "there is something"' },
          text: { type: 'string', description: 'the whole data of a frame that is no JSON' },
          event: { type: 'string', description: 'the name in `event:` of its frame' },
        },
        ['name'],
        'an object { "name": "text", "when": { "path": value } }',
      ),
    },
    complete: ORDER,
    failed: ORDER,
    counters: STREAMED,
    content: {
      type: 'array',
      minItems: 1,
      description: 'a list of { "what": "text", "holds": ["content"], "whole": paths, "streamed": [...] }',
      items: object(
        {
          what: WORD,
          whole: PATHS,
          streamed: { ...STREAMED, minItems: 0 },
          holds: {
            type: 'array',
            items: { enum: HELD, description: `one of ${HELD.join(', ')}` },
            description: `a list of ${HELD.join(', ')}`,
          },
        },
        ['what', 'whole', 'streamed'],
        'an object { "what": "text", "holds": ["content"], "whole": paths, "streamed": [...] }',
      ),
    },
    finish: {
      ...object(
        {
          whole: PATH,
          streamed: STREAMED,
          words: object(
            { stop: WORD, length: WORD, tool_calls: WORD, content_filter: WORD },
            ['stop', 'length', 'tool_calls', 'content_filter'],
            'the words of the format for stop, length, tool_calls and content_filter',
          ),
        },
        ['whole', 'streamed', 'words'],
        'where it stands why a response ended, { "whole": path, "streamed": [...], "words": {...} }, or null',
      ),
      type: ['object', 'null'],
    },
    id: {
      ...object(
        { whole: PATH, streamed: STREAMED },
        ['whole', 'streamed'],
        'where the id of a response stands, { "whole": path, "streamed": [...] }, or null',
      ),
      type: ['object', 'null'],
    },
    usage: object(
      { whole: PATH, streamed: PATH, input: PATHS, output: PATHS, total: PATH },
      ['whole', 'streamed', 'input', 'output'],
      'where counts of tokens stand, { "whole": path, "streamed": path, "input": paths, "output": paths }',
    ),
    error: object(
      { body: PLACES, streamed: PLACES },
      ['body', 'streamed'],
      'where an error says what it is, { "body": {...}, "streamed": {...} }',
    ),
    modulo: PATHS,
    native: object(
      {
        edits: { type: 'array', items: WORD, description: 'a list of fields' },
        model: WORD,
        changes: { type: 'object', description: 'what of the body changes with each canonical field' },
      },
      ['edits', 'changes'],
      'what the native lane changes, { "edits": [...], "changes": {...} }',
    ),
  },
  ['events', 'complete', 'failed', 'content', 'finish', 'id', 'usage', 'error'],
  'an object',
);

/** Problems of a `format.json`, each with its place; empty if it is valid. */
export function problemsOf(format: unknown): readonly string[] {
  const ajv = new Ajv2020({ strict: false, allErrors: true, verbose: true });
  const isRight = ajv.compile<DialectFormat>(SCHEMA);
  if (!isRight(format)) return [...new Set((isRight.errors ?? []).map(problemOf))];
  const { events, complete, failed, content, counters = [], finish, id } = format;
  const names = events.map(({ name }) => name);
  const places = [
    ...counters.map((row, at) => [`counters[${at}]`, row] as const),
    ...content.flatMap((row, at) =>
      row.streamed.map((each, one) => [`content[${at}].streamed[${one}]`, each] as const),
    ),
    ...(finish?.streamed ?? []).map((row, at) => [`finish.streamed[${at}]`, row] as const),
    ...(id?.streamed ?? []).map((row, at) => [`id.streamed[${at}]`, row] as const),
  ];
  return [
    ...Object.entries({ complete, failed }).flatMap(([name, order]) => orderProblem(name, order, names)),
    ...places.flatMap(([place, row]) =>
      row.events
        .filter((name) => !names.includes(name))
        .map((name) => `format.json: ${place} names the event "${name}", which \`events\` does not have`),
    ),
    ...(content.some(({ holds = [] }) => holds.includes('content'))
      ? []
      : ['format.json: no row of `content` has `"holds": ["content"]`: say where the text of a response stands']),
  ];
}

function orderProblem(name: string, order: string, names: readonly string[]): readonly string[] {
  try {
    compileOrder(order, names);
    return [];
  } catch (error) {
    const { message } = error as Error;
    return [`format.json: ${name} is no order of events: ${message.replace(/^format\.json: /, '')}`];
  }
}

/** Formats an error of the schema as a sentence. */
function problemOf({ keyword, instancePath, params, parentSchema, message }: ErrorObject): string {
  const place = instancePath
    .replace(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')
    .replace(/^\./, '');
  const at = place === '' ? 'format.json' : `format.json: ${place}`;
  const { missingProperty, additionalProperty } = params as Readonly<Record<string, string>>;
  const wanted = (parentSchema as { readonly description?: string } | undefined)?.description;
  if (keyword === 'required') {
    const { properties = {} } = parentSchema as { readonly properties?: Readonly<Record<string, Described>> };
    return `${at} has no \`${missingProperty}\`: ${properties[missingProperty ?? '']?.description ?? wanted ?? 'it is needed'}`;
  }
  if (keyword === 'additionalProperties')
    return `${at} has \`${additionalProperty}\`, which is not known here; it has to be ${wanted ?? 'taken out'}`;
  return `${at} has to be ${wanted ?? message ?? 'something else'}`;
}

interface Described {
  readonly description?: string;
}
