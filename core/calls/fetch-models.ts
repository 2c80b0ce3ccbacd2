import { VERSION } from '../config/package-root.ts';
import type { Provider } from '../contract/provider.ts';
import { createHttpClient } from '../upstream/http-client.ts';

/** The most models one vendor may list. */
const MAX_MODELS = 5000;

/** The model ids that a vendor lists, over the control-plane client; the key goes to the base URL's host only. */
export async function fetchModelIds(provider: Provider): Promise<readonly string[]> {
  const { listModels, baseUrl, credential, headers, hosts = [] } = provider;
  if (!listModels) throw new TypeError('this provider has no list of models to fetch');
  const request = listModels.request();
  const client = await createHttpClient(new Set([new URL(baseUrl).host, ...hosts]), VERSION);
  const key =
    credential?.value === undefined ? {} : { [credential.header]: `${credential.prefix ?? ''}${credential.value}` };
  const body: unknown = await client
    .get(`${baseUrl}${request.path}`, { headers: { ...headers, ...request.headers, ...key } })
    .json();
  return listModels.response(body).slice(0, MAX_MODELS);
}
