import type { JsonObject, Schema } from '../../../core/index.ts';

/** The wire of the Messages API: only the fields we write. Source: https://platform.claude.com/docs/en/api/messages */

export interface CacheControl {
  readonly type: 'ephemeral';
  readonly ttl?: '5m' | '1h';
}

interface Cacheable {
  readonly cache_control?: CacheControl;
}

export interface TextBlock extends Cacheable {
  readonly type: 'text';
  readonly text: string;
}

export interface MediaBlock extends Cacheable {
  readonly type: 'image' | 'document';
  readonly source:
    | { readonly type: 'base64' | 'text'; readonly media_type: string; readonly data: string }
    | { readonly type: 'url'; readonly url: string };
  readonly title?: string;
}

export interface ToolUseBlock extends Cacheable {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
}

export interface ToolResultBlock extends Cacheable {
  readonly type: 'tool_result';
  readonly tool_use_id: string;
  readonly content?: readonly (TextBlock | MediaBlock)[];
}

/** The model's thinking, to be replayed unchanged. */
export type ThinkingBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

export type Block = TextBlock | MediaBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock;

export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

export interface AnthropicTool extends Cacheable {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: Schema;
  readonly strict?: true;
}

export type AnthropicToolChoice =
  | { readonly type: 'none' }
  | { readonly type: 'auto' | 'any'; readonly disable_parallel_tool_use?: true }
  | { readonly type: 'tool'; readonly name: string; readonly disable_parallel_tool_use?: true };

export interface OutputConfig {
  readonly effort?: string;
  readonly format?: { readonly type: 'json_schema'; readonly schema: Schema };
  readonly [field: string]: unknown;
}

export interface AnthropicRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: readonly TextBlock[];
  readonly messages: readonly AnthropicMessage[];
  readonly stop_sequences?: readonly string[];
  readonly stream?: true;
  readonly tools?: readonly AnthropicTool[];
  readonly tool_choice?: AnthropicToolChoice;
  readonly thinking?: JsonObject;
  readonly output_config?: OutputConfig;
  readonly context_management?: JsonObject;
  readonly metadata?: { readonly user_id: string };
  readonly cache_control?: CacheControl;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
}
