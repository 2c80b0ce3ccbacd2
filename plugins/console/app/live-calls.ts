import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type Page, pathOf, type Query } from './api.ts';
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
  const key = JSON.stringify(filter);
  const [state, setState] = useState<State>(EMPTY);
  const [isLive, setLive] = useState(false);
  const [isCut, setCut] = useState(false);
  const known = useRef(new Set<string>());

  const add = (fresh: readonly Call[], isOlder: boolean, more: Partial<State> = {}): void => {
    const news = fresh.filter(({ id }) => !known.current.has(id));
    for (const { id } of news) known.current.add(id);
    setState((before) => {
      const calls = isOlder
        ? [...before.calls, ...news]
        : [...news, ...before.calls].slice(0, Math.max(MOST, before.calls.length));
      return { ...before, ...more, calls };
    });
  };

  const load = async (after: string | undefined): Promise<void> => {
    try {
      const page = await get<Page<Call>>('/calls', { ...filter, limit: 100, after });
      add(page.data, true, { next: page.next, isLoading: false, error: undefined });
    } catch (error) {
      setState((before) => ({ ...before, error, isLoading: false }));
    }
  };

  useEffect(() => {
    known.current = new Set();
    setState(EMPTY);
    void load(undefined);
  }, [key]);

  useEffect(() => {
    if (!isOn) return undefined;
    const { last: _last, ...words } = filter;
    const source = new EventSource(pathOf('/calls', { ...words, follow: 'true' }));
    let waiting: Call[] = [];
    let frame = 0;
    const flush = (): void => {
      frame = 0;
      add(waiting.reverse(), false);
      waiting = [];
    };
    source.onopen = () => setLive(true);
    source.onerror = () => setLive(false);
    source.addEventListener('skipped', () => setCut(true));
    source.addEventListener('call', (event) => {
      waiting.push(JSON.parse(event.data) as Call);
      // Many at once are drawn once; a page that is hidden draws nothing.
      if (frame === 0) frame = requestAnimationFrame(flush);
    });
    return () => {
      source.close();
      cancelAnimationFrame(frame);
      setLive(false);
    };
  }, [key, isOn]);

  return { ...state, isLive, isCut, loadOlder: () => void load(state.next) };
}
