import {
  type HttpRequest,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
  type TransportResponse,
} from '../../../contract/index.ts';
import { embed } from './embeddings.ts';
import { makeImages } from './images.ts';
import { type CallContext, type Job, runModel } from './job.ts';
import { examineChat } from './losses.ts';
import type { AiPackage } from './package.ts';
import { createStreamWriter, namesOf, readResult } from './read-result.ts';
import { describeError, eventResponse, jsonResponse } from './responses.ts';
import { speak } from './speech.ts';
import { transcribe } from './transcription.ts';
import { NotTaken, type SupportedUrls, writeOptions } from './write-options.ts';

/** Work of a package by the path of a request of this plugin's codecs. */
const JOBS: Readonly<Record<string, Job>> = Object.freeze({
  '/chat/completions': chat,
  '/embeddings': embed,
  '/images': makeImages,
  '/speech': speak,
  '/transcription': transcribe,
});

/** Calls the model that a request of this plugin's codecs names. Rejects with the error of the package. */
export async function callModel(
  own: AiPackage,
  { path, body }: HttpRequest,
  context: CallContext,
): Promise<TransportResponse> {
  const job = JOBS[path];
  if (!job) throw new NotTaken(`The AI SDK has no ${path}. Use another model.`);
  return job(own, readObject(body), context);
}

async function chat(own: AiPackage, body: JsonObject, context: CallContext): Promise<TransportResponse> {
  const id = readString(body['model']) ?? '';
  const model = own.model('chat', id);
  const urls = readObject(await (model['supportedUrls'] as PromiseLike<unknown> | undefined)) as SupportedUrls;
  const { options, dropped: left } = writeOptions(body, model.specificationVersion, urls);
  const { signal: abortSignal, providerOptions, findLosses } = context;
  const given = { ...options, abortSignal, ...(Object.keys(providerOptions).length > 0 && { providerOptions }) };
  const { fields: lost = [], files: [file] = [] } =
    (await findLosses?.(
      examineChat({ of: `chat ${id}`, options: given, run: (all) => runModel(model, 'doGenerate', all) }),
    )) ?? {};
  if (file !== undefined)
    throw new NotTaken(
      `The package "${own.name}" does not send files of type ${file.slice(0, 60)}. Use another model.`,
    );
  assertTaken(own.name, lost);
  const dropped = [...left, ...lost];
  if (body['stream'] !== true) {
    const { dropped: ignored, ...result } = readResult(readObject(await runModel(model, 'doGenerate', given)));
    const all = [...new Set([...dropped, ...(readArray(ignored) as readonly string[])])];
    assertTaken(own.name, all);
    return { ...jsonResponse(200, result), dropped: all };
  }
  const { stream } = readObject(await runModel(model, 'doStream', given));
  if (!(stream instanceof ReadableStream)) throw new TypeError('doStream returned no stream');
  return { ...eventResponse(events(own.name, stream as ReadableStream<unknown>)), dropped };
}

/** Parts of a request without which a response is wrong, by the names that packages give them in warnings. */
const REQUIRED: Readonly<Record<string, string>> = Object.freeze({
  response_format: '`response_format`',
  tools: '`tools`',
  'tool messages': 'results of tools',
  toolContent: 'results of tools in requests without `tools`',
});

/** Refuses a response to a request of which the package has ignored a required part. */
function assertTaken(name: string, dropped: readonly string[]): void {
  const [missing] = dropped.flatMap((each) => (Object.hasOwn(REQUIRED, each) ? [REQUIRED[each]] : []));
  if (missing !== undefined)
    throw new NotTaken(`The package "${name}" does not support ${missing} for this model. Use another model.`);
}

const line = (data: JsonObject): string => `data: ${JSON.stringify(data)}\n\n`;

async function* events(name: string, stream: ReadableStream<unknown>): AsyncGenerator<string> {
  const writer = createStreamWriter();
  try {
    for await (const value of stream) {
      const part = isObject(value) ? value : {};
      if (part['type'] === 'stream-start') {
        const dropped = namesOf(part['warnings']);
        assertTaken(name, dropped);
        if (dropped.length > 0) yield droppedEvent(dropped);
      } else if (part['type'] === 'error') throw part['error'];
      else for (const chunk of writer.push(part)) yield line(chunk);
    }
    if (writer.dropped.size > 0) yield droppedEvent([...writer.dropped]);
  } catch (error) {
    yield line({ error: describeError(error, name) });
  }
  yield 'data: [DONE]\n\n';
}

/** Event with the fields that a package ignored, which OpenAI's streams do not have. */
export const DROPPED_EVENT = 'tollgate.dropped';

function droppedEvent(dropped: readonly string[]): string {
  return `event: ${DROPPED_EVENT}\ndata: ${JSON.stringify(dropped)}\n\n`;
}
