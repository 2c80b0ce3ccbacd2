/**
 * Entry `tollgate/guardrails`: shared code of policies that check the texts of calls.
 *
 * @public
 */

export type { Guard, Side } from './guard.ts';
export { guardTexts, refusal, SIDES } from './guard.ts';
export type { Judge, JudgedText, JudgeOptions, Verdict } from './judged-texts.ts';
export { eachText, judgeTexts, textsOfRequest } from './judged-texts.ts';
export type { TextMatch, TextSearch } from './text-stream.ts';
export type { TextPlace, TextTransform, TextTransformOptions } from './text-transform.ts';
export { textTransform } from './text-transform.ts';
