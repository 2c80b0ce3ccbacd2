import { isObject, parseJson, type ReasoningDetail, readObject } from '../../../contract/index.ts';
import type { CallerTool } from './read-tools.ts';
import { customInput } from './tables.ts';
import type { Item } from './types.ts';

/** Shared setting of the blocks of a response. */
export interface BlockSetting {
  /** Sends an event of the open item. */
  emit(type: string, fields: Readonly<Record<string, unknown>>): void;
  /** Id of the item at an output index; stable for the same response and index. */
  itemId(prefix: string, index: number): string;
  callerOf(name: string): CallerTool;
  readonly omit: ((what: string) => void) | undefined;
  /** Seals reasoning data that the vendor requires back, if the caller wants it. */
  seal(details: readonly ReasoningDetail[]): string | undefined;
}

/** Output item in progress. Input is buffered until it is started. */
export interface Block {
  readonly kind: 'reasoning' | 'message' | 'tool' | 'image' | 'mcp';
  /** Opens the item at its index, with the buffered content. */
  start(index: number): void;
  /** Returns true if the block accepts nothing more once another block has started. */
  isWhole(): boolean;
  /** Closes a started item and returns it; `isCut` is true if the response ended within it. */
  finish(isCut: boolean): Item;
  /** Current state of the item, such as for a failed response. */
  item(status: 'in_progress' | 'completed' | 'incomplete', index: number): Item;
}

export interface ToolBlock extends Block {
  readonly kind: 'tool';
  arguments(delta: string): void;
  name(name: string): void;
}

/** Creates a `function_call` item, a `custom_tool_call` with plain input, or a `tool_search_call`. */
export function createToolBlock(setting: BlockSetting, callId: string, name: string): ToolBlock {
  const { kind } = setting.callerOf(name);
  if (kind === 'search') return createSearchBlock(setting, callId);
  return kind === 'custom' ? createCustomBlock(setting, callId, name) : createFunctionBlock(setting, callId, name);
}

/** Its arguments are an object, which clients get whole. */
function createSearchBlock({ emit, itemId }: BlockSetting, callId: string): ToolBlock {
  let text = '';
  let at = 0;
  /** True once the arguments are complete; later input is ignored. */
  let isOver = false;
  const block: ToolBlock = {
    kind: 'tool',
    name: () => {},
    arguments(delta) {
      if (!isOver) text += delta;
    },
    start(index) {
      at = index;
      emit('response.output_item.added', {
        output_index: at,
        item: { ...block.item('in_progress', at), arguments: {} },
      });
    },
    isWhole: () => isWholeJson(text),
    finish(wasCut) {
      isOver = true;
      const item = block.item(wasCut && !isWholeJson(text) ? 'incomplete' : 'completed', at);
      emit('response.output_item.done', { output_index: at, item });
      return item;
    },
    item: (status, index) => ({
      id: itemId('tsc', index),
      type: 'tool_search_call',
      execution: 'client',
      call_id: callId,
      status,
      arguments: readObject(parseJson(text)),
    }),
  };
  return block;
}

function createFunctionBlock({ emit, itemId, callerOf }: BlockSetting, callId: string, first: string): ToolBlock {
  let name = first;
  let text = '';
  let at: number | undefined;
  /** True once the arguments are complete; later input is ignored. */
  let isOver = false;
  const write = (delta: string): void => {
    if (at === undefined || delta === '') return;
    emit('response.function_call_arguments.delta', { item_id: itemId('fc', at), output_index: at, delta });
  };
  const block: ToolBlock = {
    kind: 'tool',
    name(given) {
      name = given;
    },
    arguments(delta) {
      if (isOver) return;
      text += delta;
      write(delta);
    },
    start(index) {
      at = index;
      const item = { ...block.item('in_progress', at), arguments: '' };
      emit('response.output_item.added', { output_index: at, item });
      write(text);
    },
    isWhole: () => isWholeJson(text),
    finish(wasCut) {
      const index = at ?? 0;
      const isCut = wasCut && !isWholeJson(text);
      if (text === '' && !isCut) block.arguments('{}');
      const { name: own } = callerOf(name);
      // Truncated arguments never get a `done` event: clients run a tool at that event.
      if (!isCut)
        emit('response.function_call_arguments.done', {
          item_id: itemId('fc', index),
          output_index: index,
          name: own,
          arguments: text,
        });
      isOver = true;
      const item = block.item(isCut ? 'incomplete' : 'completed', index);
      emit('response.output_item.done', { output_index: index, item });
      return item;
    },
    item: (status, index) => ({
      id: itemId('fc', index),
      type: 'function_call',
      status,
      arguments: text,
      call_id: callId,
      ...namesOf(callerOf, name),
    }),
  };
  return block;
}

