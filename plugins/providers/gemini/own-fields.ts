import { type ChatRequest, isObject, type JsonObject, readObject } from '../../../core/index.ts';

/** Fields that are written from the canonical request: what was checked and priced is not to be said a second time. */
const WRITTEN: ReadonlySet<string> = new Set(
  (
    'model contents systeminstruction tools toolconfig generationconfig cachedcontent labels servicetier stream maxoutputtokens temperature ' +
    'topp topk stopsequences candidatecount seed frequencypenalty presencepenalty responselogprobs logprobs responsemimetype ' +
    'responseschema responsejsonschema responsemodalities functioncallingconfig'
  ).split(' '),
);

/** What a caller of Gemini's own format said that the canonical request has no words for. */
export interface OwnFields {
  readonly top: JsonObject;
  readonly generationConfig: JsonObject;
  readonly toolConfig: JsonObject;
}

export function readOwnFields({ dialect_fields: fields }: ChatRequest): OwnFields {
  const own = readObject(fields?.['gemini']);
  const config = own['generationConfig'] ?? own['generation_config'];
  return {
    top: unwritten(own),
    generationConfig: unwritten(readObject(config)),
    toolConfig: unwritten(readObject(own['toolConfig'] ?? own['tool_config'])),
  };
}

/** A request with the cached content that it names in Gemini's own way where the field table sees it. */
export function withCachedContent(input: ChatRequest): ChatRequest {
  const own = readObject(input.dialect_fields?.['gemini']);
  const cached = own['cachedContent'] ?? own['cached_content'];
  return cached === undefined || isSet(input['cached_content']) ? input : { ...input, cached_content: cached };
}

/** `thinkingConfig` as a caller of the own format wrote it. */
export function ownThinking({ generationConfig }: OwnFields): JsonObject | undefined {
  const thinking = generationConfig['thinkingConfig'] ?? generationConfig['thinking_config'];
  return isObject(thinking) ? thinking : undefined;
}

function unwritten(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => isSet(value) && !WRITTEN.has(name.replaceAll('_', '').toLowerCase()),
    ),
  );
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
