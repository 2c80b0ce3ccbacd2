import {
  type ChatChunk,
  type ChatResponse,
  type DialectContext,
  type DialectStream,
  type FinishReason,
  type JsonObject,
  readArray,
  readObject,
  readString,
} from '../../../core/index.ts';
import { type CompletionBody, promptOf } from './read.ts';

const FINISH_REASON: Readonly<Record<FinishReason, string>> = Object.freeze({
  stop: 'stop',
  length: 'length',
  content_filter: 'content_filter',
  tool_calls: 'stop',
  function_call: 'stop',
});

type Context = DialectContext<CompletionBody>;

/** A chat completion as a text completion. */
export function writeCompletion(response: ChatResponse, context: Context): object {
  const lead = echoOf(context);
  return {
    ...headOf(response.model, context),
    choices: response.choices.map(({ index, message, finish_reason, logprobs }) => ({
      text: lead + (message.content ?? message.refusal ?? ''),
      index,
      logprobs: logprobsOf(logprobs, 0),
      finish_reason: FINISH_REASON[finish_reason],
    })),
    ...(response.usage && { usage: response.usage }),
  };
}

/** The chunks of a text completion have its very shape. */
export function streamCompletion(context: Context): DialectStream {
  const lead = echoOf(context);
  const written = new Map<number, number>();
  const choiceOf = ({ index, delta, finish_reason, logprobs }: ChatChunk['choices'][number]): readonly object[] => {
    const own = `${delta.content ?? ''}${delta.refusal ?? ''}`;
    const isFirst = !written.has(index);
    const offset = written.get(index) ?? 0;
    if (own === '' && !finish_reason && !(isFirst && lead !== '')) return [];
    written.set(index, offset + own.length);
    return [
      {
        text: isFirst ? lead + own : own,
        index,
        logprobs: logprobsOf(logprobs, offset),
        finish_reason: finish_reason ? FINISH_REASON[finish_reason] : null,
      },
    ];
  };
  return {
    push({ model, choices, usage }) {
      const told = choices.flatMap(choiceOf);
      const withUsage = context.request.stream_options?.include_usage === true && usage;
      if (told.length === 0 && !withUsage) return '';
      return frame({ ...headOf(model, context), choices: told, ...(withUsage && { usage }) });
    },
    end: () => 'data: [DONE]\n\n',
    fail: (error, requestId) => frame(error.toBody(requestId)),
  };
}

function headOf(model: string, { id, created }: Context): object {
  return { id: `cmpl-${id}`, object: 'text_completion', created, model };
}

/** What stands before each text: the prompt, for callers who want to have it back. */
function echoOf({ input: { body } }: Context): string {
  return body['echo'] === true ? promptOf(body) : '';
}

/** The probabilities of a chat in the form of before: lists side by side, with the place of each token in the text. */
function logprobsOf(logprobs: unknown, start: number): JsonObject | null {
  const tokens = readArray(readObject(logprobs)['content']).map(readObject);
  if (tokens.length === 0) return null;
  const texts = tokens.map(({ token }) => readString(token) ?? '');
  let offset = start;
  return {
    tokens: texts,
    token_logprobs: tokens.map(({ logprob }) => logprob ?? null),
    top_logprobs: tokens.map((token) => rivalsOf(token)),
    text_offset: texts.map((text) => {
      const at = offset;
      offset += text.length;
      return at;
    }),
  };
}

function rivalsOf(token: JsonObject): JsonObject {
  return Object.fromEntries(
    readArray(token['top_logprobs'])
      .map(readObject)
      .map(({ token: text, logprob }) => [readString(text) ?? '', logprob]),
  );
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
