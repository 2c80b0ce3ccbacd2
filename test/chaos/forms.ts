/** Request formats of a chat. */
export interface Form {
  readonly name: string;
  readonly path: string;
  readonly stream: boolean;
  /** Share of all calls. */
  readonly share: number;
  body(model: string, text: string): object;
  /** Returns true if the body of a 200 is complete. */
  isWhole(text: string): boolean;
  /** Returns true if a stream already contains content. */
  hasContent(text: string): boolean;
  /** Returns true if a stream ends with an error. */
  hasError(text: string): boolean;
}

/** Output limit of every request. */
export const MAX_TOKENS = 200;

const parses = (text: string): boolean => {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
};
const whole = { isWhole: parses, hasContent: () => false, hasError: () => false };

const chat = (stream: boolean, share: number): Form => ({
  ...{ name: stream ? 'chat, streamed' : 'chat, whole', path: '/v1/chat/completions', stream, share },
  body: (model, text) => ({ model, stream, max_tokens: MAX_TOKENS, messages: [{ role: 'user', content: text }] }),
  ...(stream
    ? {
        isWhole: (text) => text.trimEnd().endsWith('data: [DONE]') && !text.includes('data: {"error"'),
        hasContent: (text) => /"content":"[^"]/.test(text),
        hasError: (text) => text.includes('data: {"error"'),
      }
    : whole),
});

const messages = (stream: boolean, share: number): Form => ({
  ...{ name: stream ? 'Messages, streamed' : 'Messages, whole', path: '/v1/messages', stream, share },
  body: (model, text) => ({ model, stream, max_tokens: MAX_TOKENS, messages: [{ role: 'user', content: text }] }),
  ...(stream
    ? {
        isWhole: (text) => text.includes('event: message_stop') && !text.includes('event: error'),
        hasContent: (text) => text.includes('text_delta'),
        hasError: (text) => text.includes('event: error'),
      }
    : whole),
});

const responses = (stream: boolean, share: number): Form => ({
  ...{ name: stream ? 'Responses, streamed' : 'Responses, whole', path: '/v1/responses', stream, share },
  body: (model, text) => ({ model, stream, max_output_tokens: MAX_TOKENS, store: false, input: text }),
  ...(stream
    ? {
        isWhole: (text) => text.includes('event: response.completed'),
        hasContent: (text) => text.includes('response.output_text.delta'),
        hasError: (text) => text.includes('event: response.failed'),
      }
    : whole),
});

export const FORMS: readonly Form[] = Object.freeze([
  chat(false, 0.25),
  chat(true, 0.3),
  messages(false, 0.1),
  messages(true, 0.15),
  responses(false, 0.1),
  responses(true, 0.1),
]);

/** Selects the format for a number between 0 and 1. */
export function formOf(drawn: number): Form {
  let left = drawn;
  for (const form of FORMS) {
    left -= form.share;
    if (left < 0) return form;
  }
  return FORMS[0] as Form;
}
