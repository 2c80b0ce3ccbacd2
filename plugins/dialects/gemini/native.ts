import {
  type DialectContext,
  type DialectNative,
  type DialectNativeStream,
  isObject,
  type JsonObject,
  type NativeBody,
  type NativeChange,
  parseJson,
} from '../../../core/index.ts';
import { geminiError } from './errors.ts';
import { framesOf } from './frames.ts';
import { patchConfig } from './native-config.ts';
import { cleanContents } from './native-contents.ts';
import { patchMessages, patchTools } from './native-messages.ts';
import { fieldOf, nameIn } from './spelling.ts';
import type { GeminiBody } from './types.ts';

/** How requests pass to Google itself: the caller's own body with these edits and no others, in its own order of fields. */
export const GEMINI_NATIVE: DialectNative<GeminiBody> = Object.freeze({
  patch(body: GeminiBody, change: NativeChange): NativeBody | undefined {
    const name = nameIn(body, 'generateContentRequest');
    const wrapped = body[name];
    if (!isObject(wrapped)) return patchRequest(body, change);
    const patched = patchRequest(wrapped, change);
    return patched && { ...patched, body: { ...body, [name]: patched.body } };
  },
  write: (body: unknown) => body,
  stream: streamNative,
});

/** What hooks may change and Google has no field for. */
const UNSAID = Object.freeze(['user', 'metadata'] as const);

function patchRequest(body: GeminiBody, change: NativeChange): NativeBody | undefined {
  const dropped: string[] = [];
  const edits: JsonObject = {};
  const edit = (name: string, value: unknown): void => {
    edits[nameIn(body, name)] = value;
  };
  if (typeof body['model'] === 'string')
    edit('model', change.model.includes('/') ? change.model : `models/${change.model}`);
  const messages = patchMessages(body, change);
  const tools = patchTools(body, change);
  if (!messages || !tools) return undefined;
  const contents = cleanContents(messages.contents ?? fieldOf(body, 'contents'), dropped);
  if (contents !== fieldOf(body, 'contents')) edit('contents', contents);
  if (messages.systemInstruction) edit('systemInstruction', messages.systemInstruction);
  if (tools.tools) edit('tools', tools.tools);
  const config = patchConfig(body, change);
  if (config) edit('generationConfig', config);
  const { service_tier: tier } = change.after;
  if (tier !== change.before['service_tier']) edit('serviceTier', tier ?? undefined);
  for (const [name, value] of changedFields(change)) edit(name, value);
  for (const name of UNSAID) if (change.after[name] !== change.before[name]) dropped.push(name);
  const patched = Object.fromEntries(Object.entries({ ...body, ...edits }).filter(([, value]) => value !== undefined));
  return { body: patched, ...(dropped.length > 0 && { dropped }) };
}

/** Fields of Gemini alone that a hook changed; those inside of `generationConfig` are patched with it. */
function changedFields({ before, after }: NativeChange): readonly (readonly [string, unknown])[] {
  const old = before.dialect_fields?.['gemini'] ?? {};
  const now = after.dialect_fields?.['gemini'] ?? {};
  if (old === now) return [];
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  names.delete('generationConfig');
  names.delete('toolConfig');
  return [...names].filter((name) => old[name] !== now[name]).map((name) => [name, now[name]]);
}

/** Google's own elements, each as it came; errors are never among them. */
function streamNative(context: DialectContext<GeminiBody>): DialectNativeStream {
  const frames = framesOf(context);
  return {
    contentType: frames.contentType,
    keepAlive: frames.keepAlive,
    push({ data }) {
      const value = parseJson(data);
      return value === undefined ? '' : frames.frame(value);
    },
    end: () => frames.end(),
    fail: (error, requestId) => frames.frame(geminiError(error, requestId).body) + frames.end(),
  };
}
