import type { ReasoningDetail } from '../../contract/index.ts';

/** Prefix of texts that core sealed for one account and one deployment. Only core can verify them. */
export const SEAL = 'tg1.';

/** Seals the encrypted data and the Anthropic signature of a reasoning detail that is sent to the client. */
export function sealDetail(detail: ReasoningDetail, seal: (data: string) => string): ReasoningDetail {
  const { data, signature, format } = detail;
  return {
    ...detail,
    ...(data !== undefined && { data: seal(data) }),
    ...(signature !== undefined && format === 'anthropic' && { signature: seal(signature) }),
  };
}

/** Returns true if a reasoning detail from a client has a sealed signature. */
export function hasSealedSignature({ signature, data }: Pick<ReasoningDetail, 'signature' | 'data'>): boolean {
  return data === undefined && typeof signature === 'string' && signature.startsWith(SEAL);
}

/**
 * Moves the sealed signature of a reasoning detail from a client to `data`, where core opens it and restores the
 * signature.
 */
export function readSealedDetail(detail: ReasoningDetail): ReasoningDetail {
  if (!hasSealedSignature(detail)) return detail;
  const { signature, ...rest } = detail;
  return { ...rest, ...(signature !== undefined && { data: signature }) };
}
