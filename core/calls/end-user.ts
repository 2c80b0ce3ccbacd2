import { isObject, parseJson } from '../../contract/json.ts';

/** Maximum length of a text that is searched for parts of an id. */
const MAX_PARSED = 1000;

/**
 * Returns the end user of a caller's text, without parts that change with each conversation: Claude Code sends
 * `user_…_account_…_session_…`, or JSON with `account_uuid`, `device_id` and `session_id`. Undefined for an empty text.
 */
export function readEndUser(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  if (trimmed.startsWith('user_')) return trimmed.replace(/_session_[\w-]*$/, '');
  if (!trimmed.startsWith('{') || trimmed.length > MAX_PARSED) return trimmed;
  const parts = parseJson(trimmed);
  const found = isObject(parts) ? [parts['account_uuid'], parts['device_id']].find(isName) : undefined;
  return typeof found === 'string' ? found : trimmed;
}

function isName(part: unknown): boolean {
  return typeof part === 'string' && part !== '';
}
