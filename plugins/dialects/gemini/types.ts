import type { ChatRequest, DialectNeed, JsonObject } from '../../../core/index.ts';

/** The body of a request: checked by `schema.ts`, read field by field because each has two spellings. */
export type GeminiBody = JsonObject;

/** What reading gathers on its way. */
export interface Reading {
  /** Canonical places, each with the caller's. */
  readonly places: [canonical: string, caller: string][];
  readonly dropped: string[];
  readonly needs: DialectNeed[];
}

/** Fields of the canonical request. */
export type ChatFields = Partial<ChatRequest>;

/** One part of a response. */
export interface WrittenPart {
  readonly text?: string;
  readonly thought?: true;
  readonly thoughtSignature?: string;
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: JsonObject };
}
