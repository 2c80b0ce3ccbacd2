import { isObject, parseJson } from '../../../core/index.ts';
import type { Block, BlockSetting } from './blocks.ts';
import { createCustomInput } from './custom-input.ts';

export interface ToolBlock extends Block {
  readonly kind: 'tool';
  arguments(delta: string): void;
  name(name: string): void;
}

/** An item `function_call`, or `custom_tool_call` with plain input. */
export function createToolBlock(setting: BlockSetting, callId: string, name: string): ToolBlock {
  return setting.callerOf(name).kind === 'custom'
    ? createCustomBlock(setting, callId, name)
    : createFunctionBlock(setting, callId, name);
}

function createFunctionBlock({ emit, itemId, callerOf }: BlockSetting, callId: string, first: string): ToolBlock {
  let name = first;
  let text = '';
  let at: number | undefined;
  /** Whole arguments have nothing after them: what a provider sends all the same is none. */
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
      // What was cut is never told as done: clients run a tool at that event.
      if (!isCut)
        emit('response.function_call_arguments.done', {
          ...{ item_id: itemId('fc', index), output_index: index, name: own, arguments: text },
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
  /** Whole arguments have nothing after them: what a provider sends all the same is none. */
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
