import type { JsonObject, Schema } from '../../../core/index.ts';

/** The wire of generateContent: only the fields we write or read. Source: https://ai.google.dev/api/generate-content */

export interface GeminiPart {
  readonly text?: string;
  /** The text is the model's thinking. */
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
  readonly fileData?: { readonly mimeType?: string; readonly fileUri: string };
  readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: JsonObject };
  readonly functionResponse?: {
    readonly id?: string;
    readonly name: string;
    readonly response: JsonObject;
    readonly parts?: readonly GeminiPart[];
  };
}

export interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly GeminiPart[];
}

export interface GeminiFunction {
  readonly name: string;
  readonly description: string;
  readonly parametersJsonSchema?: Schema;
}

export interface GeminiToolConfig {
  readonly functionCallingConfig: {
    readonly mode: 'AUTO' | 'NONE' | 'ANY' | 'VALIDATED';
    readonly allowedFunctionNames?: readonly string[];
  };
}

/** `generationConfig`'s thinking part. */
export interface GeminiThinking {
  readonly thinkingLevel?: string;
  readonly thinkingBudget?: number;
  readonly includeThoughts?: boolean;
}

export interface GeminiRequest {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly GeminiPart[] };
  readonly tools?: readonly { readonly functionDeclarations: readonly GeminiFunction[] }[];
  readonly toolConfig?: GeminiToolConfig;
  readonly safetySettings?: readonly unknown[];
  readonly generationConfig?: JsonObject;
  /** `cachedContents/…` */
  readonly cachedContent?: string;
}
