import type { Call, ChatChunk, Outcome, PersonalData, PluginApi } from '../../../../contract/index.ts';
import type { BodyRules } from './config.ts';

/** Stored content of a call, in addition to its record. */
export interface StoredBodies {
  readonly request: StoredBody;
  /** Null if there was no response, or it is not text. */
  readonly response: StoredBody | null;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Documents with the content, by call id. */
export const BODIES = 'bodies';

const RESPONSE = Symbol('usage.response');

/** Stores the content of calls, redacted and bounded. Registers nothing while disabled. */
export function keepBodies(api: PluginApi, rules: BodyRules): void {
  const documents = api.keyv<StoredBodies>(BODIES);
  const isStored = ({ principal: { keyId } }: Call): boolean =>
    rules.keys === undefined || (keyId !== undefined && rules.keys.has(keyId));
  const redact = (text: string): string =>
    rules.patterns.reduce((shown, pattern) => shown.replace(pattern, '[redacted]'), api.redact(text));
  const clean = (value: unknown): StoredBody => cleanBody(value, rules.maxChars, redact);

  // Observes the provider's response without a change.
  api.hook('receive', {
    operations: ['chat'],
    order: 'post',
    handler(call, response) {
      if (isStored(call)) call.state.set(RESPONSE, () => response);
      return undefined;
    },
  });
  api.hook('stream', {
    operations: ['chat'],
    order: 'post',
    handler(call) {
      if (!isStored(call)) return undefined;
      const collector = createTextCollector(rules.maxChars);
      call.state.set(RESPONSE, collector.response);
      return {
        observes: true,
        push(chunk) {
          collector.push(chunk);
          return [];
        },
      };
    },
  });
  api.hook('finish', async (call: Call, { error }: Outcome) => {
    if (!isStored(call)) return;
    const response = (call.state.get(RESPONSE) as (() => unknown) | undefined)?.();
    const stored: StoredBodies = {
      request: clean(call.client?.body ?? call.request),
      response: response === undefined ? null : clean(response),
      ...(error && { error: { code: error.code, message: redact(error.message) } }),
    };
    await documents.set(call.id, stored, rules.keepMs);
  });
}

/** Number of call records read at once to find their content. */
const PAGE = 200;

/** Content of calls by a user, and of those for the same person as an end user. Found by their records. */
export function personalBodies(api: Pick<PluginApi, 'keyv' | 'books'>): PersonalData {
  const documents = api.keyv<StoredBodies>(BODIES);
  const walk = async (userId: string, look: (id: string) => Promise<boolean>): Promise<number> => {
    const found = new Set<string>();
    for (const filter of [{ userId }, { endUser: userId }])
      for (let after: string | undefined = ''; after !== undefined; ) {
        const { calls, next } = await api.books.ledger.calls({
          ...filter,
          limit: PAGE,
          ...(after !== '' && { after }),
        });
        await Promise.all(calls.map(async ({ id }) => (await look(id)) && found.add(id)));
        after = next;
      }
    return found.size;
  };
  return {
    name: 'bodies',
    count: ({ userId }) => walk(userId, async (id) => (await documents.get(id)) !== undefined),
    erase: ({ userId }) => walk(userId, (id) => documents.delete(id)),
  };
}

/** Stored request or response. */
interface StoredBody {
  /** Value, or the beginning of its JSON if it exceeds the limit. */
  readonly value: unknown;
  readonly isCut: boolean;
}

/** Longer than any secret: text this close to a cut is dropped, so that no partial secret is stored. */
const MARGIN = 4096;

/** Copies a value for operators: texts without secrets, at most `maxChars` as JSON. */
function cleanBody(value: unknown, maxChars: number, redact: (text: string) => string): StoredBody {
  if (value === undefined) return { value: null, isCut: false };
  let isCut = false;
  const text = JSON.stringify(value, (_name, leaf: unknown) => {
    if (typeof leaf !== 'string') return leaf;
    if (leaf.length <= maxChars) return redact(leaf);
    isCut = true;
    return `${redact(leaf.slice(0, maxChars + MARGIN)).slice(0, -MARGIN)}…`;
  });
  if (text.length <= maxChars) return { value: JSON.parse(text) as unknown, isCut };
  return { value: text.slice(0, maxChars), isCut: true };
}

/** Choice of a stream so far. */
interface CollectedChoice {
  readonly index: number;
  content: string;
  reasoning_content: string;
  readonly tool_calls: { name: string; arguments: string }[];
  finish_reason: string | null;
}

/** Joins the text of a stream, even of an interrupted one. */
interface TextCollector {
  push(chunk: ChatChunk): void;
  /** Undefined without any chunk. */
  response(): object | undefined;
}

/** Maximum number of choices and tool calls that are distinguished. */
const MAX_PARTS = 128;

/** Collects at most this many characters; the rest is dropped. */
function createTextCollector(maxChars: number): TextCollector {
  const choices = new Map<number, CollectedChoice>();
  let left = maxChars;
  const take = (text: unknown): string => {
    if (typeof text !== 'string' || left <= 0) return '';
    const taken = text.slice(0, left);
    left -= taken.length;
    return taken;
  };
  const choiceOf = (index: number): CollectedChoice | undefined => {
    const known = choices.get(index);
    if (known || choices.size >= MAX_PARTS) return known;
    const made = { index, content: '', reasoning_content: '', tool_calls: [], finish_reason: null };
    choices.set(index, made);
    return made;
  };
  return {
    push({ choices: parts }) {
      for (const { index, delta, finish_reason } of parts) {
        const choice = choiceOf(index);
        if (!choice) continue;
        choice.content += take(delta.content ?? delta.refusal);
        choice.reasoning_content += take(delta.reasoning_content);
        for (const { index: at, function: part } of delta.tool_calls ?? []) {
          if (at < 0 || at >= MAX_PARTS) continue;
          choice.tool_calls[at] ??= { name: '', arguments: '' };
          choice.tool_calls[at].name += take(part?.name);
          choice.tool_calls[at].arguments += take(part?.arguments);
        }
        choice.finish_reason = finish_reason ?? choice.finish_reason;
      }
    },
    response() {
      return choices.size === 0 ? undefined : { choices: [...choices.values()] };
    },
  };
}
