/** Proxy of Node's http server and undici without any features: the lower bound for a gateway in Node. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Dispatcher, Pool } from 'undici';

const [json = '', stream = ''] = process.argv.slice(2);
const options = { headersTimeout: 0, bodyTimeout: 0 };
const pools = { json: new Pool(json, options), stream: new Pool(stream, options) };

const server = http.createServer((req, res) => {
  const url = req.url ?? '/';
  const parts: Buffer[] = [];
  req.on('data', (part: Buffer) => parts.push(part));
  req.on('end', () => {
    const pool = url.startsWith('/stream') ? pools.stream : pools.json;
    const body = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    let controller: Dispatcher.DispatchController;
    res.once('close', () => {
      if (!res.writableFinished) controller?.abort(new Error('the caller left'));
    });
    pool.dispatch(
      { path: url, method: 'POST', headers: { 'content-type': 'application/json' }, body },
      {
        onRequestStart(given) {
          controller = given;
        },
        onResponseStart: (_, status, headers) => void res.writeHead(status, headers as http.OutgoingHttpHeaders),
        onResponseData: (_, chunk) => void res.write(chunk),
        onResponseEnd: () => void res.end(),
        onResponseError: () => res.destroy(),
      },
    );
  });
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);
process.on('disconnect', () => process.exit());
