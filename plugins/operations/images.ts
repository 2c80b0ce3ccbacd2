import { readFile } from 'node:fs/promises';
import { isEventStream } from '../../contract/event-reader.ts';
import {
  type Attempt,
  type CostPart,
  costOf,
  definePlugin,
  estimateTextTokens,
  GatewayError,
  isObject,
  type JsonObject,
  type Metered,
  type PluginApi,
  type Price,
  type RouteContext,
  readArray,
  readCount,
  readObject,
  type Schema,
  StreamFailure,
  type UploadedFile,
} from '../../contract/index.ts';
import { type FormFile, type ImageRequest, type ImageResponse, readCost } from '../formats/kit/index.ts';
import { missingFile, readEvents, readWhole } from './kit/event-stream.ts';
import { addModelRoutes, respond } from './kit/model-routes.ts';

/** OpenAI's limits: size of one image, and number of images in an edit, including its mask. */
const MAX_FILE_BYTES = 50 * 1024 * 1024;
const MAX_FILES = 17;

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
  type: 'object',
  required: ['model', 'prompt'],
  properties: PROPERTIES,
});

/** Request of the operation: an edit has files. */
const OPERATION_REQUEST: Schema = {
  type: 'object',
  required: ['model', 'prompt'],
  properties: { ...PROPERTIES, images: { type: 'array', minItems: 1, maxItems: MAX_FILES, items: file }, mask: file },
};

const NUMBERS: readonly string[] = Object.freeze(['n', 'output_compression', 'partial_images']);

/** Text fields of the form for edits. */
const FORM: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:ImageEditForm',
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
      estimate: (request, { price }) => costOfImages(mostOf(request), price),
      attempt: make,
      isResponse: (value): value is ImageResponse =>
        isObject(value) && (isObject(value['json']) || typeof value['events'] === 'object'),
    });
    addModelRoutes(api, {
      path: 'images/generations',
      summary: 'Image generation',
      body: REQUEST,
      description: DESCRIPTION,
      response: MADE,
      ...RESPOND,
    });
    addEdits(api);
  },
});

const RESPOND = Object.freeze({
  operation: 'images',
  eventsOf: ({ events }: ImageResponse) => events,
  write: ({ json }: ImageResponse) => json,
});

function addEdits(api: PluginApi): void {
  const form = { maxFileBytes: MAX_FILE_BYTES, maxFiles: MAX_FILES, readsWhole: true };
  const add = (path: string, by: string): void =>
    api.route({
      method: 'POST',
      path,
      summary: `Image editing; ${by}`,
      auth: ['key'],
      body: FORM,
      form,
      description: `Accepts a form with one or more files \`image\` and an optional \`mask\`. ${DESCRIPTION}`,
      responses: { 200: MADE },
      async handler(context) {
        const ctx = context as RouteContext;
        await respond(api, ctx, RESPOND, readForm(ctx));
      },
    });
  add('/api/core/:provider/images/edits', 'by one provider');
  add('/v1/images/edits', 'the model is `provider/model` or an alias');
}

function readForm({ state }: RouteContext): ImageRequest {
  const { files = [] } = state;
  const fields = Object.entries(state.body as Readonly<Record<string, string>>).map(([name, value]) => {
    if (name === 'stream') return [name, value === 'true'];
    return [name, NUMBERS.includes(name) ? Number(value) : value];
  });
  const images = files.filter(({ field }) => /^image(?:\[\d*\])?$/.test(field));
  const mask = files.find(({ field }) => field === 'mask');
  if (images.length === 0 || images.some(({ bytes }) => bytes === 0)) throw missingFile('image');
  const other = files.find((each) => each !== mask && !images.includes(each));
  if (other)
    throw new GatewayError('invalid_request', 'The form may contain only the files `image` and `mask`.', {
      param: other.field.slice(0, 64),
    });
  return { ...Object.fromEntries(fields), images, ...(mask && { mask }) } as ImageRequest;
}

async function make(attempt: Attempt<'images'>): Promise<ImageResponse> {
  const { request, offer, codecCall, price, meter, whileStreaming } = attempt;
  const { images = [], mask } = request;
  const files = await Promise.all([
    ...images.map((each) => formFile(each, images.length > 1 ? 'image[]' : 'image')),
    ...(mask ? [formFile(mask, 'mask')] : []),
  ]);
  const sent = offer.codec.request(request, files, codecCall);
  const bill = (usage: unknown, made: number): void => meter(meteredOf(usage, made, request, price));
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

interface ImageUsage {
  readonly images: number;
  readonly input: number;
  readonly imageInput: number;
  readonly output: number;
  /** Output tokens that are text: models also write some. */
  readonly written?: number;
}

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

function mostOf({ prompt, n, size, quality, partial_images: partial, images = [], mask }: ImageRequest): ImageUsage {
  const count = n ?? 1;
  const [width = 0, height = 0] = (size ?? '').split('x').map(Number);
  const pixels = width * height > 0 ? width * height : LARGEST_USUAL;
  const output =
    Math.ceil(pixels / PIXELS_PER_TOKEN / (SHARES[quality ?? ''] ?? 1)) + (partial ?? 0) * TOKENS_OF_PARTIAL;
  const imageInput = (images.length + (mask ? 1 : 0)) * TOKENS_OF_INPUT;
  return { images: count, input: estimateTextTokens(prompt) + imageInput, imageInput, output: output * count };
}

function meteredOf(usage: unknown, made: number, request: ImageRequest, price: Price | undefined): Metered {
  const reported = readObject(usage);
  const input = readCount(reported['input_tokens']);
  const output = readCount(reported['output_tokens']);
  const isByImage = price?.fees?.[IMAGES] !== undefined;
  const providerCost = readCost(reported);
  if (isByImage || !input || !output) {
    const count = Math.max(made, 1);
    const guess = costOfImages({ ...mostOf({ ...request, n: count }), images: count }, price);
    return { ...guess, estimated: !isByImage, providerCost };
  }
  const imageInput = Math.min(input, readCount(readObject(reported['input_tokens_details'])['image_tokens']) ?? 0);
  const written = Math.min(output, readCount(readObject(reported['output_tokens_details'])['text_tokens']) ?? 0);
  return {
    ...costOfImages({ images: made, input, imageInput, output, written }, price),
    estimated: false,
    providerCost,
  };
}

/** Cost by image if the price has a fee for images, otherwise by token. */
function costOfImages(
  { images, input, imageInput, output, written = 0 }: ImageUsage,
  price: Price | undefined,
): Metered {
  const parts: CostPart[] = [];
  if (price?.fees?.[IMAGES] !== undefined) {
    const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const cost = costOf({ ...none, units: { [IMAGES]: images } }, price, undefined, undefined, parts);
    return { units: { [IMAGES]: images }, cost, parts };
  }
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { image_tokens: imageInput },
    completion_tokens_details: { image_tokens: output - written },
  };
  const cost = costOf(usage, price, undefined, undefined, parts);
  return { units: { prompt_tokens: input, completion_tokens: output }, cost, parts };
}
