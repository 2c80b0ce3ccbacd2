import { GATEWAY_URL } from './api.ts';

/** Typed request of the playground to one or two models. */
export interface Draft {
  readonly models: readonly string[];
  readonly system: string;
  readonly prompt: string;
  readonly most: string;
  /** Images as `data:` URLs. */
  readonly images: readonly string[];
  /** JSON list of tools. */
  readonly tools: string;
}

export const EMPTY_DRAFT: Draft = Object.freeze({
  // The first callable one, once the models are known.
  models: [''],
  system: '',
  prompt: 'Hello there',
  most: '',
  images: [],
  tools: '',
});

interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: unknown;
}

/**
 * Parses the tools of a draft, in OpenAI's form or by their fields alone; throws a readable message for invalid text.
 */
export function readTools(text: string): readonly Tool[] {
  if (text.trim() === '') return [];
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    throw new Error(`The tools are not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}.`);
  }
  const tools = (Array.isArray(list) ? list : [list]).map((each: unknown) => {
    const own = each as (Partial<Tool> & { readonly function?: Partial<Tool> }) | null;
    return own?.function ?? own;
  });
  if (!tools.every((tool): tool is Tool => typeof tool?.name === 'string'))
    throw new Error(
      'Each of the tools needs a "name": [{ "name": "get_weather", "parameters": { "type": "object" } }]',
    );
  return tools;
}

/** Request of a draft to one of its models, in OpenAI's format. */
export function chatBody({ system, prompt, most, images, tools }: Draft, model: string): object {
  const pictures = images.map((url) => ({ type: 'image_url', image_url: { url } }));
  const content = pictures.length > 0 ? [{ type: 'text', text: prompt }, ...pictures] : prompt;
  const list = readTools(tools);
  return {
    model,
    messages: [...(system.trim() ? [{ role: 'system', content: system }] : []), { role: 'user', content }],
    ...(most.trim() !== '' && { max_tokens: Number(most) }),
    ...(list.length > 0 && { tools: list.map((tool) => ({ type: 'function', function: tool })) }),
    stream: true,
  };
}

/** Request in Anthropic's format, which requires the maximum output. */
function messagesBody({ system, prompt, most, images, tools }: Draft, model: string): object {
  const pictures = images.map((url) => {
    const [, media_type = '', data = ''] = /^data:([^;,]*);base64,(.*)$/.exec(url) ?? [];
    return { type: 'image', source: { type: 'base64', media_type, data } };
  });
  const list = readTools(tools);
  return {
    model,
    max_tokens: most.trim() === '' ? 1024 : Number(most),
    ...(system.trim() && { system }),
    messages: [{ role: 'user', content: pictures.length > 0 ? [...pictures, { type: 'text', text: prompt }] : prompt }],
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

/** Request of a draft to its first model as sample code; images are replaced by a placeholder. */
export function sampleOf(draft: Draft, format: Format): string {
  const [model = ''] = draft.models;
  const short = { ...draft, images: draft.images.map((url) => `${url.slice(0, url.indexOf(',') + 1)}BASE64`) };
  try {
    return SAMPLES[format](short, model);
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
}

const SAMPLES: Readonly<Record<Format, (draft: Draft, model: string) => string>> = Object.freeze({
  curl(draft, model) {
    const quoted = JSON.stringify(chatBody(draft, model), null, 2).replaceAll("'", "'\\''");
    return `curl -N ${GATEWAY_URL}/v1/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" -H 'content-type: application/json' \\\n  -d '${quoted}'`;
  },
  'OpenAI SDK': (draft, model) =>
    [
      "import OpenAI from 'openai';",
      `const client = new OpenAI({ baseURL: '${GATEWAY_URL}/v1', apiKey: 'TOLLGATE_API_KEY' });`,
      `const stream = await client.chat.completions.create(${JSON.stringify(chatBody(draft, model), null, 2)});`,
      "for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');",
    ].join('\n'),
  'Anthropic SDK': (draft, model) =>
    [
      "import Anthropic from '@anthropic-ai/sdk';",
      `const client = new Anthropic({ baseURL: '${GATEWAY_URL}', authToken: 'TOLLGATE_API_KEY' });`,
      `const stream = await client.messages.create(${JSON.stringify(messagesBody(draft, model), null, 2)});`,
      'for await (const event of stream) if (event.delta?.text) process.stdout.write(event.delta.text);',
    ].join('\n'),
});
