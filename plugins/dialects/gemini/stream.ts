import type { ChatChunk, ChunkChoice, DialectContext, DialectStream, JsonObject } from '../../../core/index.ts';
import { type CandidateWriter, createCandidateWriter } from './candidate-writer.ts';
import { geminiError } from './errors.ts';
import { framesOf } from './frames.ts';
import type { Seal } from './signatures.ts';
import type { GeminiBody } from './types.ts';
import { usageOf, wantsThoughts } from './write.ts';

/**
 * Writes a stream as Google's servers do: every element is a whole response whose parts are what came since the last one. How each
 * candidate ended, and the usage, stand in the last element, which is held until the end.
 */
export function streamGemini(context: DialectContext<GeminiBody>): DialectStream {
  const frames = framesOf(context);
  const seal: Seal = (data) => context.seal(data);
  const withThoughts = wantsThoughts(context);
  const candidates = new Map<number, CandidateWriter>();
  let model = context.request.model;
  let usage: JsonObject | undefined;

  const writerOf = (index: number): CandidateWriter => {
    const writer = candidates.get(index) ?? createCandidateWriter(index, seal, withThoughts);
    candidates.set(index, writer);
    return writer;
  };
  const responseOf = (written: readonly object[]): object => ({
    candidates: written,
    ...(usage && { usageMetadata: usage }),
    modelVersion: model,
    responseId: context.id,
  });
  const pushChoice = (choice: ChunkChoice): readonly object[] => writerOf(choice.index).push(choice);

  return {
    contentType: frames.contentType,
    keepAlive: frames.keepAlive,
    push(chunk: ChatChunk) {
      model = chunk.model;
      if (chunk.usage) usage = usageOf(chunk.usage);
      const written = chunk.choices.flatMap(pushChoice);
      return written.length === 0 ? '' : frames.frame(responseOf(written));
    },
    end() {
      const last = [...candidates.values()].map((writer) => writer.end());
      return frames.frame(responseOf(last)) + frames.end();
    },
    fail: (error, requestId) => frames.frame(geminiError(error, requestId).body) + frames.end(),
  };
}
