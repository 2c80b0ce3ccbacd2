import type { DialectContext, ReasoningDetail } from '../../../core/index.ts';

/** The field under which details of another format stand inside a seal. */
const FOREIGN = 'reasoning_details';

/**
 * What of a block of reasoning its maker needs back, sealed; undefined where there is nothing. What another format than this one
 * needs back (a signature, say) is sealed with all of its details: core gives them to that format's codec again.
 */
export function sealReasoning(details: readonly ReasoningDetail[], seal: DialectContext['seal']): string | undefined {
  const own = details.find(({ format, data }) => format === 'responses' && data !== undefined);
  if (own?.data !== undefined) return seal(own.data);
  const foreign = details.filter(
    ({ format, data, signature }) => format !== 'responses' && (data !== undefined || signature !== undefined),
  );
  return foreign.length > 0 ? seal(JSON.stringify({ [FOREIGN]: foreign })) : undefined;
}

/** Whether an opened seal holds another format's details, which no vendor of this one can read. */
export function isForeign(data: string): boolean {
  return data.startsWith(`{"${FOREIGN}":`);
}

/** Whether a text was sealed by a gateway; whose it is only core can tell. */
export function isSealed(data: string): boolean {
  return data.startsWith('tg1.');
}
