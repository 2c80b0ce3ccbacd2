import type { ChatChunk } from '../contract/chat.ts';
import type { CallContext } from '../contract/plugin.ts';
import type { GatewayServices } from '../plugins/plugin-api.ts';
import { completeChat, streamChat } from './chat.ts';
import { embed } from './embed.ts';
import type { CallInit } from './live-call.ts';
import { estimateCost } from './meter.ts';
import type { ModelCatalog } from './model-catalog.ts';
import type { PipelineDeps } from './run.ts';
import { speak } from './speech.ts';
import { type Aliases, allModels, requestedTargets } from './targets.ts';

/** What plugins may call: the same pipeline that requests go through, with the principal they act for. */
export function createServices(deps: PipelineDeps, catalog: ModelCatalog, aliases: Aliases): GatewayServices {
  const targetsOf = (model: string) => requestedTargets({ catalog, aliases }, model);
  return {
    async chat(request, context) {
      const ask = { operation: 'chat', request, ...targetsOf(request.model) } as const;
      if (request.stream) return streamOf(deps, { ...ask, stream: true }, initOf(context));
      return (await completeChat(deps, { ...ask, stream: false }, initOf(context))).response;
    },
    async embed(request, context) {
      return (
        await embed(
          deps,
          { operation: 'embeddings', request, stream: false, ...targetsOf(request.model) },
          initOf(context),
        )
      ).response;
    },
    speak: (vendor, request, context) => speak(deps, vendor, request, initOf(context)),
    estimate: (call) => estimateCost(deps, call),
    models: (principal) => allModels({ catalog, aliases }, principal),
  };
}

/** A plugin's call, as the pipeline takes it. */
export function initOf(context: CallContext): CallInit {
  const { principal, requestId, signal, skip } = context;
  return {
    principal,
    requestId,
    signal: signal ?? new AbortController().signal,
    ...(skip && { skip }),
    ...(context.onOutcome && { onOutcome: context.onOutcome }),
  };
}

async function streamOf(
  deps: PipelineDeps,
  ask: Parameters<typeof streamChat>[1],
  init: CallInit,
): Promise<AsyncIterable<ChatChunk>> {
  const stream = await streamChat(deps, ask, init);
  return (async function* () {
    try {
      yield* stream.chunks;
    } finally {
      stream.close();
    }
  })();
}
