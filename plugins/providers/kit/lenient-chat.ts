import type { ChatChunk, ChatCodec, ChatRequest, CodecCall, StreamDecoder } from '../../../core/index.ts';
import { canonicalRequest } from './canonical-request.ts';
import { functionChoice, functionChunk, isLegacy, toolsOfFunctions } from './legacy-functions.ts';
import { findToolNames, TOOL_NAME, type ToolNames } from './tool-names.ts';

/** What a vendor takes of what clients are known to send. */
export interface Leniency {
  /** True where 0 and −1 as a limit mean "no limit": servers of one's own. */
  readonly unlimited?: boolean;
  /** Names of tools that the vendor takes; others are renamed on the way out, and back on the way in. */
  readonly toolNames?: RegExp;
  /** True where the codec itself says what becomes of `functions`; elsewhere they become tools, and back. */
  readonly ownFunctions?: boolean;
}

/**
 * A codec that is given canonical requests only: nulls left out, one limit, `functions` as tools, names that the vendor takes.
 * What comes back is in the form that the caller used; for that the call has to carry its request.
 */
export function lenientChat(codec: ChatCodec, leniency: Leniency = {}): ChatCodec {
  return {
    request(input, call) {
      const { request, names } = readRequest(input, leniency);
      const sent = codec.request(names ? names.rename(request) : request, call);
      // The caller did not ask for it: the old form did.
      const isOurs = isLegacy(input) && input.parallel_tool_calls !== false;
      if (!isOurs || !sent.dropped?.includes('parallel_tool_calls')) return sent;
      return { ...sent, dropped: sent.dropped.filter((field) => field !== 'parallel_tool_calls') };
    },
    response(body, call) {
      const response = codec.response(body, call);
      const { names, legacy } = formOf(call, leniency);
      if (!names && !legacy) return response;
      const choices = response.choices.map((choice) => {
        const restored = names ? names.restoreChoice(choice) : choice;
        return legacy ? functionChoice(restored) : restored;
      });
      return { ...response, choices };
    },
    stream(call) {
      const decoder = codec.stream(call);
      const { names, legacy } = formOf(call, leniency);
      if (!names && !legacy) return decoder;
      return restored(decoder, (chunk) => {
        const named = names ? names.restoreChunk(chunk) : chunk;
        return legacy ? functionChunk(named) : named;
      });
    },
  };
}

interface Form {
  readonly names: ToolNames | undefined;
  readonly legacy: boolean;
}

function readRequest(input: ChatRequest, leniency: Leniency): { readonly request: ChatRequest } & Form {
  const { unlimited = false, toolNames = TOOL_NAME, ownFunctions = false } = leniency;
  const canonical = canonicalRequest(input, unlimited);
  const isOld =
    !ownFunctions && ('functions' in canonical || 'function_call' in canonical || hasOldMessages(canonical));
  const request = isOld ? toolsOfFunctions(canonical) : canonical;
  return { request, names: findToolNames(request, toolNames), legacy: !ownFunctions && isLegacy(canonical) };
}

function hasOldMessages({ messages }: ChatRequest): boolean {
  return messages.some((message) => message.role === 'function' || 'function_call' in message);
}

/** The form that the caller used; without the request, the canonical one. */
function formOf({ request }: CodecCall, leniency: Leniency): Form {
  return request ? readRequest(request, leniency) : { names: undefined, legacy: false };
}

function restored(decoder: StreamDecoder, restore: (chunk: ChatChunk) => ChatChunk | undefined): StreamDecoder {
  const restoreAll = (chunks: readonly ChatChunk[]) => chunks.flatMap((chunk) => restore(chunk) ?? []);
  return {
    push: (event) => restoreAll(decoder.push(event)),
    end() {
      const { chunks, complete } = decoder.end();
      return { chunks: restoreAll(chunks), complete };
    },
  };
}
