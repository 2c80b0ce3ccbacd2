import { useEffect, useRef, useState } from 'preact/hooks';
import { get, hrefOf, minutesAhead, type Page, pathOf, type Query } from './api.ts';
import type { Call } from './shapes.ts';

/** Maximum lines on a page; older ones are a click away. A browser lays out the whole table for each new line. */
const MOST = 100;
const A_PAGE = 100;
/** Longest search for rare calls; a click continues it. */
const LONGEST_MS = 10_000;
/** Maximum lines added per frame while the backlog is short, so that a slow browser stays responsive. */
const A_FRAME = 10;

export interface LiveCalls {
  readonly calls: readonly Call[];
  readonly error: unknown;
  readonly isLoading: boolean;
  /** True while the feed is connected. */
  readonly isLive: boolean;
  /** True if calls were dropped because they arrived too fast. */
  readonly isCut: boolean;
  readonly next: string | undefined;
  /** Time back to which calls were searched, if the search is not over. */
  readonly searchedTo: string | undefined;
  loadOlder(): void;
}

interface State {
  readonly searchedTo: string | undefined;
  readonly calls: readonly Call[];
  readonly next: string | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
}

interface SearchedPage extends Page<Call> {
  readonly searched_to?: string;
}

const EMPTY: State = { calls: [], next: undefined, searchedTo: undefined, error: undefined, isLoading: true };

/**
 * Calls that match a filter, newest first. With `isOn` new ones arrive over one connection, filtered by the gateway.
 */
export function useLiveCalls(filter: Query, isOn: boolean): LiveCalls {
  const list = useCallList(filter);
  const feed = useFeed(filter, isOn, list.addNew, list.reload);
  return { ...list.state, ...feed, loadOlder: list.loadOlder };
}

/** Calls shown for a filter. */
function useKnown(key: string) {
  const known = useRef({ key, ids: new Set<string>(), isTrimmed: false });

  /** Returns calls that are not shown yet; none for a previous filter. */
  const takeNew = (fresh: readonly Call[]): readonly Call[] => {
    const { ids } = known.current;
    const news = known.current.key === key ? fresh.filter(({ id }) => !ids.has(id)) : [];
    for (const { id } of news) ids.add(id);
    return news;
  };
  return { known, takeNew };
}

/** List of calls for a filter: pages on request, and calls of the feed, each call once. */
function useCallList(filter: Query) {
  const key = JSON.stringify(filter);
  const [state, setState] = useState<State>(EMPTY);
  const { known, takeNew } = useKnown(key);
  /**
   * Loads another page. After a long search the gateway returns a short or empty page, with the position to continue.
   */
  const load = async (after: string | undefined): Promise<void> => {
    try {
      const until = performance.now() + LONGEST_MS;
      let found = 0;
      for (let from = after; ; ) {
        const page = await get<SearchedPage>('/calls', { ...filter, limit: A_PAGE - found, after: from });
        if (known.current.key !== key) return;
        const news = takeNew(page.data);
        found += news.length;
        const isEnough = page.next === undefined || found >= A_PAGE || performance.now() > until;
        setState(({ calls }) => ({
          calls: [...calls, ...news].sort(byNewest),
          next: page.next,
          searchedTo: page.searched_to,
          isLoading: !isEnough,
          error: undefined,
        }));
        if (isEnough) return;
        from = page.next;
      }
    } catch (error) {
      setState((before) => ({ ...before, error, isLoading: false }));
    }
  };
  const loadOlder = (): void => {
    // Lines were dropped since: older calls now start at another position.
    const from = known.current.isTrimmed ? undefined : state.next;
    known.current.isTrimmed = false;
    setState((before) => ({ ...before, isLoading: true }));
    void load(from);
  };
  useEffect(() => {
    known.current = { key, ids: new Set(), isTrimmed: false };
    setState(EMPTY);
    void load(undefined);
    return () => {
      known.current.key = '';
    };
  }, [key]);
  return {
    state,
    reload: () => void load(undefined),
    loadOlder,
    /** `isAfterGap`: calls before these were dropped unseen, so older lines are removed to keep the list gapless. */
    addNew(fresh: readonly Call[], isAfterGap: boolean): void {
      const news = takeNew(fresh);
      if (news.length === 0) return;
      setState((before) => {
        const { state: after, gone } = addLines(before, news, isAfterGap);
        for (const { id } of gone) known.current.ids.delete(id);
        known.current.isTrimmed ||= gone.length > 0;
        return after;
      });
    },
  };
}

/** Adds new lines, and drops old ones above the limit. */
function addLines(
  before: State,
  news: readonly Call[],
  isAfterGap: boolean,
): { readonly state: State; readonly gone: readonly Call[] } {
  // The feed starts with calls that a short first page may lack.
  const all = [...news, ...before.calls].sort(byNewest);
  const calls = all.slice(0, isAfterGap ? news.length : Math.max(MOST, before.calls.length));
  const gone = all.slice(calls.length);
  return { state: { ...before, calls, next: before.next ?? (gone.length > 0 ? '' : undefined) }, gone };
}

function byNewest(one: Call, other: Call): number {
  return one.at < other.at ? 1 : one.at > other.at ? -1 : 0;
}

const UNIT_MS: Readonly<Record<string, number>> = Object.freeze({ s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 });

/** Start of a range such as `7d` by the gateway's clock; 0 without a range. */
function oldestOf(last: Query[string]): number {
  const [, number, unit = ''] = /^(\d+)([smhd])$/.exec(String(last)) ?? [];
  return number === undefined ? 0 : Date.now() - minutesAhead.value * 60_000 - Number(number) * (UNIT_MS[unit] ?? 0);
}

/** Follows the calls of a filter; `onCut` is called when the gateway ends the feed. */
export function useFeed(
  filter: Query,
  isOn: boolean,
  onCalls: (calls: readonly Call[], isAfterGap: boolean) => void,
  onCut: () => void,
) {
  const [isLive, setLive] = useState(false);
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    if (!isOn) return undefined;
    // The feed has no time filter: its first calls may be older than the range.
    const { last, from, ...words } = filter;
    const oldest = from === undefined ? oldestOf(last) : Date.parse(String(from));
    // Starts with the newest calls, so that none is missed between the list and the feed.
    const source = new EventSource(hrefOf(pathOf('/calls', { ...words, follow: 'true', limit: 20 })));
    let waiting: Call[] = [];
    let hasGap = false;
    let frame = 0;
    const flush = (): void => {
      const drawn = Math.max(A_FRAME, waiting.length - MOST / 2);
      onCalls(waiting.slice(0, drawn).reverse(), hasGap);
      hasGap = false;
      waiting = waiting.slice(drawn);
      frame = waiting.length > 0 ? requestAnimationFrame(flush) : 0;
    };
    source.onopen = () => setLive(true);
    source.onerror = () => {
      setLive(false);
      if (source.readyState === EventSource.CLOSED) onCut();
    };
    source.addEventListener('skipped', () => setCut(true));
    source.addEventListener('call', (event) => {
      // Bursts are drawn over several frames. A hidden page draws nothing, and stores no more than it would show.
      const call = JSON.parse(event.data) as Call;
      if (Date.parse(call.at) < oldest) return;
      hasGap ||= waiting.length === MOST;
      waiting = [...waiting.slice(1 - MOST), call];
      if (frame === 0) frame = requestAnimationFrame(flush);
    });
    return () => {
      source.close();
      cancelAnimationFrame(frame);
      setLive(false);
    };
  }, [JSON.stringify(filter), isOn]);
  return { isLive, isCut };
}
