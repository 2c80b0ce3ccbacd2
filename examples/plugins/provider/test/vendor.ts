import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const read = (name: string): Buffer => readFileSync(new URL(`../../test/fixtures/${name}`, import.meta.url));

/** Stands in for the vendor: answers each chat with the fixtures. `node dist/test/vendor.js` runs it on port 4100. */
export const vendor = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const { stream } = JSON.parse(body) as { readonly stream?: boolean };
  response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
  response.end(read(stream ? 'stream.sse' : 'chat.json'));
});

if (import.meta.filename === process.argv[1]) vendor.listen(4100, '127.0.0.1');
