import { GatewayError, isObject, type NativeBody, type NativeRow, readString } from '../../../contract/index.ts';
import { inputItems, isSet } from './tables.ts';
import type { Item, ResponsesBody } from './types.ts';
import type { Output } from './write-output.ts';
import type { BlockSetting } from './write-tools.ts';

/**
 * Compaction of conversations, by a separate route, or by an item `compaction_trigger` that ends an input. Only the
 * vendor can read its own compacted form. Elsewhere a model summarizes the conversation, and any model can read the
 * summary. Source: https://developers.openai.com/api/docs/guides/compaction
 */

/** Name under which providers register the vendor's endpoint for compaction. */
export const COMPACT = 'responses/compact';

const TRIGGER: Item = Object.freeze({ type: 'compaction_trigger' });

/**
 * Fields that the vendors' endpoint accepts; it stores nothing.
 * https://developers.openai.com/api/reference/resources/responses/methods/compact
 */
const FIELDS: ReadonlySet<string> = new Set([
  ...['model', 'input', 'instructions', 'service_tier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
]);

/** Fields written into every passthrough body, without effect here. */
const MEANINGLESS: ReadonlySet<string> = new Set(['stream', 'store']);

/** Passthrough rows of a vendor with the Responses API at a path: for responses, and for compaction. */
export function responsesRows(path: string, row: Omit<NativeRow, 'path'>): Readonly<Record<string, NativeRow>> {
  // Inserted before the query that some URLs have.
  const compact = path.replace(/(?=\?|$)/, '/compact');
  return { responses: { path, ...row }, [COMPACT]: { path: compact, ...row, body: compactBody } };
}

function compactBody(body: object): NativeBody {
  const fields = Object.entries(body);
  const dropped = fields.flatMap(([name, value]) =>
    FIELDS.has(name) || MEANINGLESS.has(name) || !isSet(value) || !/^\w{1,64}$/.test(name) ? [] : [name],
  );
  return {
    body: Object.fromEntries(fields.filter(([name]) => FIELDS.has(name))),
    ...(dropped.length > 0 && { dropped }),
  };
}

/** Converts a request to compact to a request for a response. */
export function withTrigger(body: ResponsesBody): ResponsesBody {
  return { ...body, input: [...inputItems(body.input), TRIGGER] };
}

/** Returns true if a request wants compaction of its conversation instead of a response. */
export function endsInTrigger({ input }: Pick<ResponsesBody, 'input'>): boolean {
  return Array.isArray(input) && isTrigger(input.at(-1));
}

export function isTrigger(item: unknown): boolean {
  return isObject(item) && item['type'] === TRIGGER['type'];
}

/** Final instruction for a model that does not compact. */
export const COMPACT_PROMPT = `Stop here, and do not go on with the task. Write a summary of this conversation by which somebody who sees nothing else of it can go on at once:
- what the user wants, and all that was said on how it is to be done;
- what was done and found out, with the names, places, figures, commands and texts that are still needed, word for word;
- what was decided, and why;
- what is not done yet, and what comes next.
Write the summary alone.`;

const BEFORE_SUMMARY =
  'The conversation up to here was compacted. This is the summary of it; go on from there, and do not mention it.\n\n';

/**
 * Prefix of summaries. They are not sealed: they are text of the caller's own conversation, which the caller could
 * also send as a message.
 */
const PREFIX = 'tgs1.';

/** Text of a summary item for a model; undefined for a vendor's compacted form. */
export function summaryOf(item: Item): string | undefined {
  const packed = readString(item['encrypted_content']);
  if (!packed?.startsWith(PREFIX)) return undefined;
  return BEFORE_SUMMARY + Buffer.from(packed.slice(PREFIX.length), 'base64url').toString('utf8');
}

/** Items from the last compaction, which replaces all earlier ones. */
export function sinceCompaction(items: readonly Item[]): readonly Item[] {
  const at = items.findLastIndex(({ type }) => type === 'compaction');
  return at < 0 ? items : items.slice(at);
}

/** Error for items compacted by another vendor or account. */
export function foreignCompaction(param: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` was compacted by another provider or for another account and cannot be read. Send it to the model that compacted it, or send the conversation itself.`,
    { param },
  );
}

/**
 * Output of a model that summarizes a conversation: one item, complete at the end. Throws for a partial summary, with
 * which the rest of the conversation would be lost.
 */
export function createCompaction({ emit, itemId }: BlockSetting): Output {
  let text = '';
  let item: Item | undefined;
  return {
    hasRefusal: false,
    reasoning: () => {},
    details: () => {},
    delta({ content }) {
      text += content ?? '';
    },
    close(finish) {
      if (finish !== 'stop' || text.trim() === '')
        throw new GatewayError(
          'invalid_request',
          'The conversation was not compacted, since the model did not complete the summary. Continue without compaction, send less of it, or use another model.',
          { param: 'input' },
        );
      item = {
        id: itemId('cmp', 0),
        type: 'compaction',
        encrypted_content: PREFIX + Buffer.from(text.trim()).toString('base64url'),
      };
      emit('response.output_item.added', { output_index: 0, item });
      emit('response.output_item.done', { output_index: 0, item });
    },
    items: () => (item ? [item] : []),
  };
}

/** Removes request fields that do not apply to a summary: the response format and the tool choice. */
export function withoutForm(body: ResponsesBody): ResponsesBody {
  return { ...body, text: null, tool_choice: null, top_logprobs: null };
}
