import {
  type ChatResponse,
  type DialectContext,
  type DialectStream,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type Schema,
  type Usage,
  writeJson,
} from '../../../contract/index.ts';
import { geminiError } from './errors.ts';
import { type InteractionBody, type Step, wantsSummaries } from './read-interactions.ts';
import type { GeminiPart } from './types.ts';
import { finishOf, writeParts } from './write-response.ts';
import { createCandidateWriter } from './write-stream.ts';

/** Writes interactions as Google's servers do: parts of generateContent's candidate as steps, whole and streamed. */

type Context = DialectContext<InteractionBody>;

export const INTERACTION: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:Interaction',
  type: 'object',
  required: ['id', 'status', 'steps'],
  properties: {
    id: { type: 'string' },
    object: { const: 'interaction' },
    status: { enum: ['completed', 'requires_action', 'incomplete', 'failed'] },
    model: { type: 'string' },
    steps: { type: 'array', items: { type: 'object', required: ['type'] } },
    usage: { type: 'object', properties: { total_tokens: { type: 'integer' } } },
  },
});

/** Fields of an interaction that are known at its start. */
function headOf({ id, created, input: { body } }: Context): JsonObject {
  const at = new Date(created * 1000).toISOString();
  return { id: `v1_${id}`, object: 'interaction', model: readString(body['model']), created: at, updated: at };
}

function usageOf({ prompt_tokens: input, completion_tokens: output, ...more }: Usage): JsonObject {
  const thoughts = more.completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    total_input_tokens: input,
    total_cached_tokens: more.prompt_tokens_details?.cached_tokens ?? 0,
    total_output_tokens: Math.max(0, output - thoughts),
    total_thought_tokens: thoughts,
    total_tokens: input + output,
  };
}

/** Status of an interaction by the finish reason of its candidate. */
function statusOf(finish: string, steps: readonly Step[]): JsonObject {
  if (finish === 'MAX_TOKENS') return { status: 'incomplete' };
  if (finish !== 'STOP')
    return { status: 'failed', errors: [{ code: finish, message: `The model ended with ${finish}.` }] };
  return { status: steps.some(({ type }) => type === 'function_call') ? 'requires_action' : 'completed' };
}

/** Complete interaction. */
function interactionOf(context: Context, steps: readonly Step[], finish: string, usage: Usage | undefined): JsonObject {
  const { previous_interaction_id: previous } = context.input.body;
  return {
    ...headOf(context),
    ...statusOf(finish, steps),
    steps,
    ...(usage && { usage: usageOf(usage) }),
    ...(typeof previous === 'string' && { previous_interaction_id: previous }),
  };
}

/** Body of a non-streaming response. */
export function writeInteraction({ choices: [choice], usage }: ChatResponse, context: Context): object {
  const writer = new StepWriter(() => {});
  let finish = 'OTHER';
  if (choice) {
    const { message, finish_reason: reason, finish: native } = choice;
    const { parts, isBroken } = writeParts(message, (data) => context.seal(data), wantsSummaries(context.input.body));
    let uncited: readonly unknown[] = message.annotations ?? [];
    for (const part of parts) {
      writer.add(part);
      if (part.text === undefined || part.thought) continue;
      writer.cite(uncited);
      uncited = [];
    }
    writer.cite(uncited);
    finish = finishOf(reason, native, isBroken);
  }
  return interactionOf(context, writer.close(), finish, usage);
}

/** Writes steps one after the other; a step begins when the previous one has ended. */
class StepWriter {
  readonly #emit: (type: string, fields: JsonObject) => void;
  readonly #steps: Step[] = [];
  #open: Record<string, unknown> | undefined;
  /** All text so far, for positions of citations. */
  #sentText = '';

  constructor(emit: (type: string, fields: JsonObject) => void) {
    this.#emit = emit;
  }

  add({ text = '', thought, thoughtSignature: signature, functionCall: called, inlineData: inline }: GeminiPart): void {
    if (called) this.#addCall(called, signature);
    else if (inline) this.#addMedia(inline);
    else if (thought) this.#writeThought(text, signature);
    else {
      if (text !== '') this.#writeText(text);
      // A text has no field for its signature, so the signature follows it.
      if (signature !== undefined) {
        this.close();
        this.#writeThought('', signature);
      }
    }
  }

  /** Adds citations to the last text. */
  cite(annotations: readonly unknown[]): void {
    const list = annotations.flatMap((annotation) => citationOf(readObject(annotation), this.#sentText));
    if (list.length === 0) return;
    const contents = this.#contents();
    const last = contents.findLast(({ type }) => type === 'text');
    if (last) last['annotations'] = [...readArray(last['annotations']), ...list];
    else contents.push({ type: 'text', text: '', annotations: list });
    this.#delta({ type: 'text_annotation_delta', annotations: list });
  }

  /** Ends the open step; returns all steps so far. */
  close(): readonly Step[] {
    if (this.#open) this.#emit('step.stop', { index: this.#steps.length - 1 });
    this.#open = undefined;
    return this.#steps;
  }

  #start(step: Record<string, unknown>): Record<string, unknown> {
    const open = this.#open;
    if (open?.['type'] === step['type'] && step['type'] !== 'function_call') return open ?? step;
    this.close();
    this.#steps.push(step);
    this.#open = step;
    this.#emit('step.start', { index: this.#steps.length - 1, step: { ...step } });
    return step;
  }

  #delta(delta: JsonObject): void {
    this.#emit('step.delta', { index: this.#steps.length - 1, delta });
  }

  #contents(): Record<string, unknown>[] {
    const step = this.#start({ type: 'model_output' });
    const content = (step['content'] ?? []) as Record<string, unknown>[];
    step['content'] = content;
    return content;
  }

