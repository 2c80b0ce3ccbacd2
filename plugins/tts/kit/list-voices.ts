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

/** Where a vendor lists its voices, and how the list is read. */
export interface VoiceList {
  /** Under the base URL; may hold a query. */
  readonly path: string;
  /** The voices in the vendor's JSON; none in nonsense. Never throws. */
  read(body: unknown): readonly Voice[];
}

const TIMEOUT_MS = 20_000;

/**
 * The `listVoices` of a vendor: asks its endpoint with the operator's key, over `api.http()`. It rejects with the error of the
 * vendor's own class, or `provider_invalid_response` for what is no JSON.
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
    throw new GatewayError(
      'provider_invalid_response',
      `${api.instance} answered with something that is no list of voices.`,
    );
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

/** Headers that came several times in one, as HTTP allows. */
function flatten(headers: Readonly<Record<string, string | string[] | undefined>>): ResponseHeaders {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}

/** The language of a BCP 47 tag without its script and region, in lower case: `pt-BR` gives `pt`. */
export function primaryLanguage(tag: string): string {
  return (tag.split('-')[0] ?? tag).toLowerCase();
}

/**
 * One row of a vendor's voice list, for `flatMap`: nothing without an id that is a text; a voice without a name is called
 * by its id. Never throws, whatever the vendor sent.
 */
export function readVoice(id: unknown, name: unknown, language: unknown): readonly Voice[] {
  const voiceId = readString(id);
  const spoken = readString(language);
  if (voiceId === undefined) return [];
  return [{ id: voiceId, name: readString(name) ?? voiceId, ...(spoken !== undefined && { language: spoken }) }];
}
