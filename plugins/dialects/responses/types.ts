import type { Item } from '../../formats/openai-responses/index.ts';

/** Bodies of OpenAI's Responses API, with only the fields that are read here. https://platform.openai.com/docs/api-reference/responses */

export type { Item };

export interface ResponsesBody {
  readonly model: string;
  readonly input?: string | readonly Item[] | null;
  readonly instructions?: string | null;
  readonly tools?: readonly Item[] | null;
  readonly tool_choice?: string | Item | null;
  readonly text?: { readonly format?: Item | null; readonly verbosity?: string | null } | null;
  readonly reasoning?: {
    readonly effort?: string | null;
    readonly summary?: string | null;
    readonly [field: string]: unknown;
  } | null;
  readonly include?: readonly string[] | null;
  readonly stream?: boolean | null;
  readonly store?: boolean | null;
  readonly previous_response_id?: string | null;
  readonly max_output_tokens?: number | null;
  readonly [field: string]: unknown;
}

/** What a stream sends: SSE frames and websocket frames are made of these. */
export interface ResponsesEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Where one canonical message stands in the caller's body, and its parts and calls. */
export interface MessagePlace {
  readonly at: string;
  readonly parts: readonly string[];
  readonly calls: readonly string[];
}
