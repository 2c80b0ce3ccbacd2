import { isCount, type JsonObject, readArray, readCount, readObject, readString } from '../../../contract/index.ts';
import type { FormFile, ImageOffer } from '../../formats/kit/index.ts';
import { imagesCodec } from '../../formats/openai-operations.ts';
import { base64Of, InvalidResult, type Job, respondWith, runModel, setNames } from './job.ts';
import { MARK, plainSettings } from './losses.ts';
import type { AiModel } from './package.ts';
import { NotTaken } from './write-options.ts';

export const IMAGES: ImageOffer['codec'] = {
  ...imagesCodec({}),
  request: ({ images: _, mask: __, ...input }, files, { model }) => ({
    path: '/images',
    body: { ...input, model, files },
  }),
};

/**
 * Generates or edits images, in as many calls as the package needs. Source:
 * https://github.com/vercel/ai/tree/main/packages/provider/src/image-model
 */
export const makeImages: Job = async (own, body, { signal: abortSignal, providerOptions, findLosses }) => {
  // Complete images become the events of a stream.
  const { model: id, prompt, n, size, files: given, stream: _, response_format: format, ...others } = body;
  const files = given as readonly FormFile[];
  const name = readString(id) ?? '';
  const model = own.model('images', name);
  if (files.length > 0) await assertEdits(model);
  if (files.some(({ field }) => field === 'mask') && model['supportsMaskInputs'] === false) throw noEdits();
  const images = files.filter(({ field }) => field !== 'mask').map(filePart);
  const mask = files.find(({ field }) => field === 'mask');
  const options = {
    ...{ prompt, providerOptions },
    ...{ aspectRatio: undefined, seed: undefined, size: size === 'auto' ? undefined : (size ?? undefined) },
    ...(images.length > 0 && { files: images }),
    ...(mask && { mask: filePart(mask) }),
  };
  const run = (all: JsonObject): PromiseLike<unknown> => runModel(model, 'doGenerate', all);
  const settings = plainSettings(options, { size: 'size' });
  const examined = { of: `images ${name}`, options, run, sample: { prompt: MARK, n: 1 }, settings };
  const { fields: lost = [] } = (await findLosses?.(examined)) ?? {};
  const counts = countsOf(isCount(n) ? n : 1, await mostOf(model));
  const results = await runTogether(counts, abortSignal, async (count, signal) =>
    readObject(await run({ ...options, n: count, abortSignal: signal })),
  );
  const warnings = results.flatMap((result) => readArray(result['warnings']));
  assertFiles(files, warnings);
  const made = results.flatMap((result) => readArray(result['images'])).map(base64Of);
  if (made.length === 0 || made.includes(undefined)) throw new InvalidResult('returned no image');
  const value = { data: made.map((image) => ({ b64_json: image })), ...usageOf(results) };
  const missing = setNames({ ...others, response_format: format === 'url' ? format : null });
  return respondWith(value, [...missing, ...lost], warnings);
};

/** Runs parallel calls. The first failure aborts the others, whose images would be paid for and lost. */
async function runTogether<T>(
  counts: readonly number[],
  signal: AbortSignal,
  run: (count: number, signal: AbortSignal) => Promise<T>,
): Promise<readonly T[]> {
  const failed = new AbortController();
  const both = AbortSignal.any([signal, failed.signal]);
  try {
    return await Promise.all(counts.map((count) => run(count, both)));
  } catch (error) {
    failed.abort(error);
    throw error;
  }
}

async function assertEdits(model: AiModel): Promise<void> {
  const supports = await (model['supportsFileInputs'] as PromiseLike<unknown> | undefined);
  if (model.specificationVersion === 'v2' || supports === false) throw noEdits();
}

/** Refuses images that were made without the files of the request. */
function assertFiles(files: readonly FormFile[], warnings: readonly unknown[]): void {
  const ignored = warnings.map(readObject).some(({ feature }) => feature === 'files' || feature === 'mask');
  if (files.length > 0 && ignored) throw noEdits();
}

function noEdits(): NotTaken {
  return new NotTaken('This model of the package has no `images/edits` of these files. Use another model.');
}

function filePart({ contentType, bytes }: FormFile): JsonObject {
  return { type: 'file', mediaType: contentType, data: bytes };
}

/** Maximum number of images in a call of the model. */
async function mostOf(model: AiModel): Promise<number> {
  const { maxImagesPerCall: most, modelId } = model;
  const limit: unknown = await (typeof most === 'function' ? most.call(model, { modelId }) : most);
  return isCount(limit) && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

/** Splits a number of images into numbers of single calls. */
function countsOf(images: number, most: number): readonly number[] {
  const counts: number[] = [];
  for (let left = images; left > 0; left -= most) counts.push(Math.min(left, most));
  return counts;
}

/** Tokens of all calls, if each has them. */
function usageOf(results: readonly JsonObject[]): { readonly usage?: JsonObject } {
  let [input, output] = [0, 0];
  for (const result of results) {
    const { inputTokens, outputTokens } = readObject(result['usage']);
    const [read, written] = [readCount(inputTokens), readCount(outputTokens)];
    if (read === undefined || written === undefined) return {};
    input += read;
    output += written;
  }
  return { usage: { input_tokens: input, output_tokens: output, total_tokens: input + output } };
}
