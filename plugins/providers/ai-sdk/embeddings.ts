import { isCount, type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';
import { InvalidResult, type Job, respondWith, runModel } from './job.ts';
import { MARK, plainSettings } from './losses.ts';
import { NotTaken } from './write-options.ts';

/**
 * Embeds texts, in as many calls as the package needs. Source:
 * https://github.com/vercel/ai/tree/main/packages/provider/src/embedding-model
 */
export const embed: Job = async (own, body, { signal: abortSignal, providerOptions, findLosses }) => {
  const id = readString(body['model']) ?? '';
  const model = own.model('embeddings', id);
  const texts = textsOf(body['input']);
  const wanted = body['dimensions'];
  const takesDimensions = model.specificationVersion === 'v4';
  const options = { abortSignal, providerOptions, ...(isCount(wanted) && takesDimensions && { dimensions: wanted }) };
  const most = await (model['maxEmbeddingsPerCall'] as PromiseLike<unknown> | undefined);
  const size = isCount(most) && most > 0 ? most : texts.length;
  const settings = plainSettings(options, { dimensions: 'dimensions' });
  const run = (all: JsonObject): PromiseLike<unknown> => runModel(model, 'doEmbed', all);
  const examined = { of: `embeddings ${id}`, options, run, sample: { values: [MARK] }, settings };
  const { fields: lost = [] } = (await findLosses?.(examined)) ?? {};
  const vectors: unknown[] = [];
  const warnings: unknown[] = [];
  let tokens: number | undefined = 0;
  for (let at = 0; at < texts.length; at += size) {
    const values = texts.slice(at, at + size);
    const result = readObject(await run({ ...options, values }));
    const made = readArray(result['embeddings']);
    // A caller would match texts with wrong vectors.
    if (made.length !== values.length)
      throw new InvalidResult(`returned ${made.length} embeddings for ${values.length} inputs`);
    vectors.push(...made);
    warnings.push(...readArray(result['warnings']));
    const { tokens: counted } = readObject(result['usage']);
    tokens = tokens !== undefined && isCount(counted) ? tokens + counted : undefined;
  }
  const value: JsonObject = {
    object: 'list',
    model: id,
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    ...(tokens !== undefined && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  };
  return respondWith(value, isCount(wanted) && !takesDimensions ? ['dimensions'] : lost, warnings);
};

function textsOf(input: unknown): readonly string[] {
  const texts = typeof input === 'string' ? [input] : readArray(input);
  if (!texts.every((text) => typeof text === 'string'))
    throw new NotTaken('The AI SDK has no embeddings of token ids. Send texts.');
  return texts;
}
