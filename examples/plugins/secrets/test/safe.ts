import { createServer } from 'node:http';

export const TOKEN = 'my-plugin-token-for-development';
export const SECRETS: ReadonlyMap<string, string> = new Map([['openai', 'sk-of-the-safe-for-development']]);

/** What the safe responds to a request with this path and this `authorization`. */
export function respond(path: string, authorization: unknown): { readonly status: number; readonly body: object } {
  if (authorization !== `Bearer ${TOKEN}`) return { status: 401, body: { error: 'unknown' } };
  const value = SECRETS.get(path.replace('/secrets/', ''));
  return value === undefined ? { status: 404, body: { error: 'none' } } : { status: 200, body: { value } };
}

/** Stands in for the safe. `node dist/test/safe.js` runs it on port 4100. */
export const safe = createServer((request, response) => {
  request.resume();
  const { status, body } = respond(request.url ?? '', request.headers.authorization);
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

if (import.meta.filename === process.argv[1]) safe.listen(4100, '127.0.0.1');
