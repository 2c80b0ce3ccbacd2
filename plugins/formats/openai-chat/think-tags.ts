import type { ChatChunk, ChatCodec, ChatResponse, ChunkChoice } from '../../../contract/index.ts';

const OPEN = '<think>';
const CLOSE = '</think>';

/** Parts of a piece of content. */
interface Split {
  readonly reasoning: string;
  readonly content: string;
}

interface Splitter {
  push(text: string): Split;
  /** Returns the buffered rest. */
  end(): Split;
}

/** Separates leading thinking in tags from the content, for pieces cut anywhere. */
function createSplitter(): Splitter {
  let mode: 'before' | 'thinking' | 'after' | 'content' = 'before';
  let held = '';

  function push(text: string): Split {
    let [reasoning, content] = ['', ''];
    held += text;
    if (mode === 'before') {
      const begun = held.trimStart();
      // Text that may still become the tag is buffered. A tag later in the text has another meaning.
      if (OPEN.startsWith(begun)) return { reasoning, content };
      mode = begun.startsWith(OPEN) ? 'thinking' : 'content';
      if (mode === 'thinking') held = begun.slice(OPEN.length);
    }
    if (mode === 'thinking') {
      const end = held.indexOf(CLOSE);
      const length = end < 0 ? held.length - lengthOfBegun(held) : end;
      reasoning = held.slice(0, length);
      held = held.slice(end < 0 ? length : length + CLOSE.length);
      if (end >= 0) mode = 'after';
    }
    if (mode === 'after') {
      held = held.trimStart();
      if (held !== '') mode = 'content';
    }
    if (mode === 'content') [content, held] = [held, ''];
    return { reasoning, content };
  }

  function end(): Split {
    const rest = held;
    held = '';
    return mode === 'thinking' ? { reasoning: rest, content: '' } : { reasoning: '', content: rest };
  }

  return { push, end };
}

/** Length of a partial closing tag at the end of a text. */
function lengthOfBegun(text: string): number {
  for (let length = Math.min(CLOSE.length - 1, text.length); length > 0; length -= 1)
    if (CLOSE.startsWith(text.slice(-length))) return length;
  return 0;
}

type Reading = Pick<ChatCodec, 'response' | 'stream'>;

/**
 * Wraps a codec for servers that leave a model's thinking at the start of its text, as `<think>…</think>`. These are
 * vLLM and llama.cpp without a reasoning parser, LM Studio, and older models of Ollama. The thinking becomes
 * `reasoning_content`.
 */
export function withThinkTags<Codec extends Reading>(codec: Codec): Codec {
  return {
    ...codec,
    response: (body, call) => splitResponse(codec.response(body, call)),
    stream(call) {
      const decoder = codec.stream(call);
      const splitters = new Map<number, Splitter>();
      let isSame = true;
      return {
        push(event) {
          const chunks = decoder.push(event);
          const read = chunks.map((chunk) => splitChunk(chunk, splitters));
          isSame = read.every((chunk, at) => chunk === chunks[at]);
          return read;
        },
        end() {
          isSame = true;
          return decoder.end();
        },
        progress: decoder.progress && (() => decoder.progress?.() ?? 'open'),
        original: () => (isSame ? decoder.original?.() : undefined),
      };
    },
  };
}

function splitResponse(response: ChatResponse): ChatResponse {
  const choices = response.choices.map((choice) => {
    const { content, reasoning_content: known } = choice.message;
    if (typeof content !== 'string' || !content.trimStart().startsWith(OPEN)) return choice;
    const splitter = createSplitter();
    const [first, last] = [splitter.push(content), splitter.end()];
    const thought = `${known ?? ''}${first.reasoning}${last.reasoning}`;
    const words = first.content + last.content;
    const message = { ...choice.message, content: words === '' && choice.message.tool_calls ? null : words };
    return { ...choice, message: thought.trim() === '' ? message : { ...message, reasoning_content: thought } };
  });
  return { ...response, choices };
}

/** Returns the same chunk if nothing in it changes. */
function splitChunk(chunk: ChatChunk, splitters: Map<number, Splitter>): ChatChunk {
  const choices = chunk.choices.map((choice) => split(choice, splitters));
  return choices.every((choice, at) => choice === chunk.choices[at]) ? chunk : { ...chunk, choices };
}

function split(choice: ChunkChoice, splitters: Map<number, Splitter>): ChunkChoice {
  const { content, reasoning_content: known, ...rest } = choice.delta;
  const isEnd = choice.finish_reason !== null || rest.tool_calls !== undefined;
  if (!content && !(isEnd && splitters.has(choice.index))) return choice;
  const splitter = splitters.get(choice.index) ?? createSplitter();
  splitters.set(choice.index, splitter);
  const first = splitter.push(content ?? '');
  const last = isEnd ? splitter.end() : { reasoning: '', content: '' };
  const reasoning = `${known ?? ''}${first.reasoning}${last.reasoning}`;
  const words = first.content + last.content;
  if (content && words === content && reasoning === (known ?? '')) return choice;
  const isOpening = rest.role !== undefined;
  const delta = {
    ...rest,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...((words !== '' || (isOpening && reasoning === '')) && { content: words }),
  };
  return { ...choice, delta };
}
