import type {
  AssistantMessage,
  ChatChoice,
  ChatChunk,
  ChatResponse,
  ChunkChoice,
  NativeFinish,
  ToolCall,
  ToolCallDelta,
  Usage,
} from '../../../core/index.ts';

/** The fields of a delta that are put together here; a stream with others is not kept. */
const KNOWN: ReadonlySet<string> = new Set(
  'role content refusal reasoning_content reasoning_details annotations tool_calls'.split(' '),
);

/** One choice as far as it has come. */
interface JoinedChoice {
  content: string | null;
  refusal: string | null;
  reasoning: string | undefined;
  readonly details: NonNullable<AssistantMessage['reasoning_details']>[number][];
  readonly annotations: NonNullable<AssistantMessage['annotations']>[number][];
  readonly calls: Map<number, { id: string; name: string; text: string; more: object }>;
  finish: ChatChoice['finish_reason'] | undefined;
  native: NativeFinish | undefined;
}

/** Puts the chunks of a stream together to the response that it is. */
export interface ChunkJoiner {
  push(chunk: ChatChunk): void;
  /** Undefined when it did not come to an end, or has what cannot be put together. */
  response(): ChatResponse | undefined;
}

export function createChunkJoiner(): ChunkJoiner {
  const choices = new Map<number, JoinedChoice>();
  let head: Pick<ChatChunk, 'id' | 'created' | 'model'> | undefined;
  let usage: Usage | undefined;
  let isKnown = true;
  const add = (choice: ChunkChoice): void => {
    const known = choices.get(choice.index) ?? emptyChoice();
    choices.set(choice.index, known);
    const hasOther = Object.entries(choice.delta).some(([name, value]) => !KNOWN.has(name) && value !== null);
    if (hasOther || (choice.logprobs ?? null) !== null) isKnown = false;
    addDelta(known, choice);
  };
  return {
    push({ id, created, model, choices: parts, usage: told }) {
      head ??= { id, created, model };
      usage = told ?? usage;
      for (const choice of parts) add(choice);
    },
    response() {
      const joined = [...choices]
        .sort(([a], [b]) => a - b)
        .flatMap(([index, choice]) => joinChoice(index, choice) ?? []);
      if (!head || !isKnown || joined.length === 0 || joined.length < choices.size) return undefined;
      return { ...head, object: 'chat.completion', choices: joined, ...(usage && { usage }) };
    },
  };
}

function emptyChoice(): JoinedChoice {
  return {
    ...{ content: null, refusal: null, reasoning: undefined, finish: undefined, native: undefined },
    ...{ details: [], annotations: [], calls: new Map() },
  };
}

function addDelta(choice: JoinedChoice, { delta, finish_reason, finish }: ChunkChoice): void {
  const { content, refusal, reasoning_content, reasoning_details = [], annotations = [], tool_calls = [] } = delta;
  if (typeof content === 'string') choice.content = (choice.content ?? '') + content;
  if (typeof refusal === 'string') choice.refusal = (choice.refusal ?? '') + refusal;
  if (typeof reasoning_content === 'string') choice.reasoning = (choice.reasoning ?? '') + reasoning_content;
  choice.details.push(...reasoning_details);
  choice.annotations.push(...annotations);
  for (const call of tool_calls) addCall(choice, call);
  choice.finish = finish_reason ?? choice.finish;
  choice.native = finish ?? choice.native;
}

function addCall({ calls }: JoinedChoice, { index, id, type: _type, function: part, ...more }: ToolCallDelta): void {
  const known = calls.get(index) ?? { id: '', name: '', text: '', more: {} };
  calls.set(index, {
    id: id ?? known.id,
    name: known.name + (part?.name ?? ''),
    text: known.text + (part?.arguments ?? ''),
    more: { ...known.more, ...more },
  });
}

function joinChoice(index: number, choice: JoinedChoice): ChatChoice | undefined {
  const { content, refusal, reasoning, details, annotations, calls, finish, native } = choice;
  if (!finish) return undefined;
  const tools = [...calls]
    .sort(([a], [b]) => a - b)
    .map(
      ([, { id, name, text, more }]): ToolCall => ({
        ...more,
        id,
        type: 'function',
        function: { name, arguments: text },
      }),
    );
  const message: AssistantMessage = {
    ...{ role: 'assistant', content, refusal },
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(annotations.length > 0 && { annotations }),
    ...(tools.length > 0 && { tool_calls: tools }),
  };
  return { index, message, finish_reason: finish, ...(native && { finish: native }), logprobs: null };
}
