import type { ChatChunk, ChatDelta, ChatResponse } from '../../contract/index.ts';
import type { ScriptedOutput } from './plugin-subject.ts';

/** Place of a response with model output. */
export interface OutputPlace {
  readonly where: string;
  /** Response with a text at this place. */
  choices(text: string): readonly ScriptedOutput[];
}

const callWith = (text: string): ScriptedOutput['tool_calls'] => [
  { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"city":"Paris"}' } },
  { id: 'call_2', type: 'function', function: { name: 'note', arguments: JSON.stringify({ text }) } },
];

export const PLACES: readonly OutputPlace[] = Object.freeze([
  { where: 'the content', choices: (text) => [{ content: text }] },
  { where: 'the second choice', choices: (text) => [{ content: 'One.' }, { content: text }] },
  { where: 'the content of two choices', choices: (text) => [{ content: text }, { content: text }] },
  { where: 'the reasoning', choices: (text) => [{ reasoning_content: text, content: 'Yes.' }] },
  { where: 'the refusal', choices: (text) => [{ refusal: text }] },
  {
    where: 'the arguments of a second tool call',
    choices: (text) => [{ content: 'I look.', ...withCalls(callWith(text)) }],
  },
]);

function withCalls(calls: ScriptedOutput['tool_calls']): ScriptedOutput {
  return calls ? { tool_calls: calls } : {};
}

/**
 * Content of a response in chunks of `letters` characters, the choices interleaved. Chunks that end a choice do not
 * pass transforms.
 */
export function chunksOf({ id, created, model, choices }: ChatResponse, letters: number): readonly ChatChunk[] {
  const columns = choices.map(({ index, message }) => {
    const deltas: readonly ChatDelta[] = [
      { role: 'assistant', content: '' },
      ...cut(message.reasoning_content, letters).map((reasoning_content) => ({ reasoning_content })),
      ...cut(message.content, letters).map((content) => ({ content })),
      ...cut(message.refusal, letters).map((refusal) => ({ refusal })),
      ...(message.tool_calls ?? []).flatMap(({ id: call, function: called }, at): readonly ChatDelta[] => [
        { tool_calls: [{ index: at, id: call, type: 'function', function: { name: called.name, arguments: '' } }] },
        ...cut(called.arguments, letters).map((piece) => ({
          tool_calls: [{ index: at, function: { arguments: piece } }],
        })),
      ]),
    ];
    return deltas.map((delta) => ({ index, delta, finish_reason: null, logprobs: null }));
  });
  const most = Math.max(0, ...columns.map((column) => column.length));
  return Array.from({ length: most }).flatMap((_, row) =>
    columns.flatMap((column): readonly ChatChunk[] => {
      const choice = column[row];
      return choice ? [{ ...{ id, created, model }, object: 'chat.completion.chunk', choices: [choice] }] : [];
    }),
  );
}

function cut(text: string | null | undefined, letters: number): readonly string[] {
  const all = [...(text ?? '')];
  return Array.from({ length: Math.ceil(all.length / letters) }, (_, at) =>
    all.slice(at * letters, (at + 1) * letters).join(''),
  );
}

/** All texts of responses or chunks, by place. */
export function contentOf(said: readonly (ChatResponse | ChatChunk)[]): Readonly<Record<string, string>> {
  const texts = new Map<string, string>();
  const add = (place: string, text: string | null | undefined): void => {
    if (text) texts.set(place, (texts.get(place) ?? '') + text);
  };
  for (const { choices } of said)
    for (const choice of choices) {
      const from = ('message' in choice ? choice['message'] : choice['delta']) as ChatDelta;
      add(`${choice.index} reasoning`, from.reasoning_content);
      add(`${choice.index} content`, from.content);
      add(`${choice.index} refusal`, from.refusal);
      for (const [at, call] of (from.tool_calls ?? []).entries())
        add(`${choice.index} arguments of call ${call.index ?? at}`, call.function?.arguments);
    }
  return Object.fromEntries([...texts].sort(([one], [other]) => (one < other ? -1 : 1)));
}
