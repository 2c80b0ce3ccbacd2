/** Message before the prompt. */
export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly text: string;
  /** Images as `data:` URLs. */
  readonly images: readonly string[];
}

/** Typed request of the playground to one to three models. */
export interface Draft {
  readonly models: readonly string[];
  readonly system: string;
  readonly turns: readonly Turn[];
  readonly prompt: string;
  /** Images of the prompt as `data:` URLs. */
  readonly images: readonly string[];
  /** JSON list of tools. */
  readonly tools: string;
  /** JSON Schema of the answer. */
  readonly schema: string;
  /** Texts of the fields of {@link PARAMETERS}. */
  readonly parameters: Readonly<Record<string, string>>;
}

export const MOST_MODELS = 3;

export const EMPTY_DRAFT: Draft = Object.freeze({
  // The first callable one, once the models are known.
  models: [''],
  system: '',
  turns: [],
  prompt: 'Hello there',
  images: [],
  tools: '',
  schema: '',
  parameters: {},
});

interface Parameter {
  /** Name in OpenAI's chat format. */
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
  /** Name in Anthropic's format; absent if it has none. */
  readonly messages?: string;
  read(text: string): unknown;
}

/** Parameters of a request. The gateway explains a wrong value. */
export const PARAMETERS: readonly Parameter[] = Object.freeze([
  {
    name: 'max_tokens',
    label: 'At most (tokens)',
    placeholder: 'the model’s',
    messages: 'max_tokens',
    read: readNumber,
  },
  { name: 'temperature', label: 'Temperature', placeholder: '0 to 2', messages: 'temperature', read: readNumber },
  { name: 'top_p', label: 'Top p', placeholder: '0 to 1', messages: 'top_p', read: readNumber },
  { name: 'reasoning_effort', label: 'Reasoning effort', placeholder: 'low, medium, high', read: (text) => text },
  { name: 'seed', label: 'Seed', placeholder: 'none', read: readNumber },
  { name: 'stop', label: 'Stop at', placeholder: 'none', messages: 'stop_sequences', read: (text) => [text] },
]);

function readNumber(text: string): unknown {
  return Number.isNaN(Number(text)) ? text : Number(text);
}

interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: unknown;
}

