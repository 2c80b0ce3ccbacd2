import { GatewayError, isObject, type NativeBody, type NativeRow, readString } from '../../../contract/index.ts';
import { inputItems, isSet } from './tables.ts';
import type { Item, ResponsesBody } from './types.ts';
import type { Output } from './write-output.ts';
import type { BlockSetting } from './write-tools.ts';

/**
 * Conversations that are compacted: by a route of their own, or by an item `compaction_trigger` that ends an input. What a vendor compacts
 * only that vendor reads; elsewhere a model sums the conversation up, and any model may read what it wrote.
 * Source: https://developers.openai.com/api/docs/guides/compaction
 */

/** The name by which providers say where their vendor compacts. */
export const COMPACT = 'responses/compact';

const TRIGGER: Item = Object.freeze({ type: 'compaction_trigger' });

/** What the vendors' endpoint takes; it keeps nothing. https://developers.openai.com/api/reference/resources/responses/methods/compact */
const FIELDS: ReadonlySet<string> = new Set([
  ...['model', 'input', 'instructions', 'service_tier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
]);

/** Written into every body that is passed on, and meaning nothing here. */
const MEANINGLESS: ReadonlySet<string> = new Set(['stream', 'store']);

/** The rows of a vendor that has the Responses API at a path: requests for responses, and to compact. */
export function responsesRows(path: string, row: Omit<NativeRow, 'path'>): Readonly<Record<string, NativeRow>> {
  // Before the query that some addresses have.
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

/** A request to compact as one for a response. */
export function withTrigger(body: ResponsesBody): ResponsesBody {
  return { ...body, input: [...inputItems(body.input), TRIGGER] };
}

/** Whether a request wants its conversation compacted, and no response. */
export function endsInTrigger({ input }: Pick<ResponsesBody, 'input'>): boolean {
  return Array.isArray(input) && isTrigger(input.at(-1));
}

export function isTrigger(item: unknown): boolean {
  return isObject(item) && item['type'] === TRIGGER['type'];
}

/** What a model that does not compact is asked for in the end. */
export const COMPACT_PROMPT = `Stop here, and do not go on with the task. Write a summary of this conversation by which somebody who sees nothing else of it can go on at once:
- what the user wants, and all that was said on how it is to be done;
- what was done and found out, with the names, places, figures, commands and texts that are still needed, word for word;
- what was decided, and why;
- what is not done yet, and what comes next.
Write the summary alone.`;

const BEFORE_SUMMARY =
  'The conversation up to here was compacted. This is the summary of it; go on from there, and do not mention it.\n\n';

/** Begins summaries. They are words of the caller's own conversation, which the caller could as well write as a message: they are not sealed. */
const PREFIX = 'tgs1.';

/** What a summary in an item is to a model; undefined for what a vendor compacted. */
export function summaryOf(item: Item): string | undefined {
  const packed = readString(item['encrypted_content']);
  if (!packed?.startsWith(PREFIX)) return undefined;
  return BEFORE_SUMMARY + Buffer.from(packed.slice(PREFIX.length), 'base64url').toString('utf8');
}

/** The items from the last one on that stands for all before it. */
export function sinceCompaction(items: readonly Item[]): readonly Item[] {
  const at = items.findLastIndex(({ type }) => type === 'compaction');
  return at < 0 ? items : items.slice(at);
}

/** The error for what another vendor or account compacted. */
export function foreignCompaction(param: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` was compacted by another provider, or for another account, and nobody else can read it. Send it to the model that compacted it, or send the conversation itself.`,
    { param },
  );
}

/** The output of a model that sums a conversation up: one item, whole at the end. Half a summary is none: the rest of the conversation would be lost. */
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
          'The model wrote no whole summary of the conversation, so it was not compacted. Go on with the conversation as it is, send less of it, or choose another model.',
          { param: 'input' },
        );
      item = {
        ...{ id: itemId('cmp', 0), type: 'compaction' },
        encrypted_content: PREFIX + Buffer.from(text.trim()).toString('base64url'),
      };
      emit('response.output_item.added', { output_index: 0, item });
      emit('response.output_item.done', { output_index: 0, item });
    },
    items: () => (item ? [item] : []),
  };
}

/** What of a request has no place in one for a summary: the form of a response, and which tool is to be called. */
export function withoutForm(body: ResponsesBody): ResponsesBody {
  return { ...body, text: null, tool_choice: null, top_logprobs: null };
}
