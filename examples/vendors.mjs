#!/usr/bin/env node
// Two vendors to try a gateway with, in OpenAI's format: `node vendors.mjs 9001 9002`. Each answers a chat with a short text of 480 tokens.
// POST /die makes one fail every call, POST /live mends it, POST /key with a text makes that its only key.

import http from 'node:http';

const WHY = 'node 7 is out of memory';
const USAGE = { prompt_tokens: 20, completion_tokens: 480, total_tokens: 500 };
const MAX_BODY = 1_000_000;

for (const port of process.argv.slice(2).map(Number)) serve(port);

function serve(port) {
  const state = { isDead: false, key: undefined };
  http
    .createServer(async (request, response) => {
      const body = await readBody(request);
      const [status, reply] = respond(state, request, body, port);
      const text = typeof reply === 'string' ? reply : JSON.stringify(reply);
      response.writeHead(status, {
        'content-type': typeof reply === 'string' ? 'text/event-stream' : 'application/json',
      });
      response.end(text);
    })
    .listen(port, '127.0.0.1');
}

/** What a request gets: its status, and an object or the text of a stream. */
function respond(state, { method, url, headers }, body, port) {
  if (method === 'POST' && (url === '/die' || url === '/live')) {
    state.isDead = url === '/die';
    return [200, { port, dead: state.isDead }];
  }
  if (method === 'POST' && url === '/key') {
    state.key = body.trim();
    return [200, { port, key: 'changed' }];
  }
  if (method !== 'POST' || url !== '/v1/chat/completions') return failure(404, `no ${method} ${url} here`);
  if (state.key !== undefined && headers.authorization !== `Bearer ${state.key}`)
    return failure(401, 'Incorrect API key provided.');
  if (state.isDead) return failure(500, WHY);
  return complete(body, port);
}

function complete(body, port) {
  const { model, stream } = JSON.parse(body);
  const content = `Hello from the vendor on ${port}.`;
  const head = { id: `chatcmpl-${port}`, created: Math.floor(Date.now() / 1000), model };
  if (!stream) {
    const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' };
    return [200, { ...head, object: 'chat.completion', choices: [choice], usage: USAGE }];
  }
  const chunk = { ...head, object: 'chat.completion.chunk' };
  const events = [
    { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...chunk, choices: [], usage: USAGE },
  ];
  return [200, `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`];
}

function failure(status, message) {
  return [status, { error: { message, type: status === 401 ? 'invalid_request_error' : 'server_error', code: null } }];
}

async function readBody(request) {
  let text = '';
  for await (const part of request) {
    text += part;
    if (text.length > MAX_BODY) throw new Error('the request is too long');
  }
  return text;
}