/** Parses a JSON text of a field; throws a readable message for invalid text. */
function readJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The ${field} not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}.`);
  }
}

/** Parses the tools of a draft, in OpenAI's form or by their fields alone. */
function readTools(text: string): readonly Tool[] {
  if (text.trim() === '') return [];
  const list = readJson(text, 'tools are');
  const tools = (Array.isArray(list) ? list : [list]).map((each: unknown) => {
    const own = each as (Partial<Tool> & { readonly function?: Partial<Tool>; readonly input_schema?: unknown }) | null;
    if (own?.input_schema === undefined) return own?.function ?? own;
    const { input_schema: parameters, ...rest } = own;
    return { ...rest, parameters };
  });
  if (!tools.every((tool): tool is Tool => typeof tool?.name === 'string'))
    throw new Error(
      'Each of the tools needs a "name": [{ "name": "get_weather", "parameters": { "type": "object" } }]',
    );
  return tools;
}

/** Parses the schema of the answer. */
function readSchema(text: string): object | undefined {
  if (text.trim() === '') return undefined;
  const schema = readJson(text, 'schema is');
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw new Error('The schema must be an object: { "type": "object", "properties": { … } }');
  return schema;
}

function readParameters(draft: Draft, nameOf: (parameter: Parameter) => string | undefined): object {
  return Object.fromEntries(
    PARAMETERS.flatMap((parameter) => {
      const [name, text] = [nameOf(parameter), draft.parameters[parameter.name]?.trim() ?? ''];
      return name === undefined || text === '' ? [] : [[name, parameter.read(text)]];
    }),
  );
}

/** All messages of a draft, the prompt included. */
function turnsOf({ turns, prompt, images }: Draft): readonly Turn[] {
  return [...turns, { role: 'user', text: prompt, images }];
}

/** Request of a draft to one of its models, in OpenAI's format. Throws a readable message for invalid JSON. */
export function chatBody(draft: Draft, model: string): object {
  const { system, tools, schema: typed } = draft;
  const [list, schema] = [readTools(tools), readSchema(typed)];
  const messages = turnsOf(draft).map(({ role, text, images }) => {
    const pictures = images.map((url) => ({ type: 'image_url', image_url: { url } }));
    return { role, content: pictures.length > 0 ? [{ type: 'text', text }, ...pictures] : text };
  });
  return {
    model,
    messages: [...(system.trim() ? [{ role: 'system', content: system }] : []), ...messages],
    ...readParameters(draft, ({ name }) => name),
    ...(schema && { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }),
    ...(list.length > 0 && { tools: list.map((tool) => ({ type: 'function', function: tool })) }),
    stream: true,
  };
}

/** Request in Anthropic's format, which requires the maximum output. */
function messagesBody(draft: Draft, model: string): object {
  const { system, tools, schema: typed } = draft;
  const [list, schema] = [readTools(tools), readSchema(typed)];
  const messages = turnsOf(draft).map(({ role, text, images }) => {
    const pictures = images.map((url) => {
      const [, media_type = '', data = ''] = /^data:([^;,]*);base64,(.*)$/.exec(url) ?? [];
      return { type: 'image', source: { type: 'base64', media_type, data } };
    });
    return { role, content: pictures.length > 0 ? [...pictures, { type: 'text', text }] : text };
  });
  return {
    model,
    max_tokens: 1024,
    ...(system.trim() && { system }),
    messages,
    ...readParameters(draft, (parameter) => parameter.messages),
    ...(schema && { output_config: { format: { type: 'json_schema', schema } } }),
    ...(list.length > 0 && {
      tools: list.map(({ name, description, parameters }) => ({
        name,
        description,
        input_schema: parameters ?? { type: 'object' },
      })),
    }),
    stream: true,
  };
}

export const FORMATS = ['curl', 'OpenAI SDK', 'Anthropic SDK'] as const;
export type Format = (typeof FORMATS)[number];

/** Request of a draft to its first model as sample code for a gateway; images are replaced by a placeholder. */
export function sampleOf(draft: Draft, format: Format, url: string): string {
  const [model = ''] = draft.models;
  const shorten = (images: readonly string[]) =>
    images.map((image) => `${image.slice(0, image.indexOf(',') + 1)}BASE64`);
  const short = {
    ...draft,
    images: shorten(draft.images),
    turns: draft.turns.map((turn) => ({ ...turn, images: shorten(turn.images) })),
  };
  try {
    return SAMPLES[format](short, model, url);
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
}

const SAMPLES: Readonly<Record<Format, (draft: Draft, model: string, url: string) => string>> = Object.freeze({
  curl(draft, model, url) {
    const quoted = JSON.stringify(chatBody(draft, model), null, 2).replaceAll("'", "'\\''");
    return `curl -N ${url}/v1/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" -H 'content-type: application/json' \\\n  -d '${quoted}'`;
  },
  'OpenAI SDK': (draft, model, url) =>
    [
      "import OpenAI from 'openai';",
      `const client = new OpenAI({ baseURL: '${url}/v1', apiKey: 'TOLLGATE_API_KEY' });`,
      `const stream = await client.chat.completions.create(${JSON.stringify(chatBody(draft, model), null, 2)});`,
      "for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');",
    ].join('\n'),
  'Anthropic SDK': (draft, model, url) =>
    [
      "import Anthropic from '@anthropic-ai/sdk';",
      `const client = new Anthropic({ baseURL: '${url}', authToken: 'TOLLGATE_API_KEY' });`,
      `const stream = await client.messages.create(${JSON.stringify(messagesBody(draft, model), null, 2)});`,
      'for await (const event of stream) if (event.delta?.text) process.stdout.write(event.delta.text);',
    ].join('\n'),
});

