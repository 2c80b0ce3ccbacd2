/**
 * The path that routes see: double slashes are one, `%3A` is a colon, and the `/v1` that SDKs put after the provider segment is dropped
 * (`/api/core/openai/v1/models` is `/api/core/openai/models`). Accepted, never redirected: clients lose their key or body on a redirect.
 */
export function normalisePath(path: string): string {
  const plain = path.includes('%3') ? path.replace(/%3a/gi, ':') : path;
  const single = plain.includes('//') ? plain.replace(/\/{2,}/g, '/') : plain;
  const trimmed = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
  return trimmed.startsWith('/api/core/') ? trimmed.replace(PROVIDER_V1, '$1/') : trimmed;
}

const PROVIDER_V1 = /^(\/api\/core\/[^/]+)\/v1\//;
