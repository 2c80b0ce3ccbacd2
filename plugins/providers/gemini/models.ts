/**
 * What Gemini models can do differs by generation, and the vendor responds 400 to what one cannot. Names are open-ended, so
 * an unknown `gemini-*` is taken for the newest kind. Source: https://ai.google.dev/gemini-api/docs/thinking and the
 * model catalogue of @ai-sdk/google 4.0.121.
 */

export type ThinkingLevel = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh';

export interface GeminiTraits {
  readonly thinking:
    | { readonly kind: 'none' }
    /** Tokens; a `min` of 0 means that thinking can be switched off. */
    | { readonly kind: 'budget'; readonly min: number; readonly max: number }
    | { readonly kind: 'level'; readonly levels: readonly ThinkingLevel[] };
  readonly penalties: boolean;
  readonly systemInstruction: boolean;
  /** Whether a JSON answer format and tools may stand in one request. */
  readonly jsonWithTools: boolean;
  /** Generation 3 and later: replayed calls need their thought signature, and results may hold images. */
  readonly signatures: boolean;
}

const FROM_MINIMAL: readonly ThinkingLevel[] = ['minimal', 'low', 'medium', 'high'];
const FROM_LOW: readonly ThinkingLevel[] = ['low', 'medium', 'high'];

const OLD: GeminiTraits = {
  thinking: { kind: 'none' },
  penalties: true,
  systemInstruction: true,
  jsonWithTools: false,
  signatures: false,
};
const V25: GeminiTraits = { ...OLD, thinking: { kind: 'budget', min: 0, max: 24_576 }, penalties: false };
const NEW: GeminiTraits = {
  ...OLD,
  thinking: { kind: 'level', levels: FROM_MINIMAL },
  jsonWithTools: true,
  signatures: true,
};
const NEW_FROM_LOW: GeminiTraits = { ...NEW, thinking: { kind: 'level', levels: FROM_LOW } };

/** The first row whose pattern matches the model's name (without `models/`) wins. */
const TRAITS: readonly (readonly [RegExp, GeminiTraits])[] = Object.freeze([
  [/^gemma-/, { ...OLD, systemInstruction: false }],
  [/^gemini-(1[.-]|2\.0|pro$|pro-vision|robotics-er-1)/, OLD],
  [/^gemini-2\.5-.*(image|tts|audio)/, { ...OLD, penalties: false }],
  [/^gemini-2\.5-pro/, { ...V25, thinking: { kind: 'budget', min: 128, max: 32_768 } }],
  [/^gemini-2\./, V25],
  [/^gemini-3-pro-image/, { ...NEW, thinking: { kind: 'budget', min: 128, max: 32_768 } }],
  [/^gemini-4-hydrogen/, { ...NEW, thinking: { kind: 'level', levels: [...FROM_LOW, 'xhigh'] } }],
  [/^gemini-(pro-latest|flash-latest$|\d+(\.\d+)?-pro)/, NEW_FROM_LOW],
  [/^gemini-(3\.([7-9]|\d\d)|([4-9]|\d\d)\.\d+)-flash(?!-lite)/, NEW_FROM_LOW],
  [/^gemini-/, NEW],
  [/./, OLD],
]);

/** The traits of a model by its name, with or without `models/`. */
export function geminiTraits(model: string): GeminiTraits {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return TRAITS.find(([pattern]) => pattern.test(name))?.[1] ?? OLD;
}
