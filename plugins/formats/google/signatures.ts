import { isObject, type JsonObject, parseJson, type ReasoningDetail } from '../../../contract/index.ts';
import { toolCallId } from '../kit/index.ts';
import { readSealedDetail, SEAL, sealDetail } from '../sealed-reasoning.ts';

/**
 * Gemini 3 signs its function calls and responds 400 when a call comes back unsigned. OpenAI's shape has no field for
 * a signature, so it is sent twice. One copy is in `extra_content.google.thought_signature`, as Google's own OpenAI
 * endpoint sends it. The other is inside the call's id, as in LiteLLM, because many clients keep only id, name and
 * arguments. A call that lost both gets the sentinel that Google documents. Source:
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 *
 * Google's format has one field for data that the vendor requires back: `thoughtSignature`, which clients keep and do
 * not read. Google's own signatures are sealed there for the account in passthrough, and return to Google byte for
 * byte. Reasoning of another format is packed there, so that its vendor gets it back complete and Gemini never sees
 * it. Both are base64, as clients expect: Google's own clients decode it and write it again in base64url.
 */

/** Separates a call's id from its signature. */
const SEPARATOR = '__thought__';
export const SKIP_SIGNATURE = 'skip_thought_signature_validator';

/** Maximum length of a call id at Google. */
export const MAX_CALL_ID = 64;
/** Longer signatures are not added to ids: a `tool_call_id` may have 4096 characters at this gateway. */
const MAX_SIGNATURE_IN_ID = 3900;

const PACKED = 'tollgate:';
const PACKED_START = Buffer.from(PACKED).toString('base64');

/** Call id that carries its signature, in letters, digits, `_` and `-` only. */
export function signedCallId(id: string, signature: string | undefined): string {
  const plain = toolCallId(id, MAX_CALL_ID);
  if (!signature || signature.length > MAX_SIGNATURE_IN_ID || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(signature)) return plain;
  return plain + SEPARATOR + signature.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_');
}

/** Call id without its signature. */
export function plainCallId(id: string): string {
  const at = id.indexOf(SEPARATOR);
  return at < 1 ? id : id.slice(0, at);
}

/** Splits a returned id into the id for Google and the signature. */
export function readCallId(id: string): { readonly id: string; readonly signature?: string } {
  const plain = plainCallId(id);
  const signature = plain === id ? '' : toBase64(id.slice(plain.length + SEPARATOR.length));
  return { id: toolCallId(plain, MAX_CALL_ID), ...(signature && { signature }) };
}

/** Gemini's signature of a canonical message, part or call, from any field where known clients put it. */
export function signatureOf(holder: JsonObject): string | undefined {
  const google = isObject(holder['extra_content']) ? holder['extra_content']['google'] : undefined;
  for (const place of [google, holder['provider_specific_fields'], holder['function']]) {
    const signature = isObject(place) ? place['thought_signature'] : undefined;
    if (typeof signature === 'string' && signature !== '') return signature;
  }
  return undefined;
}

/** Canonical field with Gemini's signature. */
export function signatureField(signature: string | undefined): { readonly extra_content?: JsonObject } {
  return signature ? { extra_content: { google: { thought_signature: signature } } } : {};
}

/** Seals data that only its vendor can read for the account that receives it. */
export type Seal = (data: string) => string;

/** Seals a Gemini signature for its caller. */
export function sealSignature(signature: string, seal: Seal): string {
  return Buffer.from(PACKED + seal(signature)).toString('base64');
}

/** Returns the data sealed by {@link sealSignature}, for core to open; undefined for any other signature. */
export function sealedIn(signature: string): string | undefined {
  if (!isPacked(signature)) return undefined;
  const inner = Buffer.from(signature, 'base64').toString('utf8').slice(PACKED.length);
  return inner.startsWith(SEAL) ? inner : undefined;
}

/** Packs reasoning of another format into a signature; data that its vendor requires back is sealed. */
export function packReasoning({ text: _, ...detail }: ReasoningDetail, seal: Seal): string {
  return Buffer.from(PACKED + JSON.stringify(sealDetail(detail, seal))).toString('base64');
}

/**
 * Encrypted reasoning, packed into call signatures for callers who hide thinking, as Gemini does with its own.
 * Reasoning with visible text is excluded, because its vendor would require that text too.
 */
export function hiddenReasoning(details: readonly ReasoningDetail[] = []): readonly ReasoningDetail[] {
  return details.some(({ kind }) => kind === 'text')
    ? []
    : details.filter(({ kind, format }) => kind === 'encrypted' && format !== 'gemini');
}

/**
 * Returns the reasoning packed by {@link packReasoning}, with the text of its part; undefined for any other
 * signature.
 */
export function unpackReasoning(signature: string, text: string): ReasoningDetail | undefined {
  if (!isPacked(signature)) return undefined;
  const detail = parseJson(Buffer.from(signature, 'base64').toString('utf8').slice(PACKED.length));
  if (!isObject(detail) || typeof detail['format'] !== 'string' || detail['format'] === 'gemini') return undefined;
  const { kind, format, signature: own, data, id } = detail;
  if (kind !== 'text' && kind !== 'summary' && kind !== 'encrypted') return undefined;
  const texts = Object.entries({ data, signature: own, id }).filter(([, value]) => typeof value === 'string');
  return readSealedDetail({ kind, format, ...(text !== '' && { text }), ...Object.fromEntries(texts) });
}

/** Returns true if the gateway wrote a signature, sealed or as reasoning of another format. Gemini would reject it. */
export function isPacked(signature: string): boolean {
  return signature.startsWith(PACKED_START);
}

function toBase64(text: string): string {
  const base64 = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  return base64 + '='.repeat((4 - (base64.length % 4)) % 4);
}
