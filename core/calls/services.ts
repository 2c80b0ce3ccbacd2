import { VERSION } from '../config/package-root.ts';
import type { ChatChunk } from '../contract/chat.ts';
import type { Provider } from '../contract/provider.ts';
import type { CallServices } from '../plugins/api-deps.ts';
import { createHttpClient } from '../upstream/http-client.ts';
import { type CallDeps, callInitOf } from './call-deps.ts';
import { completeChat } from './chat.ts';
import { type ChatStream, streamChat } from './chat-stream.ts';
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

/** The most models one vendor may list. */
const MAX_MODELS = 5000;

/** The model ids that a vendor lists, over the control-plane client; the key goes to the base URL's host only. */
async function fetchModelIds(provider: Provider): Promise<readonly string[]> {
  const { listModels, baseUrl, credential, headers, hosts = [] } = provider;
  if (!listModels) throw new TypeError('this provider has no list of models to fetch');
  const request = listModels.request();
  const client = await createHttpClient(new Set([new URL(baseUrl).host, ...hosts]), VERSION);
  const key =
    credential?.value === undefined ? {} : { [credential.header]: `${credential.prefix ?? ''}${credential.value}` };
  const body: unknown = await client
    .get(`${baseUrl}${request.path}`, { headers: { ...headers, ...request.headers, ...key } })
    .json();
  return listModels.response(body).slice(0, MAX_MODELS);
}
