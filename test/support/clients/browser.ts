import { randomInt } from 'node:crypto';

/** Response after redirects and cookies were handled as in a browser. */
export interface Visited {
  readonly status: number;
  readonly url: URL;
  readonly headers: Headers;
  readonly text: string;
  /** All visited URLs, including the last one. */
  readonly trail: readonly URL[];
}

export interface Browser {
  /** Visits a URL as a person does, and follows redirects; stops before one that `stopAt` matches. */
  visit(url: string | URL, stopAt?: (url: URL) => boolean): Promise<Visited>;
  /** Request of a page's script; follows no redirect. */
  send(url: string, init?: RequestInit): Promise<Response>;
  /** Cookies of a host, as `name=value; …`. */
  cookies(url: string): string;
  /** Received `set-cookie` headers, complete and in order. */
  readonly set: readonly string[];
  /** Sets a cookie, as an attacker might. */
  plant(url: string, cookie: string): void;
}

const MAX_REDIRECTS = 20;

/** Browser with its own IP address, for gateways that trust one proxy. */
export function openBrowser(address = `198.51.100.${randomInt(256)}`): Browser {
  // Keyed by host and port, so that two servers of a test stay separate.
  const jars = new Map<string, Map<string, { value: string; path: string }>>();
  const set: string[] = [];

  const jarOf = ({ host }: URL) => {
    const jar = jars.get(host) ?? new Map<string, { value: string; path: string }>();
    jars.set(host, jar);
    return jar;
  };
  const cookiesFor = (url: URL): string =>
    [...jarOf(url)]
      .filter(([, { path }]) => url.pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ');
  const keep = (url: URL, header: string): void => {
    const [pair = '', ...attributes] = header.split(';').map((part) => part.trim());
    const [name = '', ...value] = pair.split('=');
    const of = (wanted: string) =>
      attributes.find((each) => each.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
    const isGone = of('max-age') === '0' || Date.parse(of('expires') ?? '') < Date.now();
    if (isGone) jarOf(url).delete(name);
    else jarOf(url).set(name, { value: value.join('='), path: of('path') ?? '/' });
  };
  const request = async (url: URL, init: RequestInit): Promise<Response> => {
    const cookie = cookiesFor(url);
    const headers = {
      'x-forwarded-for': address,
      ...(cookie !== '' && { cookie }),
      ...(init.headers as Record<string, string> | undefined),
    };
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const header of response.headers.getSetCookie()) {
      set.push(header);
      keep(url, header);
    }
    return response;
  };

  return {
    set,
    cookies: (url) => cookiesFor(new URL(url)),
    plant: (url, cookie) => keep(new URL(url), cookie),
    send: (url, init = {}) => request(new URL(url), init),
    async visit(start, stopAt = () => false) {
      const trail = [new URL(start)];
      for (;;) {
        const url = trail.at(-1) ?? new URL(start);
        const response = await request(url, { headers: { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' } });
        const text = await response.text();
        const to = response.headers.get('location');
        const visited = { status: response.status, url, headers: response.headers, text, trail };
        if (to === null) return visited;
        const next = new URL(to, url);
        if (stopAt(next)) return { ...visited, url: next };
        if (trail.push(next) > MAX_REDIRECTS) throw new Error(`round and round: ${trail.join(' ')}`);
      }
    },
  };
}

/** Parses the JSON of a response. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
export function bodyOf(response: Response): Promise<any> {
  return response.json();
}
