import type Keyv from 'keyv';
import { VERSION } from '../config/version.ts';
import type { Log } from '../contract/log.ts';
import type { Provider } from '../contract/provider.ts';
import { createHttpClient } from '../upstream/http-client.ts';
import type { ModelCatalog } from './model-catalog.ts';

/** A vendor's list as it was fetched; kept in the store, so that a restart knows it at once. */
export interface FetchedList {
  readonly ids: readonly string[];
  /** Unix milliseconds. */
  readonly at: number;
}

/** The document namespace of fetched lists. */
export const MODEL_LISTS = 'model-lists';

/** The most models one vendor may list. */
const MAX_MODELS = 5000;

/** The model ids that a vendor lists, over the control-plane client; the key goes to the base URL's host only. */
export async function fetchModelIds(provider: Provider): Promise<readonly string[]> {
  const { listModels, baseUrl, credential, headers } = provider;
  if (!listModels) throw new TypeError('this provider has no list of models to fetch');
  const request = listModels.request();
  const client = await createHttpClient(new Set([new URL(baseUrl).host, ...(provider.hosts ?? [])]), VERSION);
  const key =
    credential?.value === undefined ? {} : { [credential.header]: `${credential.prefix ?? ''}${credential.value}` };
  const body: unknown = await client
    .get(`${baseUrl}${request.path}`, { headers: { ...headers, ...request.headers, ...key } })
    .json();
  return listModels.response(body).slice(0, MAX_MODELS);
}

/**
 * Keeps the catalog up with what vendors list: first what the store remembers (of a refresh at the command line, too), then,
 * for providers with `refreshModels` and when that is old, the vendor's own list, beside the running gateway. A vendor that does not answer changes nothing.
 * Answers a function that stops it.
 */
export function startModelRefresh(
  providers: ReadonlyMap<string, Provider>,
  catalog: ModelCatalog,
  lists: Keyv<FetchedList>,
  log: Log,
): () => void {
  const timers = [...providers].flatMap(([name, provider]) => {
    const everyMs = isAskable(provider) ? provider.refreshModelsMs : undefined;
    const refresh = () => void refreshOne(name, provider, everyMs, catalog, lists, log);
    if (provider.listModels) refresh();
    if (everyMs === undefined) return [];
    const timer = setInterval(refresh, Math.min(everyMs, MAX_TIMER_MS));
    timer.unref();
    return [timer];
  });
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}

/** Whether a vendor can be asked for its list: it has one, and the operator has the key it takes. */
export function isAskable({ listModels, credential }: Provider): boolean {
  return listModels !== undefined && !(credential?.required && credential.value === undefined);
}

/** Longer timers overflow and fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

async function refreshOne(
  name: string,
  provider: Provider,
  everyMs: number | undefined,
  catalog: ModelCatalog,
  lists: Keyv<FetchedList>,
  log: Log,
): Promise<void> {
  try {
    const known = await lists.get(name);
    if (known) catalog.learn(name, known.ids);
    if (everyMs === undefined || (known && Date.now() - known.at < everyMs)) return;
    const ids = await fetchModelIds(provider);
    catalog.learn(name, ids);
    await lists.set(name, { ids, at: Date.now() });
    log.info({ provider: name, models: ids.length }, 'fetched the model list');
  } catch (error) {
    log.warn(
      { provider: name, reason: error instanceof Error ? error.name : 'unknown' },
      'the model list could not be fetched; the known one stays',
    );
  }
}
