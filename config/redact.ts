import { isObject } from '../contract/json.ts';
import { REDACTED, secretPattern } from '../contract/secret-pattern.ts';
import type { GatewayConfig } from './core-schema.ts';

/** Patterns of credentials of any vendor. */
export const CREDENTIAL_SHAPES: readonly RegExp[] = Object.freeze([
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  /\b(?:bearer|basic)\s+[\w.~+/*=-]{8,}/gi,
  /\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/g,
  /\b(?:sk|pk|rk|tg|gsk|xai|hf|r8|nvapi|pplx|fw)[-_][\w*.-]{8,}/g,
  /\b(?:ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w-]{10,}/g,
  /\b(?:AKIA|AIza|ya29\.)[\w-]{12,}/g,
]);

/** Creates a function that removes these secrets from texts. */
export function createSecretFilter(listSecrets: () => readonly string[]): (text: string) => string {
  let own: RegExp | null | undefined;
  return (text) => {
    if (own === undefined) own = secretPattern(listSecrets(), 'g');
    return own ? text.replace(own, REDACTED) : text;
  };
}

/** Creates a function that removes these secrets, and everything that looks like a credential, from texts. */
export function createRedactor(listSecrets: () => readonly string[]): (text: string) => string {
  const filter = createSecretFilter(listSecrets);
  return (text) => {
    let shown = filter(text);
    for (const shape of CREDENTIAL_SHAPES) shown = shown.replace(shape, REDACTED);
    return shown;
  };
}

/** Shorter values may be ordinary words, not secrets. */
const LEAST_LENGTH = 8;

/** Lists every text of a configuration that `config print` hides, whole or in part. */
export function listSecrets({ plain, printable }: Pick<GatewayConfig, 'plain' | 'printable'>): readonly string[] {
  const found = new Set<string>();
  const visit = (value: unknown, shown: unknown): void => {
    if (typeof value === 'string' && value !== shown && value.length >= LEAST_LENGTH) found.add(value);
    if (Array.isArray(value))
      for (const [i, item] of value.entries()) visit(item, Array.isArray(shown) ? shown[i] : shown);
    else if (isObject(value))
      for (const [name, member] of Object.entries(value)) visit(member, isObject(shown) ? shown[name] : shown);
  };
  visit(plain(), printable());
  return [...found];
}
