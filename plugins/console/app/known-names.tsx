import { useId, useState } from 'preact/hooks';
import { get, may, type Page, readDescription } from './api.ts';
import type { Account, Key, Model, Team, Usage, User } from './shapes.ts';
import { useLoad, usePaused } from './ui.tsx';

/** Known names, which fields offer while a person types. */

interface Known {
  readonly name: string;
  readonly note?: string | undefined;
}

interface Source {
  /** Scope of its route; without it nothing is offered. */
  readonly scope?: string;
  /** True if the API searches: the names depend on the typed text. */
  readonly isSearched?: boolean;
  read(typed: string): Promise<readonly Known[]>;
}

/** Names that one field offers at most, of a list that the API searches. */
const MOST = 20;

function named(names: Iterable<string>): readonly Known[] {
  return [...new Set(names)].map((name) => ({ name }));
}

async function readModels(): Promise<readonly Model[]> {
  return (await get<Page<Model>>('/catalog', { limit: 1000 })).data;
}

/** Values of a dimension with calls in the last 30 days, those with the highest cost first. */
function usedValues(dimension: string): Source {
  return {
    scope: 'usage:read',
    async read() {
      const { data } = await get<Usage>('/usage', { by: dimension, last: '30d', sort: 'cost', limit: 100 });
      return named(data.map((row) => String(row[dimension])).filter((value) => value !== '-'));
    },
  };
}

interface ErrorSchema {
  readonly properties?: {
    readonly error?: { readonly properties?: { readonly code?: { readonly enum?: readonly string[] } } };
  };
}

/** Error codes of the gateway, by its OpenAPI document. */
function codesOf(schema: ErrorSchema | undefined): readonly string[] {
  return schema?.properties?.error?.properties?.code?.enum ?? [];
}

const STATUSES = ['400', '401', '403', '404', '408', '429', '500', '502', '503', '504', '529'];

const SOURCES = Object.freeze({
  user: {
    scope: 'users:read',
    isSearched: true,
    async read(typed) {
      const { data } = await get<Page<User>>('/users', { name: typed, limit: MOST });
      return data.map(({ id, name }) => ({ name: id, note: name ?? undefined }));
    },
  },
  account: {
    scope: 'accounts:read',
    isSearched: true,
    read: async (typed) =>
      named((await get<Page<Account>>('/accounts', { name: typed, limit: MOST })).data.map(({ id }) => id)),
  },
  key: {
    scope: 'keys:read',
    isSearched: true,
    async read(typed) {
      const { data } = await get<Page<Key>>('/keys', { name: typed, limit: MOST });
      return data.map(({ prefix, name }) => ({ name: prefix, note: name }));
    },
  },
  plan: {
    scope: 'plans:read',
    read: async () =>
      named((await get<Page<{ readonly name: string }>>('/plans', { limit: 1000 })).data.map(({ name }) => name)),
  },
  tag: {
    scope: 'teams:read',
    read: async () => named((await get<Page<Team>>('/teams', { limit: 1000 })).data.map(({ tag }) => tag)),
  },
  /** Model as requests name it: an alias, or a provider's model. */
  model: { scope: 'models:read', read: async () => named((await readModels()).map(({ id }) => id)) },
  /** Model by the provider's name, as records of calls have it. */
  providerModel: {
    scope: 'models:read',
    read: async () =>
      named(
        (await readModels()).filter(({ targets }) => targets === null).map(({ id }) => id.slice(id.indexOf('/') + 1)),
      ),
  },
  alias: {
    scope: 'models:read',
    read: async () => named((await readModels()).filter(({ targets }) => targets !== null).map(({ id }) => id)),
  },
  provider: {
    scope: 'models:read',
    read: async () =>
      named(
        (await readModels()).filter(({ targets }) => targets === null).map(({ id }) => id.slice(0, id.indexOf('/'))),
      ),
  },
  operation: usedValues('operation'),
  endUser: usedValues('end_user'),
  session: usedValues('session'),
  errorCode: { read: async () => named(codesOf((await readDescription()).components?.schemas?.['Error'])) },
  status: { read: async () => named(STATUSES) },
  timezone: { read: async () => named(['UTC', ...Intl.supportedValuesOf('timeZone')]) },
} as const satisfies Readonly<Record<string, Source>>);

export type NameKind = keyof typeof SOURCES;

interface Offered {
  readonly kind?: NameKind | undefined;
  /** Further names, such as those on the page. */
  readonly shown?: readonly string[] | undefined;
  /** True if the field takes several names with commas between them. */
  readonly isMany?: boolean;
}

/** Offers known names to a field: attributes of its input, and the list. Names are read once the field has the focus. */
export function useKnownNames({ kind, shown = [], isMany = false }: Offered) {
  const id = useId();
  const [typed, setTyped] = useState<string>();
  const text = usePaused(typed) ?? '';
  const source: Source | undefined = kind && SOURCES[kind];
  // Names before the last comma are complete.
  const before = isMany ? text.slice(0, text.lastIndexOf(',') + 1) : '';
  const word = source?.isSearched ? text.slice(before.length).trim() : '';
  const isRead = typed !== undefined && source && (source.scope === undefined || may(source.scope));
  const known = useLoad(isRead ? `${kind} ${word}` : undefined, async () => source?.read(word) ?? []);
  if (!source && shown.length === 0) return { field: {}, list: null };
  const notes = new Map([...named(shown), ...(known.data ?? [])].map(({ name, note }) => [name, note]));
  const look = (event: { readonly currentTarget: HTMLInputElement }): void => setTyped(event.currentTarget.value);
  return {
    field: { list: id, onFocus: look, onKeyUp: look },
    list: (
      <datalist id={id}>
        {[...notes].map(([name, note]) => (
          <option key={name} value={before ? `${before} ${name}` : name}>
            {note}
          </option>
        ))}
      </datalist>
    ),
  };
}
