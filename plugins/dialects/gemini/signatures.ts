import { isObject, type JsonObject, parseJson, type ReasoningDetail, readString } from '../../../core/index.ts';

/**
 * A part of this format has one place for what its maker needs back: `thoughtSignature`, which clients keep and do not read.
 * Gemini's own signatures stand there byte for byte. The reasoning of another format stands there packed, in base64 as clients
 * expect, so that its maker gets it back whole and Gemini never sees it.
 */
const PACKED = 'tollgate:';
const PACKED_START = Buffer.from(PACKED).toString('base64');

/** Put between a call's id and its signature by the codec of Gemini, for clients that keep ids only; clients here keep both. */
const ID_SEPARATOR = '__thought__';

/** Seals what only its maker can read, for the account that gets it. */
export type Seal = (data: string) => string;

/** Reasoning that belongs to another format, as a signature. Anthropic's is as its own clients have it; other data is sealed. */
export function packReasoning({ text: _, ...detail }: ReasoningDetail, seal: Seal): string {
  const { data, format } = detail;
  const packed = data === undefined || format === 'anthropic' ? detail : { ...detail, data: seal(data) };
  return Buffer.from(PACKED + JSON.stringify(packed)).toString('base64');
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
  return { kind, format, ...(text !== '' && { text }), ...Object.fromEntries(texts) };
}

/** Whether a signature is reasoning of another format, which Gemini would refuse. */
export function isPacked(signature: string): boolean {
  return signature.startsWith(PACKED_START);
}

/** Gemini's signature of a canonical message, part or call. */
export function signatureOf(holder: JsonObject): string | undefined {
  const extra = holder['extra_content'];
  const google = isObject(extra) ? extra['google'] : undefined;
  return isObject(google) ? readString(google['thought_signature']) : undefined;
}

/** The canonical field that holds Gemini's signature. */
export function signatureField(signature: string | undefined): { readonly extra_content?: JsonObject } {
  return signature ? { extra_content: { google: { thought_signature: signature } } } : {};
}

/** A call's id without the signature that it carries beside the one in the part. */
export function plainCallId(id: string): string {
  const at = id.indexOf(ID_SEPARATOR);
  return at < 1 ? id : id.slice(0, at);
}
