import { isObject, type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';

/** Billed counts; the vendor also reports a total of all tokens. */
function usageOf(value: unknown): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const { billed_units: billed, tokens, cached_tokens: cached } = value;
  const { input_tokens: input, output_tokens: output } = { ...readObject(tokens), ...readObject(billed) };
  if (input === undefined && output === undefined) return undefined;
  return {
    prompt_tokens: input ?? 0,
    completion_tokens: output ?? 0,
    ...(typeof cached === 'number' &&
      cached <= Number(input ?? 0) && { prompt_tokens_details: { cached_tokens: cached } }),
  };
}

/** Citations of pages in OpenAI's form; citations of the caller's documents stay on the message unchanged. */
function annotationsOf(citations: readonly unknown[]): readonly object[] {
  return citations.map(readObject).flatMap(({ start, end, sources }) =>
    readArray(sources).flatMap((source) => {
      const { url, title } = readObject(readObject(source)['document']);
      const address = readString(url);
      if (address === undefined || !/^https?:/.test(address)) return [];
      const page = { start_index: start ?? 0, end_index: end ?? 0, title: readString(title) ?? address, url: address };
      return [{ type: 'url_citation', url_citation: page }];
    }),
  );
}

function citedIn(citations: readonly unknown[]): JsonObject {
  if (citations.length === 0) return {};
  const annotations = annotationsOf(citations);
  return { citations, ...(annotations.length > 0 && { annotations }) };
}

/** Converts a complete response to a chat completion. Source: https://docs.cohere.com/reference/chat */
export function completionOf(body: JsonObject): unknown {
  const { id, message, finish_reason: reason, usage } = body;
  if (!isObject(message)) return body;
  const parts = readArray(message['content']).map(readObject);
  const texts = parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []));
  const thoughts = parts.flatMap(({ thinking }) => (typeof thinking === 'string' ? [thinking] : []));
  const plan = readString(message['tool_plan']);
  const reasoning = [...thoughts, ...(plan === undefined ? [] : [plan])].join('\n');
  const calls = readArray(message['tool_calls']);
  const counted = usageOf(usage);
  return {
    id,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: texts.length > 0 ? texts.join('') : null,
          ...(reasoning !== '' && { reasoning_content: reasoning }),
          ...(calls.length > 0 && { tool_calls: calls }),
          ...citedIn(readArray(message['citations'])),
        },
        finish_reason: reason,
      },
    ],
    ...(counted && { usage: counted }),
  };
}

/** Converts stream events to chunks. Source: https://docs.cohere.com/docs/streaming */
export function chunksOf(): (event: JsonObject) => JsonObject | undefined {
  let id: unknown;
  let calls = -1;
  const chunkOf = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
    id,
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  });
  return (event) => {
    const delta = readObject(event['delta']);
    const message = readObject(delta['message']);
    const part = readObject(message['content']);
    switch (event['type']) {
      case 'message-start':
        id = event['id'];
        return chunkOf({ role: 'assistant', content: '' });
      case 'content-start':
      case 'content-delta':
        if (readString(part['thinking'])) return chunkOf({ reasoning_content: part['thinking'] });
        return readString(part['text']) ? chunkOf({ content: part['text'] }) : undefined;
      case 'tool-plan-delta':
        return chunkOf({ reasoning_content: message['tool_plan'] });
      case 'tool-call-start':
        calls += 1;
        return chunkOf({ tool_calls: [{ index: calls, ...readObject(message['tool_calls']) }] });
      case 'tool-call-delta': {
        const { arguments: text } = readObject(readObject(message['tool_calls'])['function']);
        return chunkOf({ tool_calls: [{ index: calls, function: { arguments: text } }] });
      }
      case 'citation-start':
        return chunkOf(citedIn([message['citations']].flat()));
      case 'message-end': {
        const usage = usageOf(delta['usage']);
        return { ...chunkOf({}, { finish_reason: delta['finish_reason'] }), ...(usage && { usage }) };
      }
      default:
        // An error has no type.
        return event['type'] === undefined ? event : undefined;
    }
  };
}
