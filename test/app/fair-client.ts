import http from 'node:http';

/** Time of the machine in milliseconds: the same clock in all of its processes. */
export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Creates a function that posts a chat and returns its status; a connection is used again by the next one. */
export function createPoster(url: string): (key: string, body: Buffer) => Promise<number> {
  const agent = new http.Agent({ keepAlive: true });
  return (key, body) =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': body.length,
      };
      const request = http.request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers }, (response) => {
        response.resume();
        response.once('end', () => resolve(response.statusCode ?? 0));
      });
      request.once('error', reject);
      request.end(body);
    });
}