/** Longest text of a link: chat programs and proxies cut longer ones. */
export const LONGEST_LINK = 6000;

/** Keys of this gateway and of known vendors, which a text may contain by mistake. */
const SECRET =
  /\b(?:tg_\w{12}_\w{43,}|(?:sk|pk|rk|gsk|xai|key)[-_][\w-]{16,}|AIza[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]+)/g;

/** Text of a draft for a link: without images, and without what looks like a key. */
export function linkText(draft: Draft): string {
  const { models, system, turns, prompt, tools, schema, parameters } = draft;
  const shared = {
    models,
    system,
    turns: turns.map(({ role, text }) => [role, text]),
    prompt,
    tools,
    schema,
    parameters,
  };
  const bytes = new TextEncoder().encode(JSON.stringify(shared).replaceAll(SECRET, '…'));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** Draft of a link's text; throws a readable message for a link that is cut or changed. */
export function readLink(text: string): Draft {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
    const shared = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Readonly<
      Record<string, unknown>
    >;
    const word = (name: string): string => textOf(shared[name]);
    const models = listOf(shared['models']).map(textOf).slice(0, MOST_MODELS);
    return {
      models: models.length > 0 ? models : [''],
      system: word('system'),
      turns: listOf(shared['turns']).flatMap(readTurn),
      prompt: word('prompt'),
      images: [],
      tools: word('tools'),
      schema: word('schema'),
      parameters: Object.fromEntries(
        Object.entries(objectOf(shared['parameters'])).map(([name, value]) => [name, textOf(value)]),
      ),
    };
  } catch {
    throw new Error('The link is incomplete. Copy the whole link, or ask for it again.');
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function readTurn(turn: unknown): readonly Turn[] {
  const [role, text] = listOf(turn);
  return role === 'user' || role === 'assistant' ? [{ role, text: textOf(text), images: [] }] : [];
}

/** Draft of a stored request, in OpenAI's chat format or another one with messages. */
export function draftOfRequest(request: unknown, model: string): Draft {
  const body = objectOf(request);
  const messages = listOf(body['messages']).map(objectOf);
  const said = messages.flatMap(({ role, content }): readonly Turn[] =>
    role === 'user' || role === 'assistant' ? [{ role, text: wordsOf(content), images: imagesOf(content) }] : [],
  );
  const at = said.findLastIndex(({ role }) => role === 'user');
  const system = messages.find(({ role }) => role === 'system' || role === 'developer');
  const { json_schema: format } = objectOf(body['response_format']);
  const { schema } = objectOf(format);
  return {
    ...EMPTY_DRAFT,
    models: [model],
    system: typeof body['system'] === 'string' ? body['system'] : wordsOf(system?.['content']),
    turns: said.slice(0, Math.max(at, 0)).filter(({ text, images }) => text !== '' || images.length > 0),
    prompt: said[at]?.text ?? '',
    images: said[at]?.images ?? [],
    tools: Array.isArray(body['tools']) ? JSON.stringify(body['tools'], null, 2) : '',
    schema: schema ? JSON.stringify(schema, null, 2) : '',
    parameters: Object.fromEntries(
      PARAMETERS.flatMap(({ name }) => {
        const value = body[name];
        const [first] = Array.isArray(value) ? value : [value];
        return typeof first === 'string' || typeof first === 'number' ? [[name, String(first)]] : [];
      }),
    ),
  };
}

/** Text of a message's content. */
function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(objectOf(part)['text']))
    .filter(Boolean)
    .join('\n');
}

/** Images of a message's content that are in it, and not elsewhere. */
function imagesOf(content: unknown): readonly string[] {
  return listOf(content)
    .map((part) => textOf(objectOf(objectOf(part)['image_url'])['url']))
    .filter((url) => url.startsWith('data:image/'));
}
