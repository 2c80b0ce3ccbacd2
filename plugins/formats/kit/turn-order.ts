import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  GatewayError,
  isGatewayError,
  readArray,
  readString,
  type Schema,
} from '../../../contract/index.ts';

/** Order of turns that a model's vendor accepts. */
export interface TurnOrder {
  /**
   * `anywhere`: order of the caller. `first`: leading system messages are joined, later ones move into user turns.
   * `none`: all move.
   */
  readonly systemMessages: 'anywhere' | 'first' | 'none';
  /** `user-or-tool`: adds a final user turn if it is missing, except where the model continues the assistant's turn. */
  readonly lastRole: 'any' | 'user-or-tool';
  /** Joins adjacent turns of one role, and separates a tool result from the user turn after it. */
  readonly alternate: boolean;
}

/** Option `turnOrder` of a provider. */
export interface TurnOrderConfig extends Partial<TurnOrder> {
  /** By prefix of the model name, or `*`; the longest match wins. */
  readonly models?: Readonly<Record<string, Partial<TurnOrder>>>;
}

/** Order of vendors that accept what OpenAI accepts. */
export const ANY_ORDER: TurnOrder = Object.freeze({ systemMessages: 'anywhere', lastRole: 'any', alternate: false });

/** Order of servers whose models have chat templates. */
export const TEMPLATE_ORDER: TurnOrder = Object.freeze({
  systemMessages: 'first',
  lastRole: 'user-or-tool',
  alternate: false,
});

/** Models whose chat templates raise an error unless user and assistant alternate. */
const ALTERNATING = /(?:mis|minis|mix)tral|(?:dev|code|magi)stral|gemma|llama-?2\b/i;

/** Order of a model behind a server with chat templates, by its name. */
export function templateOrder(model: string): TurnOrder {
  return ALTERNATING.test(model) ? { ...TEMPLATE_ORDER, alternate: true } : TEMPLATE_ORDER;
}

const SYSTEM_MESSAGES: Schema = Object.freeze({
  enum: ['anywhere', 'first', 'none'],
  description:
    'Accepted places of system messages. `first` joins leading ones and moves later ones into user turns; `none` moves all into user turns.',
});

const RULES = Object.freeze({
  systemMessages: SYSTEM_MESSAGES,
  lastRole: {
    enum: ['any', 'user-or-tool'],
    description: 'Accepted role of the last message. `user-or-tool` adds a user turn after an assistant turn.',
  },
  alternate: {
    type: 'boolean',
    description: 'Joins consecutive messages of one role, for chat templates that require alternating roles.',
  },
} satisfies Readonly<Record<string, Schema>>);

const DESCRIPTION =
  'Order of turns that the models accept. Moved messages are reported in `x-tollgate-dropped`. Default: the vendor’s order.';

function optionOf(rules: Readonly<Record<string, Schema>>) {
  return Object.freeze({
    turnOrder: {
      type: 'object',
      additionalProperties: false,
      description: DESCRIPTION,
      properties: {
        ...rules,
        models: {
          type: 'object',
          description: 'Other rules for some models, by prefix of the name, or `*`. The longest match wins.',
          additionalProperties: { type: 'object', additionalProperties: false, properties: rules },
        },
      },
    },
  } satisfies Readonly<Record<string, Schema>>);
}

/** Option for vendors of OpenAI's chat completions. */
export const TURN_ORDER_OPTION = optionOf(RULES);

/** Option for vendors whose own format keeps system texts apart from messages and alternates turns itself. */
export const SYSTEM_ORDER_OPTION = optionOf({ systemMessages: SYSTEM_MESSAGES });

/** Returns the order for each model; the operator's configuration overrides the vendor's. */
export function readTurnOrder(
  { models = {}, ...own }: TurnOrderConfig = {},
  vendor: (model: string) => TurnOrder = () => ANY_ORDER,
): (model: string) => TurnOrder {
  const names = Object.keys(models).toSorted((one, other) => other.length - one.length);
  return (model) => {
    const name = names.find((one) => one !== '*' && model.startsWith(one)) ?? '*';
    return { ...vendor(model), ...own, ...models[name] };
  };
}

/** Properties of the codec's wire and model for the order. */
export interface OrderOptions {
  /** True if the wire keeps system texts apart from messages: leading ones stay unchanged, later ones move. */
  readonly isApart: boolean;
  /** True if the model continues a final assistant turn. */
  readonly continues: boolean;
}

