import { isObject, type JsonObject } from '../../../core/index.ts';
import { toolCallId } from '../kit/index.ts';

/**
 * Gemini 3 signs its function calls and responds 400 when a call comes back unsigned. OpenAI's shape has no place for a
 * signature, so it travels twice: in `extra_content.google.thought_signature` (as Google's own OpenAI endpoint sends it)
 * and inside the call's id (as LiteLLM does), because id, name and arguments are all that many clients keep. A call that
 * lost both gets the sentinel that Google documents. Source: https://ai.google.dev/gemini-api/docs/thought-signatures
 */

const SEPARATOR = '__thought__';
export const SKIP_SIGNATURE = 'skip_thought_signature_validator';

/** What the vendor takes as a call's id. */
const MAX_ID = 64;
/** Longer signatures do not go into ids: a `tool_call_id` may have 4096 characters at this gateway. */
const MAX_SIGNATURE_IN_ID = 3900;

/** A call's id that carries its signature, in letters, digits, `_` and `-` only. */
export function signedCallId(id: string, signature: string | undefined): string {
  const plain = toolCallId(id, MAX_ID);
  if (!signature || signature.length > MAX_SIGNATURE_IN_ID || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(signature)) return plain;
  return plain + SEPARATOR + signature.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_');
}

/** The vendor's own id and the signature of an id that came back. */
export function readCallId(id: string): { readonly id: string; readonly signature?: string } {
  const at = id.indexOf(SEPARATOR);
  if (at < 1) return { id: toolCallId(id, MAX_ID) };
  const signature = toBase64(id.slice(at + SEPARATOR.length));
  return { id: toolCallId(id.slice(0, at), MAX_ID), ...(signature && { signature }) };
}

/** The signature that a replayed call or message carries in a field of its own, wherever the clients we know put it. */
export function signatureOf(source: JsonObject): string | undefined {
  const google = isObject(source['extra_content']) ? source['extra_content']['google'] : undefined;
  const holders = [google, source['provider_specific_fields'], source['function']];
  for (const holder of holders) {
    const signature = isObject(holder) ? holder['thought_signature'] : undefined;
    if (typeof signature === 'string' && signature !== '') return signature;
  }
  return undefined;
}

/** `extra_content` of a call or message with a signature. */
export function signatureField(signature: string | undefined): { readonly extra_content?: JsonObject } {
  return signature ? { extra_content: { google: { thought_signature: signature } } } : {};
}

function toBase64(text: string): string {
  const base64 = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  return base64 + '='.repeat((4 - (base64.length % 4)) % 4);
}
