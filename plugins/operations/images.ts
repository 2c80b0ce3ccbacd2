import { readFile } from 'node:fs/promises';
import { isEventStream } from '../../contract/event-reader.ts';
import {
  type Attempt,
  definePlugin,
  estimateTextTokens,
  isObject,
  type JsonObject,
  type OperationUsage,
  type ReportedUsage,
  readArray,
  readCount,
  readObject,
  type Schema,
  StreamFailure,
  type UploadedFile,
} from '../../contract/index.ts';
import type { FormFile, ImageRequest, ImageResponse } from '../formats/kit/index.ts';
import { readEvents, readWhole } from './kit/event-stream.ts';

/** OpenAI's limits: size of one image, and number of images in an edit, without its mask. */
const MAX_FILE_BYTES = 50 * 1024 * 1024;
const MAX_IMAGES = 16;

const nullable = (type: string, rest: Schema = {}): Schema => ({ type: [type, 'null'], ...rest });
const word = nullable('string', { maxLength: 64 });

const PROPERTIES = Object.freeze({
  model: { type: 'string', minLength: 1, maxLength: 256 },
  prompt: { type: 'string', minLength: 1, maxLength: 32_000 },
  n: nullable('integer', { minimum: 1, maximum: 10 }),
  size: nullable('string', {
    pattern: '^(?:auto|[1-9]\\d{1,4}x[1-9]\\d{1,4})$',
    description: '`auto`, or a size such as `1024x1024`.',
  }),
  quality: word,
  background: word,
  output_format: word,
  moderation: word,
  style: word,
  input_fidelity: word,
  output_compression: nullable('integer', { minimum: 0, maximum: 100 }),
  response_format: { enum: ['url', 'b64_json', null] },
  partial_images: nullable('integer', { minimum: 0, maximum: 3 }),
  stream: nullable('boolean'),
  user: nullable('string', { maxLength: 512 }),
});

const file = { type: 'object', required: ['path', 'name', 'contentType', 'bytes', 'field'] };

const REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ImageRequest',
  examples: [{ model: 'openai/gpt-image-1', prompt: 'A beach', size: '1024x1024' }],
  type: 'object',
  required: ['model', 'prompt'],
  properties: PROPERTIES,
});

/** Request of the operation: an edit has files. */
const OPERATION_REQUEST: Schema = {
  type: 'object',
  required: ['model', 'prompt'],
  properties: { ...PROPERTIES, images: { type: 'array', minItems: 1, maxItems: MAX_IMAGES, items: file }, mask: file },
};

const NUMBERS: readonly string[] = Object.freeze(['n', 'output_compression', 'partial_images']);

/** Text fields of the form for edits. */
const FORM: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ImageEditForm',
  examples: [{ model: 'openai/gpt-image-1', prompt: 'Rain' }],
  type: 'object',
  required: ['model', 'prompt'],
  properties: {
    ...Object.fromEntries(Object.entries(PROPERTIES).filter(([name]) => name !== 'style')),
    ...Object.fromEntries(NUMBERS.map((name) => [name, { type: 'string', pattern: '^\\d{1,3}$' }])),
    stream: { enum: ['true', 'false'] },
  },
});

const RESPONSE: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:Images',
  examples: [{ created: 1_790_000_000, data: [{ b64_json: 'iVBORw0KGgo=' }] }],
  type: 'object',
  required: ['created', 'data'],
  properties: {
    created: { type: 'integer', description: 'Unix time in seconds.' },
    data: {
      type: 'array',
      items: { type: 'object', properties: { b64_json: { type: 'string' }, url: { type: 'string' } } },
    },
    usage: { type: 'object' },
  },
});

const DESCRIPTION = 'Returns events if `stream` is true; `partial_images` adds previews.';
const MADE = { description: 'Images in base64 or by URL.', schema: RESPONSE };

/** Images generated or edited by a prompt, in OpenAI's shape. */
export default definePlugin({
  name: 'images',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    api.schema(REQUEST);
    api.operation({
      name: 'images',
      request: OPERATION_REQUEST,
      texts: { response: ['json.data[].revised_prompt'] },
      maxUsage,
      attempt: make,
      isResponse: (value): value is ImageResponse =>
        isObject(value) && (isObject(value['json']) || typeof value['events'] === 'object'),
      routes: [
        {
          ...RESPONSES,
          path: 'images/generations',
          summary: 'Image generation',
          description: DESCRIPTION,
          body: REQUEST,
        },
        {
          ...RESPONSES,
          path: 'images/edits',
          summary: 'Image editing',
          description: `Accepts a form with one or more files \`image\` and an optional \`mask\`. ${DESCRIPTION}`,
          body: FORM,
          files: {
            images: { field: 'image', maxBytes: MAX_FILE_BYTES, maxFiles: MAX_IMAGES },
            mask: { maxBytes: MAX_FILE_BYTES, optional: true },
          },
        },
      ],
    });
  },
});

const RESPONSES = Object.freeze({
  response: MADE,
  events: ({ events }: ImageResponse) => events,
  write: ({ json }: ImageResponse) => json,
});

