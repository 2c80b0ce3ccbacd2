import type { DialectNeed } from '../../../core/index.ts';

/** What is noted while a request is read. */
export interface Reading {
  readonly needs: DialectNeed[];
  /** Where a place of the canonical request stands in the caller's body. */
  readonly places: Map<string, string>;
}

/** What fields below a place that is known are called in this format. */
const BELOW: Readonly<Record<string, string>> = Object.freeze({
  '.image_url': '.source',
  '.image_url.url': '.source',
  '.file': '.source',
  '.file.file_data': '.source',
  '.file.file_url': '.source',
  '.file.filename': '.title',
  '.function': '',
  '.function.name': '.name',
  '.function.description': '.description',
  '.function.parameters': '.input_schema',
  '.function.strict': '.strict',
  '.function.arguments': '.input',
  '.tool_call_id': '.tool_use_id',
});

/** Fields of the request that have another name here. */
const RENAMED: Readonly<Record<string, string>> = Object.freeze({
  max_completion_tokens: 'max_tokens',
  stop: 'stop_sequences',
  user: 'metadata.user_id',
  reasoning_effort: 'thinking',
  response_format: 'output_config.format',
  parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
  'dialect_fields.messages': '',
});

/** Where a canonical place stands in the caller's body; the same place where nothing is known of it. */
export function callersPlace(places: ReadonlyMap<string, string>, param: string): string {
  let head = param;
  while (head !== '') {
    const known = places.get(head) ?? (Object.hasOwn(RENAMED, head) ? RENAMED[head] : undefined);
    if (known !== undefined) {
      const tail = param.slice(head.length);
      return `${known}${BELOW[tail] ?? tail}`.replace(/^\./, '');
    }
    const shorter = head.replace(/(?:\.?[^.[\]]+|\[\d+\])$/, '');
    if (shorter === head) break;
    head = shorter;
  }
  return param;
}
