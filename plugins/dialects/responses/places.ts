import type { MessagePlace } from './types.ts';

const FIELDS: readonly (readonly [canonical: string, own: string])[] = Object.freeze([
  ['max_completion_tokens', 'max_output_tokens'],
  ['max_tokens', 'max_output_tokens'],
  ['reasoning_effort', 'reasoning.effort'],
  ['response_format.json_schema', 'text.format'],
  ['response_format', 'text.format'],
  ['verbosity', 'text.verbosity'],
]);

/** Ends of canonical places that this format writes otherwise. */
const ENDS: readonly (readonly [canonical: RegExp, own: string])[] = Object.freeze([
  [/^\.image_url(\.url)?$/, '.image_url'],
  [/^\.image_url\.detail$/, '.detail'],
  [/^\.file\./, '.'],
  [/^\.function\./, '.'],
]);

const MESSAGE = /^messages\[(\d+)\](?:\.(content|tool_calls)(?:\[(\d+)\])?)?(.*)$/;
const TOOL = /^tools\[(\d+)\](.*)$/;

/** Finds where a place of the canonical request stands in the caller's body. */
export function createPlaces(messages: readonly MessagePlace[], tools: readonly string[]): (param: string) => string {
  return (param) => {
    const [, at, list, index, rest = ''] = MESSAGE.exec(param) ?? [];
    if (at !== undefined) {
      const place = messages[Number(at)];
      if (!place) return param;
      const places = list === 'tool_calls' ? place.calls : place.parts;
      const inner = list === undefined ? undefined : places[Number(index ?? 0)];
      return inner === undefined ? place.at + rest : inner + ending(rest);
    }
    const [, tool, after = ''] = TOOL.exec(param) ?? [];
    if (tool !== undefined) return (tools[Number(tool)] ?? `tools[${tool}]`) + ending(after);
    const field = FIELDS.find(([canonical]) => param === canonical || param.startsWith(`${canonical}.`));
    return field ? field[1] + param.slice(field[0].length) : param;
  };
}

function ending(rest: string): string {
  const found = ENDS.find(([canonical]) => canonical.test(rest));
  return found ? rest.replace(found[0], found[1]) : rest;
}
