import type { JsonObject } from '../../../core/index.ts';

/** The wire of the Messages API, as clients write it: known fields only. Source: https://platform.claude.com/docs/en/api/messages */

/** A content block of any type; what a type needs is checked by the schema. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface MessagesMessage {
  readonly role: string;
  readonly content: string | readonly Block[];
}

export interface MessagesTool {
  /** Absent or `custom`: a function of the caller's. Any other one is the provider's own. */
  readonly type?: string | null;
  readonly name?: string;
  readonly description?: string | null;
  readonly input_schema?: JsonObject;
  readonly strict?: boolean | null;
  readonly [field: string]: unknown;
}

export interface MessagesRequest {
  readonly model: string;
  /** Absent only where tokens are counted. */
  readonly max_tokens?: number | null;
  readonly messages: readonly MessagesMessage[];
  readonly system?: string | readonly Block[] | null;
  readonly stream?: boolean | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly stop_sequences?: readonly string[] | null;
  readonly metadata?: JsonObject | null;
  readonly service_tier?: string | null;
  readonly thinking?: JsonObject | null;
  readonly output_config?: JsonObject | null;
  readonly tools?: readonly MessagesTool[] | null;
  readonly tool_choice?: JsonObject | null;
  readonly cache_control?: JsonObject | null;
  readonly [field: string]: unknown;
}

export interface MessagesUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation?: { readonly ephemeral_5m_input_tokens: number; readonly ephemeral_1h_input_tokens: number };
  readonly output_tokens: number;
}
