import { type ChatRequest, isObject, type JsonObject, readObject } from '../../../core/index.ts';
import { PLAIN_FIELDS } from './read-config.ts';
import { fieldOf, nameIn } from './spelling.ts';
import { withEffort } from './thinking.ts';

interface Change {
  readonly before: ChatRequest;
  readonly after: ChatRequest;
}

/** `generationConfig` with what changed between reading and sending; undefined when nothing did. */
export function patchConfig(body: JsonObject, { before, after }: Change): JsonObject | undefined {
  const config = readObject(fieldOf(body, 'generationConfig'));
  const edits: JsonObject = {};
  const edit = (name: string, value: unknown): void => {
    edits[nameIn(config, name)] = value;
  };
  for (const [name, canonical] of Object.entries(PLAIN_FIELDS))
    if (after[canonical] !== before[canonical])
      edit(name, name === 'stopSequences' ? listOfStops(after) : (after[canonical] ?? undefined));
  const limit = limitOf(after);
  if (limit !== limitOf(before)) edit('maxOutputTokens', limit);
  for (const [name, value] of changedRest(before, after)) edit(name, value);
  if (after.reasoning_effort !== before.reasoning_effort) {
    const thinking = fieldOf(config, 'thinkingConfig');
    edit('thinkingConfig', withEffort(readObject(thinking), after.reasoning_effort));
  }
  if (Object.keys(edits).length === 0) return undefined;
  return Object.fromEntries(Object.entries({ ...config, ...edits }).filter(([, value]) => value !== undefined));
}

/** A hook, or the clamp of a key, may set either name. */
function limitOf({ max_completion_tokens, max_tokens }: ChatRequest): number | undefined {
  const limits = [max_completion_tokens, max_tokens].filter((limit) => typeof limit === 'number');
  return limits.length === 0 ? undefined : Math.min(...limits);
}

function listOfStops({ stop }: ChatRequest): readonly string[] | undefined {
  if (stop === undefined || stop === null) return undefined;
  return typeof stop === 'string' ? [stop] : stop;
}

function changedRest(before: ChatRequest, after: ChatRequest): readonly (readonly [string, unknown])[] {
  const old = configOf(before);
  const now = configOf(after);
  if (old === now) return [];
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  return [...names].filter((name) => old[name] !== now[name]).map((name) => [name, now[name]]);
}

const NOTHING: JsonObject = Object.freeze({});

function configOf({ dialect_fields: fields }: ChatRequest): JsonObject {
  const config = fields?.['gemini']?.['generationConfig'];
  return isObject(config) ? config : NOTHING;
}
