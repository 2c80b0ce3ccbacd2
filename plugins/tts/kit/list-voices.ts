import {
  type Endpoint,
  failureToError,
  GatewayError,
  type PluginApi,
  parseJson,
  type ResponseHeaders,
  readString,
} from '../../../contract/index.ts';
import type { Voice } from './types.ts';

/** Voice list of a vendor: its path, and its reader. */
export interface VoiceList {
  /** Path below the base URL, with an optional query. */
  readonly path: string;
  /** Voices in the vendor's JSON; none in invalid JSON. Never throws. */
  read(body: unknown): readonly Voice[];
}

const TIMEOUT_MS = 20_000;

/**
 * Creates the `listVoices` of a vendor, which calls its endpoint with the operator's key, by `api.http()`. It rejects
 * with an error of the vendor's own class, or `provider_invalid_response` for invalid JSON.
 */
export function createVoiceLister(
  api: Pick<PluginApi, 'http' | 'instance'>,
  endpoint: Pick<Endpoint, 'baseUrl' | 'credential' | 'headers' | 'error'>,
  { path, read }: VoiceList,
): () => Promise<readonly Voice[]> {
  return async () => {
    const { status, headers, text } = await request(api, endpoint, path);
    if (status >= 400) throw failureToError(endpoint.error(status, parseJson(text) ?? text, headers), api.instance);
    const body = parseJson(text);
    if (body !== undefined) return read(body);
    throw new GatewayError('provider_invalid_response', `${api.instance} did not return a list of voices.`);
  };
}

async function request(
  api: Pick<PluginApi, 'http' | 'instance'>,
  { baseUrl, credential, headers }: Pick<Endpoint, 'baseUrl' | 'credential' | 'headers'>,
  path: string,
): Promise<{ readonly status: number; readonly headers: ResponseHeaders; readonly text: string }> {
  const key =
    credential?.value === undefined ? {} : { [credential.header]: `${credential.prefix ?? ''}${credential.value}` };
  const http = await api.http();
  try {
    const response = await http.get(`${baseUrl}${path}`, {
      headers: { ...headers, ...key },
      throwHttpErrors: false,
      retry: { limit: 0 },
      timeout: { request: TIMEOUT_MS },
    });
    return { status: response.statusCode, headers: flatten(response.headers), text: response.body };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    throw failureToError({ class: isLate ? 'timeout' : 'upstream_error', message: String(error) }, api.instance, error);
  }
}

/** Joins repeated headers into one, as HTTP allows. */
function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): ResponseHeaders {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}

/** Language of a BCP 47 tag without its script and region, in lower case: `pt-BR` becomes `pt`. */
export function primaryLanguage(tag: string): string {
  return (tag.split('-')[0] ?? tag).toLowerCase();
}

/**
 * Reads a row of a vendor's voice list, for `flatMap`. A row needs a text id; a voice without a name is named by its
 * id. Never throws.
 */
export function readVoice(id: unknown, name: unknown, language: unknown): readonly Voice[] {
  const voiceId = readString(id);
  const spoken = readString(language);
  if (voiceId === undefined) return [];
  return [{ id: voiceId, name: readString(name) ?? voiceId, ...(spoken !== undefined && { language: spoken }) }];
}
