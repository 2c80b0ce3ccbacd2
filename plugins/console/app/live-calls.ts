import { useEffect, useRef, useState } from 'preact/hooks';
import { get, hrefOf, minutesAhead, type Page, pathOf, type Query } from './api.ts';
import type { Call } from './shapes.ts';

/** How many lines a page keeps: older ones are a click away. A browser lays out the whole table for each line that comes. */
const MOST = 100;
const A_PAGE = 100;
/** How many pages of the gateway are looked through at once for what is rare. */
const MOST_PAGES = 100;
/** How many lines are added in one frame, where not too many wait: a browser that is slow stays at hand. */
const A_FRAME = 10;

export interface LiveCalls {
  readonly calls: readonly Call[];
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Whether the feed is connected. */
  readonly isLive: boolean;
  /** Whether some calls came too fast to be told. */
  readonly isCut: boolean;
  readonly next: string | undefined;
  loadOlder(): void;
}

interface State {
  readonly calls: readonly Call[];
  readonly next: string | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
}

const EMPTY: State = { calls: [], next: undefined, error: undefined, isLoading: true };

/** The calls of a filter, newest first; while `isOn`, new ones come by themselves over one connection, filtered by the gateway. */
export function useLiveCalls(filter: Query, isOn: boolean): LiveCalls {
  const list = useCallList(filter);
  const feed = useFeed(filter, isOn, list.addNew, list.reload);
  return { ...list.state, ...feed, loadOlder: list.loadOlder };
}

/** Which calls of a filter are shown. */
function useKnown(key: string) {
  const known = useRef({ key, ids: new Set<string>(), isTrimmed: false });

  /** Those that are not shown yet; none of a filter that is no longer looked at. */
  const takeNew = (fresh: readonly Call[]): readonly Call[] => {
    const { ids } = known.current;
    const news = known.current.key === key ? fresh.filter(({ id }) => !ids.has(id)) : [];
    for (const { id } of news) ids.add(id);
    return news;
  };
  return { known, takeNew };
}

/** What is shown of a filter: pages as they are wanted, and what the feed tells, each call once. */
function useCallList(filter: Query) {
  const key = JSON.stringify(filter);
  const [state, setState] = useState<State>(EMPTY);
  const { known, takeNew } = useKnown(key);
  /** Shows a page more: a gateway that looked for long tells a short one, or an empty one, and where to go on. */
  const load = async (after: string | undefined): Promise<void> => {
    try {
      for (let from = after, left = MOST_PAGES; ; left -= 1) {
        const page = await get<Page<Call>>('/calls', { ...filter, limit: A_PAGE, after: from });
        if (known.current.key !== key) return;
        const news = takeNew(page.data);
        const isEnough = page.next === undefined || left <= 1 || (page.data.length >= A_PAGE && news.length > 0);
        setState(({ calls }) => ({
          calls: [...calls, ...news].sort(byNewest),
          next: page.next,
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
    // Lines were let go since: what is older than the last one begins somewhere else now.
    const from = known.current.isTrimmed ? undefined : state.next;
    known.current.isTrimmed = false;
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
    /** `isAfterGap`: calls before these were let go unseen, so that no line is shown beneath that is not the next one. */
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

/** The lines with new ones, and those that are let go for them. */
function addLines(
  before: State,
  news: readonly Call[],
  isAfterGap: boolean,
): { readonly state: State; readonly gone: readonly Call[] } {
  // The feed begins with some that a short first page does not have yet.
  const all = [...news, ...before.calls].sort(byNewest);
  const calls = all.slice(0, isAfterGap ? news.length : Math.max(MOST, before.calls.length));
  const gone = all.slice(calls.length);
  return { state: { ...before, calls, next: before.next ?? (gone.length > 0 ? '' : undefined) }, gone };
}

function byNewest(one: Call, other: Call): number {
  return one.at < other.at ? 1 : one.at > other.at ? -1 : 0;
}

const UNIT_MS: Readonly<Record<string, number>> = Object.freeze({ s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 });

/** The first moment of a time such as `7d`, by the clock of the gateway; all time without one. */
function oldestOf(last: Query[string]): number {
  const [, number, unit = ''] = /^(\d+)([smhd])$/.exec(String(last)) ?? [];
  return number === undefined ? 0 : Date.now() - minutesAhead.value * 60_000 - Number(number) * (UNIT_MS[unit] ?? 0);
}

/** Follows the calls of a filter; `onCut` is told when the gateway no longer lets this page follow. */
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
    // The feed knows no time: of the newest ones that it begins with, some may be older than what is looked at.
    const { last, ...words } = filter;
    const oldest = oldestOf(last);
    // With the newest ones first: nothing is missed between the list and the feed.
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
      // Many at once are drawn over some frames. A page that is hidden draws nothing, and keeps no more than it would show.
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
