/** Texts of a request that guardrails inspect, by field name. */

/** Fields without readable text: identifiers, types, encoded content, markers of vendors. docs/plugins/guardrails.md lists them. */
export const EXEMPT_FIELDS: ReadonlySet<string> = new Set(
  `model role type object id call_id item_id tool_call_id tool_use_id file_id previous_response_id dialect format kind detail effort
  status finish_reason native index service_tier data file_data signature encrypted_content encrypted_index image_url url file_url source_url
  media_type mime_type mimeType order stream`.split(/\s+/),
);

/** Fields whose keys are names: properties of a JSON Schema. */
export const NAMED_MEMBERS: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

/** Fields whose text is JSON. */
export const JSON_TEXT: ReadonlySet<string> = new Set(['arguments', 'partial_json', 'structured_json']);

/**
 * Returns a function that replaces the name of a person in a text. A name inside a longer word or address stays: `ann` in `annual`,
 * `ann@example.com` in `joann@example.com`.
 */
export function createNameReplacer(name: string, replacement: string): (text: string) => string {
  const before = '(?<![\\p{L}\\p{N}_]|[\\p{L}\\p{N}_][.+-])';
  const after = '(?![\\p{L}\\p{N}_]|[.@-][\\p{L}\\p{N}])';
  const pattern = new RegExp(`${before}${name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}${after}`, 'gu');
  return (text) => {
    if (text === name) return replacement;
    return text.includes(name) ? text.replace(pattern, () => replacement) : text;
  };
}
