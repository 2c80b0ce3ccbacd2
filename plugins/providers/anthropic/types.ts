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
  readonly citations?: readonly unknown[];
}

export interface MediaBlock extends Cacheable {
  readonly type: 'image' | 'document';
  readonly source:
    | { readonly type: 'base64' | 'text'; readonly media_type: string; readonly data: string }
    | { readonly type: 'url'; readonly url: string }
    | { readonly type: 'content'; readonly content: unknown };
  readonly title?: string;
  readonly context?: string;
  readonly citations?: { readonly enabled?: boolean };
}

/** A block of any other type, written as it came; typed as one of them, so that the known types stay told apart. */
export interface OtherBlock extends Cacheable {
  readonly type: 'server_tool_use';
  readonly [field: string]: unknown;
}

export interface ToolUseBlock extends Cacheable {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  readonly [field: string]: unknown;
}

export interface ToolResultBlock extends Cacheable {
  readonly type: 'tool_result';
  readonly tool_use_id: string;
  readonly content?: readonly (TextBlock | MediaBlock | OtherBlock)[];
  readonly is_error?: true;
}

/** The model's thinking, to be replayed unchanged. */
export type ThinkingBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

export type Block = TextBlock | MediaBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock | OtherBlock;

export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

export interface AnthropicTool extends Cacheable {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: Schema;
  readonly strict?: true;
  readonly [field: string]: unknown;
}

/** A tool of the vendor's own, written as it came. */
export interface OtherTool {
  readonly type: string;
  readonly [field: string]: unknown;
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
  readonly tools?: readonly (AnthropicTool | OtherTool)[];
  readonly tool_choice?: AnthropicToolChoice;
  readonly thinking?: JsonObject;
  readonly output_config?: OutputConfig;
  readonly context_management?: JsonObject;
  readonly metadata?: JsonObject;
  readonly cache_control?: CacheControl;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  /** Fields of betas. */
  readonly [field: string]: unknown;
}