function createCustomBlock({ emit, itemId, callerOf }: BlockSetting, callId: string, name: string): ToolBlock {
  const reader = createCustomInput();
  let text = '';
  let input = '';
  let at: number | undefined;
  /** True once the arguments are complete; later input is ignored. */
  let isOver = false;
  const write = (delta: string): void => {
    if (at === undefined || delta === '') return;
    emit('response.custom_tool_call_input.delta', { item_id: itemId('ctc', at), output_index: at, delta });
  };
  const add = (delta: string): void => {
    input += delta;
    write(delta);
  };
  const block: ToolBlock = {
    kind: 'tool',
    name: () => {},
    arguments(delta) {
      if (isOver) return;
      text += delta;
      add(reader.push(delta));
    },
    start(index) {
      at = index;
      emit('response.output_item.added', { output_index: at, item: { ...block.item('in_progress', at), input: '' } });
      write(input);
    },
    isWhole: () => isWholeJson(text),
    finish(wasCut) {
      const index = at ?? 0;
      const isCut = wasCut && !isWholeJson(text);
      add(reader.end());
      if (!isCut)
        emit('response.custom_tool_call_input.done', { item_id: itemId('ctc', index), output_index: index, input });
      isOver = true;
      const item = block.item(isCut ? 'incomplete' : 'completed', index);
      emit('response.output_item.done', { output_index: index, item });
      return item;
    },
    item: (status, index) => ({
      id: itemId('ctc', index),
      type: 'custom_tool_call',
      status,
      call_id: callId,
      input,
      ...namesOf(callerOf, name),
    }),
  };
  return block;
}

function namesOf(callerOf: BlockSetting['callerOf'], called: string) {
  const { name, namespace } = callerOf(called);
  return { name, ...(namespace !== undefined && { namespace }) };
}

function isWholeJson(text: string): boolean {
  return /\}\s*$/.test(text) && isObject(parseJson(text));
}

/** Extracts the plain input of a custom tool from the arguments of its replacement function, as they arrive. */
interface CustomInput {
  /** Returns the input in a piece of arguments. */
  push(text: string): string;
  /** Returns the remaining input at the end. */
  end(): string;
}

const OPENING = /^\s*\{\s*"input"\s*:\s*"/;
const ESCAPES: Readonly<Record<string, string>> = Object.freeze({
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
});
const UNICODE_LENGTH = 4;

function createCustomInput(): CustomInput {
  let text = '';
  /** Read position in the value of `input`; undefined until its start was found. */
  let at: number | undefined;
  let isOver = false;

  /** Returns the complete characters of the value so far. */
  function read(): string {
    if (at === undefined) {
      const opening = OPENING.exec(text);
      if (!opening) return '';
      at = opening[0].length;
    }
    let value = '';
    while (!isOver && at < text.length) {
      const character = text.charAt(at);
      if (character === '"') isOver = true;
      else if (character !== '\\') {
        value += character;
        at += 1;
      } else {
        const found = readEscape(text, at);
        if (!found) break;
        value += found.value;
        at += found.length;
      }
    }
    return value;
  }

  return {
    push(piece) {
      text += piece;
      return isOver ? '' : read();
    },
    // Arguments in another form are readable only when complete.
    end: () => (at === undefined ? customInput(text) : ''),
  };
}

/** Character of an escape sequence; undefined if incomplete. */
function readEscape(text: string, at: number): { readonly value: string; readonly length: number } | undefined {
  const name = text.charAt(at + 1);
  if (name === '') return undefined;
  if (name !== 'u') return { value: ESCAPES[name] ?? name, length: 2 };
  const digits = text.slice(at + 2, at + 2 + UNICODE_LENGTH);
  if (digits.length < UNICODE_LENGTH) return undefined;
  const code = Number.parseInt(digits, 16);
  return { value: Number.isNaN(code) ? '' : String.fromCharCode(code), length: 2 + UNICODE_LENGTH };
}