/** Request with ordered turns. */
export interface Ordered {
  /** Same object if nothing changed. */
  readonly request: ChatRequest;
  /** Changed fields, for `x-tollgate-dropped`. */
  readonly dropped: readonly string[];
  /** Converts an error about a position in this request to the same position in the original request. */
  atOrigin(thrown: unknown): unknown;
}

const CLOSING = 'Continue.';

export function orderTurns(request: ChatRequest, order: TurnOrder, options: OrderOptions): Ordered {
  const rule = options.isApart && order.systemMessages === 'anywhere' ? 'first' : order.systemMessages;
  if (rule === 'anywhere' && order.lastRole === 'any') return { request, dropped: [], atOrigin: (thrown) => thrown };
  const { slots, isMoved } = placeSystemMessages(request.messages, rule, !options.isApart);
  const dropped = isMoved ? ['messages.system'] : [];
  const last = slots.at(-1)?.message;
  if (order.lastRole === 'user-or-tool' && last && last.role !== 'user' && last.role !== 'tool') {
    const isBegun = last.role === 'assistant' && (options.continues || isContinued(last, request));
    if (!isBegun && !last.tool_calls) {
      slots.push({ message: { role: 'user', content: CLOSING }, sources: [] });
      if (last.role === 'assistant') dropped.push('messages.prefix');
    }
  }
  const isSame =
    slots.length === request.messages.length && slots.every(({ message }, at) => message === request.messages[at]);
  return {
    request: isSame ? request : { ...request, messages: slots.map(({ message }) => message) },
    dropped,
    atOrigin: (thrown) => (isSame ? thrown : atOrigin(thrown, slots)),
  };
}

/** Returns true if the caller wants the last message continued: `prefix` of Mistral and DeepSeek, or vLLM's field. */
function isContinued(last: ChatMessage, request: ChatRequest): boolean {
  return last['prefix'] === true || request['continue_final_message'] === true;
}

/** Message with the sources of its parts. */
interface Slot {
  readonly message: ChatMessage;
  readonly sources: readonly Source[];
}

interface Source {
  /** Index of the message in the original request. */
  readonly index: number;
  /** Index of its first part in the new content. */
  readonly from: number;
  /** True if its parts differ from those of the original request. */
  readonly isMoved?: boolean;
}

/** System message that moves into a user turn. */
interface MovedText {
  readonly index: number;
  readonly parts: readonly ContentPart[];
}

const isSystem = ({ role }: ChatMessage): boolean => role === 'system' || role === 'developer';

function placeSystemMessages(
  messages: readonly ChatMessage[],
  rule: TurnOrder['systemMessages'],
  joins: boolean,
): { readonly slots: Slot[]; readonly isMoved: boolean } {
  const slotOf = (message: ChatMessage, index: number): Slot => ({ message, sources: [{ index, from: 0 }] });
  if (rule === 'anywhere') return { slots: messages.map(slotOf), isMoved: false };
  const end = messages.findIndex((message) => !isSystem(message));
  const leading = rule === 'none' ? 0 : end < 0 ? messages.length : end;
  const head = messages.slice(0, leading).map(slotOf);
  const slots = joins && leading > 1 ? [joinSystem(head)] : head;
  let isMoved = false;
  let waiting: MovedText[] = [];
  const addTurn = (): void => {
    if (waiting.length > 0) slots.push(userTurn(waiting));
    waiting = [];
  };
  for (const [at, message] of messages.slice(leading).entries()) {
    const index = leading + at;
    if (isSystem(message)) {
      const parts = movedParts(message);
      if (parts.length > 0) waiting.push({ index, parts });
      isMoved ||= parts.length > 0;
    } else if (message.role === 'user' && waiting.length > 0) {
      slots.push(userTurn(waiting, slotOf(message, index)));
      waiting = [];
    } else {
      // A result belongs to the call before it; any other turn follows the system message.
      if (message.role !== 'tool') addTurn();
      slots.push(slotOf(message, index));
    }
  }
  addTurn();
  return { slots, isMoved };
}

/** Joins leading system messages; those without text are omitted. */
function joinSystem(head: readonly Slot[]): Slot {
  const speaking = head.filter(({ message: { content } }) => content && content.length > 0);
  const [first = head[0], ...others] = speaking;
  if (!first) throw new TypeError('no message to join');
  return others.reduce(joinSlots, first);
}

/** Joins two slots; the fields are those of the first. */
function joinSlots(one: Slot, other: Slot): Slot {
  const from = partsOf(one.message.content).length;
  return {
    message: { ...one.message, content: joinContent(one.message.content, other.message.content) ?? '' },
    sources: [...one.sources, ...other.sources.map((source) => ({ ...source, from: from + source.from }))],
  };
}

