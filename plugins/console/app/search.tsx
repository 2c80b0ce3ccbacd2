import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';
import { get, may, type Page, session } from './api.ts';
import { linkTo } from './routing.ts';
import type { Account, Call, Key, Model, Team, User } from './shapes.ts';
import { Button, Dialog, Problem, useLoad, usePaused } from './ui.tsx';

/** Search over pages, users, keys, teams, accounts, models and request ids. */

const isOpen = signal(false);

addEventListener('keydown', (event) => {
  const isShortcut = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey;
  if (!isShortcut || !session.value) return;
  event.preventDefault();
  isOpen.value = true;
});

interface Found {
  readonly kind: string;
  readonly text: string;
  readonly note?: string | undefined;
  readonly href: string;
}

/** Page that can be found by its title. */
export interface FoundPage {
  readonly name: string;
  readonly title: string;
}

export function SearchButton({ pages }: { pages: readonly FoundPage[] }) {
  return (
    <>
      <Button
        onClick={() => {
          isOpen.value = true;
        }}
      >
        Search <kbd>Ctrl K</kbd>
      </Button>
      {isOpen.value && <SearchDialog pages={pages} />}
    </>
  );
}

function close(): void {
  isOpen.value = false;
}

/** Results of each kind. */
const MOST = 5;

function SearchDialog({ pages }: { pages: readonly FoundPage[] }) {
  const [text, setText] = useState('');
  const list = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const word = text.trim();
  const paused = usePaused(word);
  const found = useLoad(paused === '' ? undefined : paused, async () => ({ of: paused, rows: await find(paused) }));
  const known = pages
    .filter(({ title }) => title.toLowerCase().includes(word.toLowerCase()))
    .map(({ name, title }): Found => ({ kind: 'Page', text: title, href: linkTo(name) }));
  const isFound = found.data?.of === word;
  const isSearching = word !== '' && !isFound && found.error === undefined;
  const rows = word !== '' && isFound ? [...known, ...found.data.rows] : known;
  const move = (event: KeyboardEvent): void => {
    const links: readonly (Element | null)[] = [...(list.current?.querySelectorAll('a') ?? [])];
    const at = links.indexOf(document.activeElement);
    const [first] = links;
    if (event.key === 'Enter' && at < 0 && first instanceof HTMLElement) first.click();
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    const next = at + (event.key === 'ArrowDown' ? 1 : -1);
    const to = next < 0 ? field.current : links[next];
    if (to instanceof HTMLElement) to.focus();
  };
  return (
    <Dialog title="Search" onClose={close}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: arrows move between the field and the results */}
      <div class="list" onKeyDown={move}>
        <search>
          <input
            ref={field}
            type="search"
            aria-label="Request id, key, user, team, model or page"
            placeholder="Request id, key, user, team, model or page"
            autocomplete="off"
            spellcheck={false}
            maxLength={256}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </search>
        <Problem error={found.error} />
        <ul class="lines found" ref={list}>
          {rows.map(({ kind, text: name, note, href }) => (
            <li key={`${kind} ${href}`}>
              <a href={href} onClick={close}>
                {name}
              </a>{' '}
              <span class="muted">
                {kind}
                {note && `, ${note}`}
              </span>
            </li>
          ))}
        </ul>
        <p class="muted" role="status">
          {isSearching ? 'Searching …' : rows.length === 0 ? 'Nothing found.' : ''}
        </p>
      </div>
    </Dialog>
  );
}

/** Finds what the session may see. */
async function find(word: string): Promise<readonly Found[]> {
  const lists = await Promise.all([
    findCalls(word),
    ifMay('keys:read', () => findKeys(word)),
    ifMay('users:read', async () => {
      const { data } = await get<Page<User>>('/users', { name: word, limit: MOST });
      return data.map(({ id, name }) => row('User', id, 'users', { id }, name));
    }),
    ifMay('teams:read', async () => {
      const { data } = await get<Page<Team>>('/teams', { limit: 1000 });
      return data.filter(({ tag }) => has(tag, word)).map(({ tag }) => row('Team', tag, 'teams', { team: tag }));
    }),
    ifMay('accounts:read', async () => {
      const { data } = await get<Page<Account>>('/accounts', { name: word, limit: MOST });
      return data.map(({ id }) => row('Account', id, 'accounts', { id }));
    }),
    ifMay('models:read', async () => {
      const { data } = await get<Page<Model>>('/catalog', { limit: 1000 });
      return data.filter(({ id }) => has(id, word)).map(({ id }) => row('Model', id, 'models', { name: id }));
    }),
  ]);
  return lists.flatMap((rows) => rows.slice(0, MOST));
}

async function ifMay(scope: string, read: () => Promise<readonly Found[]>): Promise<readonly Found[]> {
  return may(scope) ? read() : [];
}

/** A request by its id, and a link to the calls that have the word in a name. */
async function findCalls(word: string): Promise<readonly Found[]> {
  if (!may('calls:read')) return [];
  const more = row('Calls', `Calls with “${word}”`, 'calls', { search: word });
  if (!/^[\w-]{8,100}$/.test(word)) return [more];
  const { data } = await get<Page<Call>>('/calls', { request: word, limit: MOST });
  return [...data.map((call) => row('Request', call.request_id, 'calls', { id: call.id }, call.outcome)), more];
}

/** Keys by their prefix or by a part of their name. */
async function findKeys(word: string): Promise<readonly Found[]> {
  const { data } = /^tg_\w{12}/.test(word)
    ? { data: [await get<Key>(`/keys/${word.slice(0, 15)}`).catch(() => undefined)].filter((key) => key !== undefined) }
    : await get<Page<Key>>('/keys', { name: word, limit: MOST });
  return data.map(({ id, prefix, name, user_id }) => row('Key', name || prefix, 'keys', { edit: id }, user_id));
}

function row(
  kind: string,
  text: string,
  page: string,
  query: Readonly<Record<string, string>>,
  note?: string | null,
): Found {
  return { kind, text, href: linkTo(page, query), note: note ?? undefined };
}

function has(name: string, word: string): boolean {
  return name.toLowerCase().includes(word.toLowerCase());
}
