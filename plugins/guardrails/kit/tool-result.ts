import { type ChatResponse, parseJson, type ResponseOf } from '../../../contract/index.ts';

type ToolResult = ResponseOf<'mcp'>;
type Changed = ChatResponse | undefined;

/**
 * Changes the result of a tool by the change of a chat's response, so that each guardrail has one way through texts. Structured
 * content is checked as JSON, like the arguments of a tool call.
 */
export function throughChat(result: ToolResult, change: (response: ChatResponse) => Changed): ToolResult | undefined;
export function throughChat(
  result: ToolResult,
  change: (response: ChatResponse) => Promise<Changed>,
): Promise<ToolResult | undefined>;
export function throughChat(
  result: ToolResult,
  change: (response: ChatResponse) => Changed | Promise<Changed>,
): ToolResult | undefined | Promise<ToolResult | undefined> {
  const changed = change(asChat(result));
  return changed instanceof Promise ? changed.then((each) => ofChat(result, each)) : ofChat(result, changed);
}

function asChat({ content, structuredContent }: ToolResult): ChatResponse {
  const message = {
    role: 'assistant',
    content,
    ...(structuredContent !== undefined && { arguments: JSON.stringify(structuredContent) }),
  };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  return { id: '', object: 'chat.completion', created: 0, model: '', choices } as object as ChatResponse;
}

function ofChat(result: ToolResult, changed: Changed): ToolResult | undefined {
  if (!changed) return undefined;
  const message = changed.choices[0]?.message as object as Pick<ToolResult, 'content'> & {
    readonly arguments?: string;
  };
  const { content, arguments: text } = message;
  return { ...result, content, ...(text !== undefined && { structuredContent: parseJson(text) }) };
}
