import {
  type ChatMessage,
  type DialectInput,
  type DialectRequest,
  GatewayError,
  type JsonObject,
} from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import { PASSED } from './schema.ts';

export type CompletionBody = JsonObject;

const OWN = ['model', 'prompt', 'suffix', 'max_tokens', 'echo', 'best_of', 'logprobs'] as const;
const KNOWN: ReadonlySet<string> = new Set([...OWN, ...PASSED]);

/** What a chat model is told when it is to write what belongs between two texts. */
const FILL_IN =
  'You complete text. The user gives the text before a gap between <prefix> and </prefix> and the text after it between <suffix> and </suffix>. Reply with exactly the text that belongs in the gap, and nothing else: no explanation, no code fence, no repetition of what stands around it.';

/** A completion as a chat: the prompt is what the user says. */
export function readCompletion({ body }: DialectInput<CompletionBody>): DialectRequest {
  const prompt = promptOf(body);
  const { model, max_tokens: limit, n, best_of: best, logprobs, echo } = body;
  if (typeof best === 'number' && best !== (n ?? 1)) {
    throw invalid('best_of', 'must be equal to `n`, or be left out: chat models choose no best of several');
  }
  if (typeof logprobs === 'number' && echo === true) {
    throw invalid('logprobs', 'must not stand beside `echo`: chat models tell no probabilities of a prompt');
  }
  const passed = Object.entries(body).filter(([name, value]) => PASSED.includes(name) && isSet(value));
  const others = Object.entries(body).filter(([name, value]) => !KNOWN.has(name) && isSet(value));
  return {
    request: {
      model: String(model),
      messages: messagesOf(prompt, body['suffix']),
      ...(typeof limit === 'number' && { max_completion_tokens: limit }),
      ...(typeof logprobs === 'number' && { logprobs: true, ...(logprobs > 0 && { top_logprobs: logprobs }) }),
      ...Object.fromEntries(passed),
      ...(others.length > 0 && { dialect_fields: { completions: Object.fromEntries(others) } }),
    },
    ...(others.length > 0 && { dropped: others.map(([name]) => name) }),
    place: placeOf,
  };
}

/** The one prompt of a request. */
export function promptOf({ prompt }: CompletionBody): string {
  const prompts = Array.isArray(prompt) ? prompt : [prompt];
  const [first] = prompts;
  if (typeof first !== 'string') {
    throw invalid('prompt', 'must be text: tokens of one model mean nothing to another one');
  }
  if (prompts.length > 1) {
    throw new GatewayError(
      'invalid_request',
      '`prompt` holds several prompts, and a chat has one: send a request for each of them.',
      { param: 'prompt' },
    );
  }
  return first;
}

function messagesOf(prompt: string, suffix: unknown): readonly ChatMessage[] {
  if (typeof suffix !== 'string' || suffix === '') return [{ role: 'user', content: prompt }];
  const content = `<prefix>${prompt}</prefix><suffix>${suffix}</suffix>`;
  return [
    { role: 'system', content: FILL_IN },
    { role: 'user', content },
  ];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function placeOf(param: string): string {
  if (param.startsWith('messages')) return 'prompt';
  if (param === 'max_completion_tokens') return 'max_tokens';
  return param === 'top_logprobs' ? 'logprobs' : param;
}
