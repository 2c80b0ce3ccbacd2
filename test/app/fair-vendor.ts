/** Vendor in a process of its own, so that the work of a test's client does not delay its responses. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { completion } from '../support/vendors/openai-vendor.ts';

const body = JSON.stringify(completion('hi'));
const server = http.createServer((request, response) => {
  request.resume();
  request.once('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end(body);
  });
});
process.on('message', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ ready: true }));