  #writeText(text: string): void {
    const contents = this.#contents();
    const last = contents.at(-1);
    if (last?.['type'] === 'text') last['text'] = String(last['text']) + text;
    else contents.push({ type: 'text', text });
    this.#sentText += text;
    this.#delta({ type: 'text', text });
  }

  #writeThought(text: string, signature: string | undefined): void {
    const step = this.#start({ type: 'thought' });
    if (text !== '') {
      const [before] = readArray(step['summary']);
      step['summary'] = [{ type: 'text', text: (readString(readObject(before)['text']) ?? '') + text }];
      this.#delta({ type: 'thought_summary', content: { type: 'text', text } });
    }
    if (signature === undefined) return;
    step['signature'] = signature;
    this.#delta({ type: 'thought_signature', signature });
    this.close();
  }

  #addCall({ id, name, args }: NonNullable<GeminiPart['functionCall']>, signature: string | undefined): void {
    const step = this.#start({
      type: 'function_call',
      id,
      name,
      arguments: {},
      ...(signature !== undefined && { signature }),
    });
    step['arguments'] = args;
    this.#delta({ type: 'arguments_delta', arguments: writeJson(args) });
    this.close();
  }

  #addMedia({ mimeType, data }: NonNullable<GeminiPart['inlineData']>): void {
    const [kind = ''] = mimeType.split('/');
    const type = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document';
    const content = { type, mime_type: mimeType, data };
    this.#contents().push(content);
    this.#delta(content);
  }
}

/** Converts a citation to this format, which counts positions in bytes. */
function citationOf(annotation: JsonObject, text: string): readonly JsonObject[] {
  const { url_citation: page, file_citation: file } = annotation;
  const bytesTo = (place: unknown): JsonObject =>
    typeof place === 'number' ? { at: Buffer.byteLength(text.slice(0, place)) } : {};
  if (isObject(page)) {
    const [start, end] = [bytesTo(page['start_index'])['at'], bytesTo(page['end_index'])['at']];
    const place = { ...(start !== undefined && { start_index: start }), ...(end !== undefined && { end_index: end }) };
    return [{ type: 'url_citation', url: page['url'], title: page['title'], ...place }];
  }
  return isObject(file) ? [{ type: 'file_citation', document_uri: file['file_id'], file_name: file['filename'] }] : [];
}

/** End of a successful stream. */
const DONE = 'event: done\ndata: [DONE]\n\n';

/** Writes a response as events. */
export function streamInteraction(context: Context): DialectStream {
  let frames = '';
  const emit = (event_type: string, fields: JsonObject): void => {
    frames += `event: ${event_type}\ndata: ${writeJson({ ...fields, event_type })}\n\n`;
  };
  const candidate = createCandidateWriter(0, (data) => context.seal(data), wantsSummaries(context.input.body));
  const writer = new StepWriter(emit);
  const head = headOf(context);
  let isStarted = false;
  let usage: Usage | undefined;
  let whole: JsonObject | undefined;

  const start = (): void => {
    if (isStarted) return;
    isStarted = true;
    emit('interaction.created', { interaction: { ...head, status: 'in_progress' } });
    emit('interaction.status_update', { interaction_id: head['id'], status: 'in_progress' });
  };
  const add = (written: object): string | undefined => {
    const { content, finishReason } = written as JsonObject;
    for (const part of readArray(readObject(content)['parts'])) writer.add(part as GeminiPart);
    return readString(finishReason);
  };
  const sent = (): string => {
    const written = frames;
    frames = '';
    return written;
  };

  return {
    push(chunk) {
      start();
      usage = chunk.usage ?? usage;
      const choice = chunk.choices.find(({ index }) => index === 0);
      if (choice) {
        for (const written of candidate.push(choice)) add(written);
        writer.cite(choice.delta.annotations ?? []);
      }
      return sent();
    },
    end() {
      start();
      const finish = add(candidate.end()) ?? 'OTHER';
      whole = interactionOf(context, writer.close(), finish, usage);
      const { steps: _steps, errors: _errors, previous_interaction_id: _previous, ...interaction } = whole;
      emit('interaction.completed', { interaction });
      return sent() + DONE;
    },
    fail(error, requestId) {
      start();
      const { status } = readObject(geminiError(error, requestId).body.error);
      emit('error', { error: { code: status, message: error.message } });
      return sent();
    },
    response: () => whole,
  };
}
