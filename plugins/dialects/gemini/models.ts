import { type DialectModels, type ListedModel, parseJson } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';

const METHODS: readonly string[] = Object.freeze(['generateContent', 'streamGenerateContent', 'countTokens']);
const DEFAULT_PAGE = 50;
const MAX_PAGE = 1000;

/** The models that a caller may use, as `models.list` and `models.get` of Google's API show them. */
export const GEMINI_MODELS: DialectModels = Object.freeze({
  path: '/v1beta/models',
  header: 'x-goog-api-key',
  list(models: readonly ListedModel[], query: Readonly<Record<string, string>>) {
    const size = readPageSize(query['pageSize'] ?? query['page_size']);
    const start = readPageToken(models, query['pageToken'] ?? query['page_token']);
    const page = models.slice(start, start + size);
    const last = page.at(-1);
    const isMore = last !== undefined && start + size < models.length;
    return { models: page.map(modelOf), ...(isMore && { nextPageToken: tokenOf(last.id) }) };
  },
  one: modelOf,
});

function modelOf({ id, ownedBy, contextWindow, maxOutput }: ListedModel): object {
  return {
    name: `models/${id}`,
    version: '001',
    displayName: id,
    description: `Served by ${ownedBy}.`,
    ...(contextWindow !== undefined && { inputTokenLimit: contextWindow }),
    ...(maxOutput !== undefined && { outputTokenLimit: maxOutput }),
    supportedGenerationMethods: METHODS,
  };
}

function readPageSize(text: string | undefined): number {
  if (text === undefined || text === '' || text === '0') return DEFAULT_PAGE;
  const size = parseJson(text);
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 0)
    throw invalid('pageSize', 'must be a whole number that is not negative');
  return Math.min(size, MAX_PAGE);
}

/** A page begins behind the model that the last one ended with, so that a model which comes or goes moves no other page. */
function readPageToken(models: readonly ListedModel[], token: string | undefined): number {
  if (token === undefined || token === '') return 0;
  const at = models.findIndex(({ id }) => tokenOf(id) === token);
  if (at < 0) throw invalid('pageToken', 'is not the `nextPageToken` of a page of this list; begin again without it');
  return at + 1;
}

function tokenOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}
