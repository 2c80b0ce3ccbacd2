/** Grammar of a Responses stream: the allowed order of events, and the parts that must agree. */
import { isDeepStrictEqual } from 'node:util';

export type Event = Readonly<Record<string, unknown>> & { readonly type: string };
type Fields = Record<string, unknown>;

const TERMINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);
const LOGPROBS = new Set(['response.output_text.delta', 'response.output_text.done']);

/** All errors in a stream of events; empty if clients may rely on it. */
export function findDisorder(events: readonly Event[]): readonly string[] {
  const wrong: string[] = [];
  const say = (event: Event | undefined, what: string): void =>
    void wrong.push(`${String(event?.['sequence_number'])} ${event?.type}: ${what}`);
  for (const [at, event] of events.entries()) {
    if (event['sequence_number'] !== at) say(event, `should be number ${at}`);
    if (LOGPROBS.has(event.type) && !Array.isArray(event['logprobs'])) say(event, 'has no logprobs');
  }
  const [first, second] = events;
  if (first?.type !== 'response.created') say(first, 'is first');
  const last = events.at(-1);
  const ends = events.filter(({ type }) => TERMINAL.has(type));
  if (ends.length !== 1 || last !== ends[0]) say(last, `${ends.length} terminal events, or not at the end`);
  if (last?.type !== 'response.failed' && second?.type !== 'response.in_progress') say(second, 'is second');
  wrong.push(...findItemDisorder(events));
  return wrong;
}

interface Open {
  readonly index: unknown;
  readonly item: Fields;
  /** Texts of the parts of a message or a summary, arguments, or plain input. */
  readonly parts: { text: string; isDone: boolean }[];
  text: string;
  isDone: boolean;
}

function findItemDisorder(events: readonly Event[]): readonly string[] {
  const wrong: string[] = [];
  const done: unknown[] = [];
  let open: Open | undefined;
  for (const event of events) {
    const check = (isRight: boolean, what: string): void =>
      void (isRight || wrong.push(`${String(event['sequence_number'])} ${event.type}: ${what}`));
    const { type } = event;
    if (type === 'response.output_item.added') {
      check(open === undefined, 'while another item is open');
      check(event['output_index'] === done.length, 'is not the next item');
      open = { index: event['output_index'], item: event['item'] as Fields, parts: [], text: '', isDone: false };
    } else if (type === 'response.output_item.done') {
      checkDone(event, open, check);
      done.push(event['item']);
      open = undefined;
    } else if (TERMINAL.has(type)) {
      const { output } = event['response'] as { output: unknown };
      const isFailed = type === 'response.failed';
      check(isFailed || open === undefined, 'while an item is open');
      check(isFailed || isDeepStrictEqual(output, done), 'its output is not that of the events');
    } else if ('output_index' in event) {
      check(
        open !== undefined && open.index === event['output_index'] && open.item['id'] === event['item_id'],
        'for an item that is not open',
      );
      if (open) checkInner(event, open, check);
    }
  }
  return wrong;
}

type Check = (isRight: boolean, what: string) => void;

/** Events inside an item: parts in order, and deltas that add up to the text in `done`. */
function checkInner(event: Event, open: Open, check: Check): void {
  const { type, delta } = event;
  const index = (event['content_index'] ?? event['summary_index']) as number | undefined;
  if (index === undefined) {
    // A call of a server's tool runs after its arguments.
    if (/^response\.mcp_call\.(?:completed|failed)$/.test(type)) return;
    check(!open.isDone, 'after its done event');
    if (type.endsWith('.delta')) open.text += String(delta);
    if (!type.endsWith('.done')) return;
    check((event['arguments'] ?? event['input']) === open.text, 'is not the sum of its deltas');
    open.isDone = true;
    return;
  }
  if (type.endsWith('part.added')) {
    check(index === open.parts.length && open.parts.every(({ isDone }) => isDone), 'is not the next part');
    open.parts.push({ text: '', isDone: false });
    return;
  }
  const part = open.parts[index];
  check(part !== undefined && !part.isDone, 'for a part that is not open');
  if (!part) return;
  if (type.endsWith('.delta')) part.text += String(delta);
  else if (type.endsWith('part.done')) {
    const { text, refusal } = event['part'] as Fields;
    check((text ?? refusal) === part.text, 'its part is not the sum of the deltas');
    part.isDone = true;
  } else if (type.endsWith('.done'))
    check((event['text'] ?? event['refusal']) === part.text, 'is not the sum of its deltas');
}

function checkDone(event: Event, open: Open | undefined, check: Check): void {
  const item = event['item'] as Fields;
  check(
    open !== undefined && open.index === event['output_index'] && open.item['id'] === item['id'],
    'is not the open item',
  );
  if (!open) return;
  check(
    open.parts.every(({ isDone }) => isDone),
    'has an open part',
  );
  const parts = (item['content'] ?? item['summary'] ?? []) as readonly Fields[];
  const texts = parts.map(({ text, refusal }) => text ?? refusal);
  check(
    isDeepStrictEqual(
      texts,
      open.parts.map(({ text }) => text),
    ),
    'its parts are not those of the events',
  );
  const text = item['arguments'] ?? item['input'];
  check(text === undefined || text === open.text, 'its text is not the sum of the deltas');
  const isCall = text !== undefined;
  check(
    !isCall || open.isDone === (item['status'] === 'completed'),
    'a whole call is reported as done, a cut one is not',
  );
}
