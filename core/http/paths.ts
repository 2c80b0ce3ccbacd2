/**
 * The path that routes see: double slashes are one, and the `/v1` that SDKs put after the provider segment is dropped
 * (`/api/core/openai/v1/models` is `/api/core/openai/models`). Accepted, never redirected: clients lose their key or body on a redirect.
 */
export function normalisePath(path: string): string {
  const single = path.includes('//') ? path.replace(/\/{2,}/g, '/') : path;
  const trimmed = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
  return trimmed.startsWith('/api/core/') ? trimmed.replace(PROVIDER_V1, '$1/') : trimmed;
}

const PROVIDER_V1 = /^(\/api\/core\/[^/]+)\/v1\//;
