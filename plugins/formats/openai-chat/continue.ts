/** Continuation of an interrupted response at vendors with OpenAI's chat completions. */
import { type Continuation, type HttpRequest, readArray, readObject, type Schema } from '../../../contract/index.ts';
import type { Differences } from './types.ts';

/** Adds `prefix: true` to the interrupted response, as DeepSeek and Mistral require. */
export function withPrefix(request: HttpRequest): HttpRequest {
  const body = readObject(request.body);
  const messages = readArray(body['messages']);
  const last = { ...readObject(messages.at(-1)), prefix: true };
  return { ...request, body: { ...body, messages: [...messages.slice(0, -1), last] } };
}

/** Continuations for servers of many models, by the value of the operator's option. */
const WAYS_TO_CONTINUE: Readonly<Record<string, Continuation>> = Object.freeze({
  last_message: {},
  prefix: { write: withPrefix },
  // For vLLM and SGLang, which otherwise start a new response.
  continue_final_message: {
    write: (request) => ({
      ...request,
      body: { ...request.body, add_generation_prompt: false, continue_final_message: true },
    }),
  },
});

/** Option for vendors whose models differ in this. */
export const CONTINUE_OPTION = Object.freeze({
  continues: {
    enum: Object.keys(WAYS_TO_CONTINUE),
    description:
      'Resumption of partial responses, for aliases with `resume`: `last_message`, or a field (`prefix`, `continue_final_message`). Leave it unset for models that repeat the partial text.',
  },
} satisfies Readonly<Record<string, Schema>>);

/** Continuation configured by the operator. */
export function continuesAs(way: unknown): Pick<Differences, 'continues'> {
  const known = typeof way === 'string' ? WAYS_TO_CONTINUE[way] : undefined;
  return known ? { continues: () => known } : {};
}