async function make(attempt: Attempt<'images'>): Promise<ImageResponse> {
  const { request, offer, codecCall, whileStreaming } = attempt;
  const { images = [], mask } = request;
  const files = await Promise.all([
    ...images.map((each) => formFile(each, images.length > 1 ? 'image[]' : 'image')),
    ...(mask ? [formFile(mask, 'mask')] : []),
  ]);
  const sent = offer.codec.request(request, files, codecCall);
  const bill = (usage: unknown, made: number): void => {
    const n = Math.max(made, 1);
    attempt.bill(readUsage(usage, n), { ...request, n });
  };
  if (request.stream !== true) {
    const json = offer.codec.response(await attempt.sendForJson(sent), codecCall);
    bill(json['usage'], readArray(json['data']).length);
    return { json };
  }
  const response = await attempt.send(sent);
  // Vendors without streaming return the complete image.
  if (!isEventStream(response.headers)) {
    const json = offer.codec.response(await readWhole(response), codecCall);
    bill(json['usage'], readArray(json['data']).length);
    const type = images.length > 0 ? 'image_edit.completed' : 'image_generation.completed';
    return { events: whileStreaming(eventsOf(json, type), () => {}) };
  }
  // An interrupted stream is charged as one image if nothing more is known.
  bill(undefined, 1);
  let made = 0;
  let usage: unknown;
  const watched = async function* (): AsyncGenerator<JsonObject> {
    for await (const event of readEvents(response)) {
      if (/\.completed$/.test(String(event['type']))) {
        made += 1;
        usage = largerOf(usage, event['usage']);
      }
      const isWhole = made >= (request.n ?? 1);
      if (isWhole) response.reportProgress?.(usage === undefined ? 'ending' : 'complete');
      yield event;
      if (isWhole && usage !== undefined) break;
    }
    if (made === 0) throw new StreamFailure({ class: 'upstream_error', message: 'The provider returned no image.' });
  };
  return { events: whileStreaming(watched(), () => made > 0 && bill(usage, made)) };
}

/** Yields a complete response as stream events: each image, and the usage with the last one. */
async function* eventsOf({ data, created, usage }: JsonObject, type: string): AsyncGenerator<JsonObject> {
  for (const [at, image] of readArray(data).entries())
    yield {
      type,
      created_at: created,
      ...readObject(image),
      ...(at === readArray(data).length - 1 && usage !== undefined && { usage }),
    };
}

/** Larger of two usages of a stream, since usage is cumulative. */
function largerOf(before: unknown, next: unknown): unknown {
  const total = (usage: unknown): number => readCount(readObject(usage)['output_tokens']) ?? 0;
  return total(next) < total(before) ? before : (next ?? before);
}

async function formFile({ path, name, contentType }: UploadedFile, field: string): Promise<FormFile> {
  return { field, name, contentType, bytes: await readFile(path) };
}

/** Unit of models that are charged by image. */
const IMAGES = 'images';

/**
 * OpenAI's token counts: about 250 pixels a token in the best quality, a quarter and a fifteenth of that in the
 * others. https://platform.openai.com/docs/guides/image-generation
 */
const PIXELS_PER_TOKEN = 250;
const LARGEST_USUAL = 1024 * 1536;
const SHARES: Readonly<Record<string, number>> = Object.freeze({ low: 15, medium: 4 });
const TOKENS_OF_PARTIAL = 100;
/** Tokens of an input image, in high fidelity. */
const TOKENS_OF_INPUT = 6500;

function maxUsage({
  prompt,
  n,
  size,
  quality,
  partial_images: partial,
  images = [],
  mask,
}: ImageRequest): OperationUsage {
  const count = n ?? 1;
  const [width = 0, height = 0] = (size ?? '').split('x').map(Number);
  const pixels = width * height > 0 ? width * height : LARGEST_USUAL;
  const output =
    Math.ceil(pixels / PIXELS_PER_TOKEN / (SHARES[quality ?? ''] ?? 1)) + (partial ?? 0) * TOKENS_OF_PARTIAL;
  const read = (images.length + (mask ? 1 : 0)) * TOKENS_OF_INPUT;
  return {
    prompt_tokens: estimateTextTokens(prompt) + read,
    completion_tokens: output * count,
    prompt_tokens_details: { image_tokens: read },
    completion_tokens_details: { image_tokens: output * count },
    units: { [IMAGES]: count },
  };
}

/** Usage of a vendor's response. Images have input and output, so a count of 0 is invalid. */
function readUsage(usage: unknown, made: number): ReportedUsage {
  const reported = readObject(usage);
  const { input_tokens: input, output_tokens: output } = reported;
  const written = readCount(readObject(reported['output_tokens_details'])['text_tokens']) ?? 0;
  return {
    prompt_tokens: input === 0 ? undefined : input,
    completion_tokens: output === 0 ? undefined : output,
    prompt_tokens_details: { image_tokens: readObject(reported['input_tokens_details'])['image_tokens'] },
    completion_tokens_details: { image_tokens: Math.max(0, Number(output) - written) },
    units: { [IMAGES]: made },
    cost: reported['cost'],
  };
}
