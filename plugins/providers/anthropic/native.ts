import { GatewayError, type NativeRow, readCount, readObject } from '../../../core/index.ts';

/** The most that the caller's headers may have for the vendor. */
const MAX_HEADERS = 4096;

/** Which betas callers may ask for. */
export interface BetaRules {
  /** Names that are refused. */
  readonly deny: readonly string[];
  /** Names that the operator wants with every request. */
  readonly always: readonly string[];
}

/** How the vendor speaks its own format to callers that do. */
export function nativeMessages(rules: BetaRules): NativeRow {
  return {
    path: '/v1/messages',
    headers: ({ 'anthropic-version': version, 'anthropic-beta': betas }) => {
      assertPlain('anthropic-version', version);
      assertPlain('anthropic-beta', betas);
      return { ...(version && { 'anthropic-version': version }), ...betaHeader(betas, rules) };
    },
    count: COUNT,
  };
}

/** Fields of a message that a request to count does not have: the vendor refuses them. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  ...['max_tokens', 'stream', 'stop_sequences', 'temperature', 'top_p', 'top_k', 'metadata', 'service_tier'],
]);

const COUNT = Object.freeze({
  path: '/v1/messages/count_tokens',
  body: (body: object): object => Object.fromEntries(Object.entries(body).filter(([field]) => !UNCOUNTED.has(field))),
  response: (body: unknown) => readCount(readObject(body)['input_tokens']),
});

/** The names of a header's betas. */
export function betaNames(header: string | undefined): readonly string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** The header of betas: the caller's, byte for byte, then those of the operator that are missing. Throws for one that is denied. */
export function betaHeader(
  callers: string | undefined,
  { deny, always }: BetaRules,
): { readonly 'anthropic-beta'?: string } {
  const names = betaNames(callers);
  const denied = names.find((name) => deny.includes(name));
  if (denied !== undefined)
    throw new GatewayError(
      'invalid_request',
      `The beta \`${denied}\` is denied by this gateway's configuration: leave it out of \`anthropic-beta\`.`,
      { param: 'anthropic-beta' },
    );
  const missing = always.filter((name) => !names.includes(name));
  const header = [...(names.length > 0 ? [callers] : []), ...missing].join(',');
  return header === '' ? {} : { 'anthropic-beta': header };
}

function assertPlain(name: string, value: string | undefined): void {
  if (value === undefined || (value.length <= MAX_HEADERS && /^[\x20-\x7e]*$/.test(value))) return;
  throw new GatewayError(
    'invalid_request',
    `The header \`${name}\` must be at most ${MAX_HEADERS} printable ASCII characters.`,
    { param: name },
  );
}
