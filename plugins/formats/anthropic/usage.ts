import {
  isCount,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Usage,
} from '../../../contract/index.ts';

/**
 * Usage of a message, in both directions. Sources: https://platform.claude.com/docs/en/api/messages,
 * …/about-claude/pricing, …/build-with-claude/refusals-and-fallback
 */

/** Regions at the list price; older models report `not_available`. */
const LISTED_REGIONS: ReadonlySet<string> = new Set(['global', 'not_available']);

/**
 * Reads the usage of a message. Anthropic counts cached tokens next to `input_tokens`, OpenAI within the prompt's.
 * Undefined for missing or invalid counts.
 */
export function anthropicUsage(usage: unknown, model?: string, isRefused = false): Usage | undefined {
  if (!isObject(usage) || (usage['input_tokens'] ?? usage['output_tokens'] ?? undefined) === undefined)
    return undefined;
  const iterations = readArray(usage['iterations']).filter(isObject);
  const total = sumOf(countedIn(iterations).map(countsOf)) ?? countsOf(usage);
  // A request refused before any output is not billed, except for the tools that ran.
  const byModel = isRefused ? [] : sharesOf(iterations, model);
  if (!total || byModel === null) return undefined;
  const units = readUnits(usage['server_tool_use']);
  const thinking = readObject(usage['output_tokens_details'])['thinking_tokens'];
  const region = readString(usage['inference_geo']);
  return {
    ...usageOf(total),
    ...(isCount(thinking) && { completion_tokens_details: { reasoning_tokens: Math.min(thinking, total.output) } }),
    ...(units && { units }),
    // Reserved capacity (`priority`) counts at the list price, the maximum that its contract may set.
    ...(usage['speed'] === 'fast' && { service_tier: 'fast' }),
    ...(region !== undefined && !LISTED_REGIONS.has(region) && { inference_geo: region }),
    ...(byModel && { by_model: byModel }),
  };
}

/** Counts of the input, which add up to the prompt. */
const INPUT: readonly string[] = Object.freeze([
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
]);

/**
 * Merges the usage of a stream with that of a later event. Counts are cumulative, so later ones replace earlier ones
 * unless they are missing, null or lower. A later event may divide the same input between other counts. If both
 * have `input_tokens`, it replaces all counts of the input, or none of them if their sum would be lower.
 */
export function laterAnthropicUsage(before: JsonObject, later: JsonObject): JsonObject {
  const isComplete = [before, later].every((usage) => (usage['input_tokens'] ?? undefined) !== undefined);
  const replaces = isComplete && replacesInput(before, later);
  const merged = replaces ? withoutInput(before, later) : { ...before };
  for (const [name, value] of Object.entries(later)) {
    if (value === null || value === undefined || isLess(value, merged[name])) continue;
    if (!isComplete || replaces || !INPUT.includes(name)) merged[name] = value;
  }
  return merged;
}

/** Returns whether later counts of the input are higher, or as high and divided between input and cache. */
function replacesInput(before: JsonObject, later: JsonObject): boolean {
  const sum = inputOf(later);
  const isDivided = INPUT.some((name) => name !== 'input_tokens' && (later[name] ?? undefined) !== undefined);
  return sum > inputOf(before) || (isDivided && sum === inputOf(before));
}

function inputOf(usage: JsonObject): number {
  return INPUT.reduce((sum, name) => sum + Number(usage[name] ?? 0), 0);
}

/** Removes the counts of the input. The lifetime of cached tokens is kept unless fewer are written to the cache later. */
function withoutInput(before: JsonObject, later: JsonObject): Record<string, unknown> {
  const { cache_creation: lifetimes, cache_creation_input_tokens: written, ...others } = before;
  const kept = isLess(later['cache_creation_input_tokens'] ?? 0, written) ? undefined : lifetimes;
  for (const name of INPUT) delete others[name];
  return { ...others, ...(kept !== undefined && { cache_creation: kept }) };
}

function isLess(value: unknown, before: unknown): boolean {
  return typeof value === 'number' && typeof before === 'number' && value < before;
}

