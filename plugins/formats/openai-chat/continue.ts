/** How vendors with OpenAI's chat completions go on with an answer that was begun. */
import { type Continuation, type HttpRequest, readArray, readObject, type Schema } from '../../../contract/index.ts';
import type { Differences } from './types.ts';

/** The request with `prefix: true` at the answer that was begun, as DeepSeek and Mistral have it. */
export function withPrefix(request: HttpRequest): HttpRequest {
  const body = readObject(request.body);
  const messages = readArray(body['messages']);
  const last = { ...readObject(messages.at(-1)), prefix: true };
  return { ...request, body: { ...body, messages: [...messages.slice(0, -1), last] } };
}

/** How servers that stand for many models go on with a begun answer, by the operator's word for it. */
const WAYS_TO_CONTINUE: Readonly<Record<string, Continuation>> = Object.freeze({
  last_message: {},
  prefix: { write: withPrefix },
  // Of vLLM and SGLang, which begin a new answer otherwise.
  continue_final_message: {
    write: (request) => ({
      ...request,
      body: { ...request.body, add_generation_prompt: false, continue_final_message: true },
    }),
  },
});

/** Of vendors whose models differ in it. */
export const CONTINUE_OPTION = Object.freeze({
  continues: {
    enum: Object.keys(WAYS_TO_CONTINUE),
    description:
      'How its models go on with a begun answer, for aliases with `resume`: when it is the `last_message`; when that has `prefix: true`; or when the request says `continue_final_message`, as vLLM has it. Not for models that repeat what was begun. None goes on unless set.',
  },
} satisfies Readonly<Record<string, Schema>>);

/** What the operator said of it. */
export function continuesAs(way: unknown): Pick<Differences, 'continues'> {
  const known = typeof way === 'string' ? WAYS_TO_CONTINUE[way] : undefined;
  return known ? { continues: () => known } : {};
}
