/** Minimum bytes of an HMAC secret: the length of SHA-256. */
const MIN_BYTES = 32;
const MIN_DISTINCT = 10;

/** Long enough not to occur in random base64 text by chance. */
const PLACEHOLDER =
  /secret|passw[o0]rd|passphrase|change[-_ ]?me|change[-_ ]?this|example|placeholder|replace|default|characters|string|sample|tollgate|your[-_ ]|qwerty|letmein|123456|really|security/i;

/**
 * Reason why a text is too weak as a shared secret; undefined if none is found. It is the end of a sentence that begins
 * with the secret's name. A published secret that looks random cannot be detected.
 */
export function findSecretWeakness(secret: string): string | undefined {
  const bytes = Buffer.byteLength(secret);
  if (bytes < MIN_BYTES) return `has ${bytes} bytes, but needs at least ${MIN_BYTES}`;
  if (new Set(secret).size < MIN_DISTINCT) return `has fewer than ${MIN_DISTINCT} different characters`;
  if (isRepetition(secret)) return 'repeats the same characters';
  if (isSequence(secret)) return 'is a sequence of the alphabet or digits';
  if (PLACEHOLDER.test(secret)) return 'looks like a placeholder from an example';
  return undefined;
}

/** A text is a repetition if it occurs in its own double before the end of the first copy. */
function isRepetition(text: string): boolean {
  return `${text}${text}`.indexOf(text, 1) < text.length;
}

function isSequence(text: string): boolean {
  let steps = 0;
  for (let i = 1; i < text.length; i += 1) {
    if (Math.abs(text.charCodeAt(i) - text.charCodeAt(i - 1)) === 1) steps += 1;
  }
  return steps > text.length / 2;
}
