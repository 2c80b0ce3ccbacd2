import { type ChatRequest, isObject, type JsonObject, readObject } from '../../../core/index.ts';
import { tellDropped } from '../kit/index.ts';

/** Fields of a body that the codec writes itself. */
const WRITTEN: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'messages', 'system', 'stream', 'tools', 'tool_choice', 'stop_sequences', 'temperature'],
  ...['top_p', 'extra_body', 'dialect_fields', '__proto__'],
]);

interface OwnFields {
  /** The request with those of the vendor's own fields that the codec knows, in place of what stands in for them. */
  readonly input: ChatRequest;
  /** Fields that are written as they came. */
  readonly rest: JsonObject;
}

/** Reads the fields that came in the vendor's own format; those of other formats are added to `dropped`. */
export function readOwnFields(request: ChatRequest, isKnown: (field: string) => boolean, dropped: string[]): OwnFields {
  const { dialect_fields: fields, ...input } = request;
  if (!isObject(fields)) return { input, rest: {} };
  const { messages, ...others } = fields;
  for (const other of Object.values(others))
    for (const field of Object.keys(readObject(other))) tellDropped(dropped, field);
  const own = Object.entries(readObject(messages)).filter(([field]) => !WRITTEN.has(field));
  const { metadata, ...known } = Object.fromEntries(own.filter(([field]) => isKnown(field)));
  const rest = Object.fromEntries(own.filter(([field]) => !isKnown(field)));
  const exact = { ...input, ...known };
  // What was said in the vendor's own words wins over what was made of it for others.
  const config = readObject(known['output_config']);
  if (known['thinking'] || config['effort']) delete exact.reasoning_effort;
  if (config['format'] || rest['output_format']) delete exact.response_format;
  return { input: exact, rest: { ...rest, ...(isObject(metadata) && { metadata }) } };
}