interface Counts {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Part of `cacheWrite` with a lifetime of one hour, at a higher price. */
  readonly cacheWriteHour: number;
}

/**
 * Iterations to sum in place of the totals, which exclude those of a compaction. None with a fallback, which the
 * totals include.
 */
function countedIn(iterations: readonly JsonObject[]): readonly JsonObject[] {
  const hasFallback = iterations.some(({ type }) => type === 'fallback_message');
  return hasFallback ? [] : iterations.filter(({ type }) => type === 'message' || type === 'compaction');
}

/**
 * Usage of each iteration by model, if a model other than `model` was used; null if counts are missing. An iteration
 * without output before a fallback is not billed.
 */
function sharesOf(iterations: readonly JsonObject[], model = ''): Usage['by_model'] | null {
  const hasFallback = iterations.some(({ type }) => type === 'fallback_message');
  const billed = iterations.filter((iteration) => !hasFallback || iteration['output_tokens'] !== 0);
  const modelOf = (iteration: JsonObject): string => readString(iteration['model']) ?? model;
  if (billed.every((iteration) => modelOf(iteration) === model)) return undefined;
  const shares: (Usage & { readonly model: string })[] = [];
  for (const iteration of billed) {
    const counts = countsOf(iteration);
    if (!counts) return null;
    shares.push({ model: modelOf(iteration), ...usageOf(counts) });
  }
  return shares;
}

function sumOf(all: readonly (Counts | undefined)[]): Counts | undefined {
  const [first, ...rest] = all;
  return rest.reduce(
    (sum, item) =>
      sum &&
      item && {
        input: sum.input + item.input,
        output: sum.output + item.output,
        cacheRead: sum.cacheRead + item.cacheRead,
        cacheWrite: sum.cacheWrite + item.cacheWrite,
        cacheWriteHour: sum.cacheWriteHour + item.cacheWriteHour,
      },
    first,
  );
}

/** Counts of a usage; undefined for an invalid one. */
function countsOf(usage: JsonObject): Counts | undefined {
  const counts = {
    input: usage['input_tokens'] ?? 0,
    output: usage['output_tokens'] ?? 0,
    cacheRead: usage['cache_read_input_tokens'] ?? 0,
    cacheWrite: usage['cache_creation_input_tokens'] ?? 0,
    cacheWriteHour: readObject(usage['cache_creation'])['ephemeral_1h_input_tokens'] ?? 0,
  };
  return Object.values(counts).every(isCount) ? (counts as Counts) : undefined;
}

function usageOf({ input, output, cacheRead, cacheWrite, cacheWriteHour }: Counts): Usage {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cacheRead,
      cache_write_tokens: cacheWrite,
      ...(cacheWriteHour > 0 && { cache_write_1h_tokens: cacheWriteHour }),
    },
  };
}

/** Uses of the vendor's own tools, by the vendor's names: `web_search_requests`, … */
function readUnits(used: unknown): Readonly<Record<string, number>> | undefined {
  const units = Object.entries(readObject(used)).filter((entry): entry is [string, number] => {
    const [, quantity] = entry;
    return typeof quantity === 'number' && quantity !== 0;
  });
  return units.length > 0 ? Object.fromEntries(units) : undefined;
}

/** Writes counts in this format, which excludes tokens read from or written to a cache from the input. */
export function writeUsage(usage: Usage | null | undefined, estimatedInput: number): JsonObject {
  const { cached_tokens: cached = 0, cache_write_tokens: written = 0 } = usage?.prompt_tokens_details ?? {};
  const hour = usage?.prompt_tokens_details?.cache_write_1h_tokens ?? 0;
  return {
    input_tokens: usage ? Math.max(usage.prompt_tokens - cached - written, 0) : estimatedInput,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    ...(written > 0 && {
      cache_creation: { ephemeral_5m_input_tokens: Math.max(written - hour, 0), ephemeral_1h_input_tokens: hour },
    }),
    output_tokens: usage?.completion_tokens ?? 0,
  };
}
