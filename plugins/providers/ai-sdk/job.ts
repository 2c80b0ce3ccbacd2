import { type JsonObject, readCount, readObject, type TransportResponse } from '../../../contract/index.ts';
import type { Examined, Losses } from './losses.ts';
import type { AiModel, AiPackage } from './package.ts';
import { namesOf } from './read-result.ts';
import { jsonResponse } from './responses.ts';
import { NotTaken } from './write-options.ts';

export interface CallContext {
  readonly signal: AbortSignal;
  /** The operator's options for the package, by the name that the package gives them. */
  readonly providerOptions: JsonObject;
  /** Finds what the package drops without a warning. Missing if it uses connections of its own. */
  readonly findLosses?: ((examined: Examined) => Promise<Losses>) | undefined;
}

/** Work of a package for a request of this plugin's codecs. */
export type Job = (own: AiPackage, body: JsonObject, context: CallContext) => Promise<TransportResponse>;

/** Calls a method of a model. */
export function runModel(model: AiModel, method: string, options: JsonObject): PromiseLike<unknown> {
  const called = model[method];
  if (typeof called !== 'function') throw new NotTaken(`The model of the package has no ${method}. Use another model.`);
  return called.call(model, options) as PromiseLike<unknown>;
}

/** Result of a package that is not as its specification says. */
export class InvalidResult extends Error {
  override readonly name = 'InvalidResult';
}

/** JSON response, with the fields that the AI SDK does not have and those that the package ignored. */
export function respondWith(value: JsonObject, missing: readonly string[], warnings: unknown): TransportResponse {
  return { ...jsonResponse(200, value), dropped: [...missing, ...namesOf(warnings)] };
}

/** Names of the fields that are set. */
export function setNames(fields: JsonObject): readonly string[] {
  return Object.keys(fields).filter((name) => {
    const value = fields[name];
    return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
  });
}

/** Base64 of data that a package returned; undefined for anything else, and for nothing. */
export function base64Of(data: unknown): string | undefined {
  const text = data instanceof Uint8Array ? Buffer.from(data).toString('base64') : data;
  return typeof text === 'string' && text !== '' ? text : undefined;
}

/** Tokens of a vendor's own usage; undefined for other units. */
export function readTokens(usage: unknown): { readonly input: number; readonly output: number } | undefined {
  const { inputTokens, input_tokens = inputTokens, prompt_tokens = input_tokens, ...others } = readObject(usage);
  const { outputTokens, output_tokens = outputTokens, completion_tokens = output_tokens } = others;
  const [input, output] = [readCount(prompt_tokens), readCount(completion_tokens)];
  return input === undefined || output === undefined ? undefined : { input, output };
}
