import { useEffect, useRef, useState } from 'preact/hooks';
import { get, hrefOf, type Page, pathOf, type Query } from './api.ts';
import type { Call } from './shapes.ts';

/** How many lines a page keeps: older ones are a click away. */
const MOST = 500;

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

/** What is shown of a filter: pages as they are wanted, and what the feed tells, each call once. */
function useCallList(filter: Query) {
  const key = JSON.stringify(filter);
  const [state, setState] = useState<State>(EMPTY);
  const known = useRef({ key, ids: new Set<string>() });

  /** Those that are not shown yet; none of a filter that is no longer looked at. */
  const takeNew = (fresh: readonly Call[]): readonly Call[] => {
    const { ids } = known.current;
    const news = known.current.key === key ? fresh.filter(({ id }) => !ids.has(id)) : [];
    for (const { id } of news) ids.add(id);
    return news;
  };
  const load = async (after: string | undefined): Promise<void> => {
    try {
      const page = await get<Page<Call>>('/calls', { ...filter, limit: 100, after });
      if (known.current.key !== key) return;
      const news = takeNew(page.data);
      setState(({ calls }) => ({
        calls: [...calls, ...news].sort(byNewest),
        next: page.next,
        isLoading: false,
        error: undefined,
      }));
    } catch (error) {
      setState((before) => ({ ...before, error, isLoading: false }));
    }
  };
  useEffect(() => {
    known.current = { key, ids: new Set() };
    setState(EMPTY);
    void load(undefined);
  }, [key]);
  return {
    state,
    reload: () => void load(undefined),
    loadOlder: () => void load(state.next),
    addNew(fresh: readonly Call[]): void {
      const news = takeNew(fresh);
      if (news.length === 0) return;
      setState((before) => ({
        ...before,
        // The feed begins with some that a short first page does not have yet.
        calls: [...news, ...before.calls].sort(byNewest).slice(0, Math.max(MOST, before.calls.length)),
      }));
    },
  };
}

function byNewest(one: Call, other: Call): number {
  return one.at < other.at ? 1 : one.at > other.at ? -1 : 0;
}

/** Follows the calls of a filter; `onCut` is told when the gateway no longer lets this page follow. */
function useFeed(filter: Query, isOn: boolean, onCalls: (calls: readonly Call[]) => void, onCut: () => void) {
  const [isLive, setLive] = useState(false);
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    if (!isOn) return undefined;
    const { last: _last, ...words } = filter;
    // With the newest ones first: nothing is missed between the list and the feed.
    const source = new EventSource(hrefOf(pathOf('/calls', { ...words, follow: 'true', limit: 20 })));
    let waiting: Call[] = [];
    let frame = 0;
    const flush = (): void => {
      frame = 0;
      onCalls(waiting.reverse());
      waiting = [];
    };
    source.onopen = () => setLive(true);
    source.onerror = () => {
      setLive(false);
      if (source.readyState === EventSource.CLOSED) onCut();
    };
    source.addEventListener('skipped', () => setCut(true));
    source.addEventListener('call', (event) => {
      // Many at once are drawn once. A page that is hidden draws nothing, and keeps no more than it would show.
      waiting = [...waiting.slice(1 - MOST), JSON.parse(event.data) as Call];
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
