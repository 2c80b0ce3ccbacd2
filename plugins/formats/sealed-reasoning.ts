import type { ReasoningDetail } from '../../contract/index.ts';

/** How texts begin that core sealed for one account and one deployment; core alone can say whose they are. */
export const SEAL = 'tg1.';

/** A piece of reasoning as it goes out: what its maker encrypted is sealed, and what Anthropic signed it with. */
export function sealDetail(detail: ReasoningDetail, seal: (data: string) => string): ReasoningDetail {
  const { data, signature, format } = detail;
  return {
    ...detail,
    ...(data !== undefined && { data: seal(data) }),
    ...(signature !== undefined && format === 'anthropic' && { signature: seal(signature) }),
  };
}

/** Whether a piece of reasoning that came back has a sealed signature. */
export function hasSealedSignature({ signature, data }: Pick<ReasoningDetail, 'signature' | 'data'>): boolean {
  return data === undefined && typeof signature === 'string' && signature.startsWith(SEAL);
}

/** A piece of reasoning that came back, its sealed signature where core opens it: core makes the signature of that. */
export function readSealedDetail(detail: ReasoningDetail): ReasoningDetail {
  if (!hasSealedSignature(detail)) return detail;
  const { signature, ...rest } = detail;
  return { ...rest, ...(signature !== undefined && { data: signature }) };
}