/** User turn that begins with moved messages. */
function userTurn(moved: readonly MovedText[], user?: Slot): Slot {
  const reminders = moved.map(({ index, parts }): Slot => {
    const [first, ...others] = parts;
    const isPlain = first?.type === 'text' && Object.keys(first).length === 2 && others.length === 0;
    const content = isPlain ? String(first['text']) : parts;
    return { message: { role: 'user', content }, sources: [{ index, from: 0, isMoved: true }] };
  });
  const all = user ? [...reminders, user] : reminders;
  const joined = all.reduce(joinSlots);
  return user ? { ...joined, message: { ...user.message, content: joined.message.content ?? null } } : joined;
}

const TAG = 'system-reminder';
const OWN_TAGS = /<(?=\/?\s*system-reminder)/gi;

/** Text of a system message in tags, with its cache marks, then its other parts. */
function movedParts(message: ChatMessage): readonly ContentPart[] {
  const parts = partsOf(message.content);
  const texts = parts.flatMap((part) => (part.type === 'text' ? (readString(part['text']) ?? []) : []));
  const words = texts.filter((text) => text !== '').join('\n\n');
  const others = parts.filter(({ type }) => type !== 'text');
  if (words === '') return others;
  const mark = parts.findLast((part) => part.type === 'text' && part['cache_control'])?.['cache_control'];
  const control = mark ?? message.cache_control;
  const text = `<${TAG}>\n${words.replace(OWN_TAGS, '&lt;')}\n</${TAG}>`;
  return [{ type: 'text', text, ...(control ? { cache_control: control } : {}) }, ...others];
}

function partsOf(content: ChatMessage['content']): readonly ContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return readArray(content) as readonly ContentPart[];
}

/** Joins two contents: a text if both are texts. */
function joinContent(one: ChatMessage['content'], other: ChatMessage['content']): ChatMessage['content'] {
  if (!one || one.length === 0) return other;
  if (!other || other.length === 0) return one;
  if (typeof one === 'string' && typeof other === 'string') return `${one}\n\n${other}`;
  return [...partsOf(one), ...partsOf(other)];
}

const PLACE = /^messages\[(\d+)\](?:(\.content)(?:\[(\d+)\])?)?(.*)$/;

function atOrigin(thrown: unknown, slots: readonly Slot[]): unknown {
  if (!isGatewayError(thrown) || thrown.param === undefined) return thrown;
  const param = originOf(thrown.param, slots);
  if (param === thrown.param) return thrown;
  return new GatewayError(thrown.code, thrown.message.replaceAll(thrown.param, param), { param });
}

function originOf(param: string, slots: readonly Slot[]): string {
  const [, at, content = '', part, rest = ''] = PLACE.exec(param) ?? [];
  const sources = at === undefined ? [] : (slots[Number(at)]?.sources ?? []);
  const index = Number(part ?? 0);
  const source = part === undefined ? sources.at(-1) : sources.findLast(({ from }) => from <= index);
  if (!source) return param;
  const place = `messages[${source.index}]${content}`;
  if (part === undefined) return place + rest;
  return source.isMoved ? place : `${place}[${index - source.from}]${rest}`;
}

/** Assistant message between a tool result and a user turn. */
const BRIDGE: ChatMessage = Object.freeze({ role: 'assistant', content: 'OK.' });

/**
 * Merges or separates messages so that adjacent ones have different roles. Returns the same array if they already do.
 */
export function alternateTurns(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const turns: ChatMessage[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const isJoined = last?.role === message.role && message.role !== 'tool' && !last.tool_calls;
    if (last && isJoined) turns[turns.length - 1] = joinMessages(last, message);
    else if (last?.role === 'tool' && message.role === 'user') turns.push(BRIDGE, message);
    else turns.push(message);
  }
  return turns.length === messages.length && turns.every((turn, at) => turn === messages[at]) ? messages : turns;
}

/** Fields in which servers return the text of a model's thinking. */
const THINKING: readonly string[] = Object.freeze(['reasoning_content', 'reasoning']);

function joinMessages(one: ChatMessage, other: ChatMessage): ChatMessage {
  const thinking = THINKING.flatMap((name) => {
    const texts = [one[name], other[name]].filter((text) => typeof text === 'string' && text !== '');
    return texts.length > 0 ? [[name, texts.join('\n\n')] as const] : [];
  });
  const content = joinContent(one.content, other.content);
  return { ...one, ...other, ...(content !== undefined && { content }), ...Object.fromEntries(thinking) };
}
