import type { ChatChunk } from '../contract/chat.ts';
import type { CallServices } from '../plugins/api-deps.ts';
import type { CallDeps } from './call-deps.ts';
import { callInitOf } from './call-init.ts';
import { completeChat } from './chat.ts';
import { type ChatStream, streamChat } from './chat-stream.ts';
import { fetchModelIds } from './fetch-models.ts';
import { estimateCall } from './meter.ts';
import { allModels } from './model-lists.ts';
import { callOperation } from './operation.ts';
import { describeRouting } from './routing/routing.ts';
import { targetsOfRequest } from './targets.ts';

/** What plugins may call: the same way that requests go, with the principal they act for. */
export function createServices(deps: CallDeps): CallServices {
  const { aliases } = deps;
  return {
    async chat(request, context) {
      const { catalog } = deps.partsOf('chat');
      const targets = targetsOfRequest({ catalog, aliases }, request.model);
      const callRequest = { operation: 'chat', request, ...targets } as const;
      if (!request.stream)
        return (await completeChat(deps, { ...callRequest, stream: false }, callInitOf(deps, context))).response;
      const stream = await streamChat(deps, { ...callRequest, stream: true }, callInitOf(deps, context));
      return chunksOf(stream, request.stream_options?.include_usage === true);
    },
    call: (operation, request, context) => callOperation(deps, operation, request, context),
    estimate: (call) => estimateCall(deps, call),
    get catalog() {
      return deps.partsOf('chat').catalog;
    },
    async listModels(name) {
      const provider = deps.partsOf('chat').offers.get(name);
      if (!provider) throw new TypeError(`there is no provider "${name}"`);
      return fetchModelIds(provider);
    },
    routing: () => describeRouting(deps.routing),
    models: (principal) => allModels({ catalog: deps.partsOf('chat').catalog, aliases }, principal),
  };
}

/** Chunk by chunk; the usage chunk only for those who ask for it, as OpenAI has it. */
async function* chunksOf(stream: ChatStream, wantsUsage: boolean): AsyncGenerator<ChatChunk, void, undefined> {
  for await (const { chunks } of stream.batches)
    for (const chunk of chunks) if (wantsUsage || !chunk.usage) yield chunk;
}
