import { isObject, type JsonObject, parseJson, type ReasoningDetail } from '../../../contract/index.ts';
import { toolCallId } from '../kit/index.ts';
import { readSealedDetail, SEAL, sealDetail } from '../sealed-reasoning.ts';

/**
 * Gemini 3 signs its function calls and responds 400 when a call comes back unsigned. OpenAI's shape has no place for a
 * signature, so it travels twice: in `extra_content.google.thought_signature` (as Google's own OpenAI endpoint sends it)
 * and inside the call's id (as LiteLLM does), because id, name and arguments are all that many clients keep. A call that
 * lost both gets the sentinel that Google documents. Source: https://ai.google.dev/gemini-api/docs/thought-signatures
 *
 * A part of Google's format has one place for what its maker needs back: `thoughtSignature`, which clients keep and do not read.
 * What Google itself signed goes there sealed for the account, on the native lane, and comes back to Google byte for byte. The reasoning
 * of another format stands there packed, so that its maker gets it back complete and Gemini never sees it. Both are base64, as clients
 * expect: Google's own ones decode it, and write it again in base64url.
 */

/** Between a call's id and its signature. */
const SEPARATOR = '__thought__';
export const SKIP_SIGNATURE = 'skip_thought_signature_validator';

/** The longest id of a call that Google takes. */
export const MAX_CALL_ID = 64;
/** Longer signatures do not go into ids: a `tool_call_id` may have 4096 characters at this gateway. */
const MAX_SIGNATURE_IN_ID = 3900;

const PACKED = 'tollgate:';
const PACKED_START = Buffer.from(PACKED).toString('base64');

/** A call's id that carries its signature, in letters, digits, `_` and `-` only. */
export function signedCallId(id: string, signature: string | undefined): string {
  const plain = toolCallId(id, MAX_CALL_ID);
  if (!signature || signature.length > MAX_SIGNATURE_IN_ID || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(signature)) return plain;
  return plain + SEPARATOR + signature.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_');
}

/** A call's id without the signature that it carries. */
export function plainCallId(id: string): string {
  const at = id.indexOf(SEPARATOR);
  return at < 1 ? id : id.slice(0, at);
}

/** The id as Google takes it and the signature, of an id that came back. */
export function readCallId(id: string): { readonly id: string; readonly signature?: string } {
  const plain = plainCallId(id);
  const signature = plain === id ? '' : toBase64(id.slice(plain.length + SEPARATOR.length));
  return { id: toolCallId(plain, MAX_CALL_ID), ...(signature && { signature }) };
}

/** Gemini's signature of a canonical message, part or call, wherever the clients we know put it. */
export function signatureOf(holder: JsonObject): string | undefined {
  const google = isObject(holder['extra_content']) ? holder['extra_content']['google'] : undefined;
  for (const place of [google, holder['provider_specific_fields'], holder['function']]) {
    const signature = isObject(place) ? place['thought_signature'] : undefined;
    if (typeof signature === 'string' && signature !== '') return signature;
  }
  return undefined;
}

/** The canonical field that holds Gemini's signature. */
export function signatureField(signature: string | undefined): { readonly extra_content?: JsonObject } {
  return signature ? { extra_content: { google: { thought_signature: signature } } } : {};
}

/** Seals what only its maker can read, for the account that gets it. */
export type Seal = (data: string) => string;

/** A signature of Gemini's as its caller gets it: sealed. */
export function sealSignature(signature: string, seal: Seal): string {
  return Buffer.from(PACKED + seal(signature)).toString('base64');
}

/** What {@link sealSignature} sealed, for core to open; undefined for any other signature. */
export function sealedIn(signature: string): string | undefined {
  if (!isPacked(signature)) return undefined;
  const inner = Buffer.from(signature, 'base64').toString('utf8').slice(PACKED.length);
  return inner.startsWith(SEAL) ? inner : undefined;
}

/** Reasoning that belongs to another format, as a signature: what its maker wants back is sealed. */
export function packReasoning({ text: _, ...detail }: ReasoningDetail, seal: Seal): string {
  return Buffer.from(PACKED + JSON.stringify(sealDetail(detail, seal))).toString('base64');
}

/**
 * Reasoning that is packed into the signatures of calls for callers who do not want to see any, as Gemini's own is: what its maker
 * encrypted. Where reasoning shows its text, that would be needed with it.
 */
export function hiddenReasoning(details: readonly ReasoningDetail[] = []): readonly ReasoningDetail[] {
  return details.some(({ kind }) => kind === 'text')
    ? []
    : details.filter(({ kind, format }) => kind === 'encrypted' && format !== 'gemini');
}

/** What {@link packReasoning} packed, with the text of the part that it came with; undefined for any other signature. */
export function unpackReasoning(signature: string, text: string): ReasoningDetail | undefined {
  if (!isPacked(signature)) return undefined;
  const detail = parseJson(Buffer.from(signature, 'base64').toString('utf8').slice(PACKED.length));
  if (!isObject(detail) || typeof detail['format'] !== 'string' || detail['format'] === 'gemini') return undefined;
  const { kind, format, signature: own, data, id } = detail;
  if (kind !== 'text' && kind !== 'summary' && kind !== 'encrypted') return undefined;
  const texts = Object.entries({ data, signature: own, id }).filter(([, value]) => typeof value === 'string');
  return readSealedDetail({ kind, format, ...(text !== '' && { text }), ...Object.fromEntries(texts) });
}

/** Whether a signature was written by a gateway, sealed or as reasoning of another format: Gemini would refuse it as it is. */
export function isPacked(signature: string): boolean {
  return signature.startsWith(PACKED_START);
}

function toBase64(text: string): string {
  const base64 = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  return base64 + '='.repeat((4 - (base64.length % 4)) % 4);
}
