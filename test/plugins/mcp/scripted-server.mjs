/**
 * MCP server on stdio by script, for what real servers should not do. It speaks the former protocol. Arguments: a file with its
 * tools as JSON, which is read at each list, and words that change its behaviour.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file, ...words] = process.argv.slice(2);
const has = (word) => words.includes(word);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (value) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
});
const kept = [];
let calls = 0;

if (has('ignores-end')) {
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 1000);
}
if (has('ends-at-start')) {
  process.stderr.write('no token is set\n');
  process.exit(3);
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const resource = { type: 'resource', resource: { uri: 'test://one', mimeType: 'text/plain', text: 'A resource.' } };

const TOOLS = {
  // Tools of the published conformance kit.
  test_simple_text: () => text('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({ content: [resource] }),
  test_multiple_content_types: () => ({ content: [text('Several').content[0], image, resource] }),
  test_error_handling: () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
  echo: (args) => text(args),
  calls: () => text(String(calls)),
  environment: () => text(process.env),
  fail: () => ({ ...text('it failed'), isError: true }),
  data: (args) => ({ ...text('see the data'), structuredContent: args }),
  status: () => ({ ...text('a failed one'), structuredContent: { status: 'it failed' } }),
  large: ({ bytes }) => text('x'.repeat(bytes)),
  'content-as-text': () => ({ content: 'a text' }),
  'no-content': () => ({}),
  'block-without-text': () => ({ content: [{ type: 'text' }] }),
  'unknown-block': () => ({ content: [{ type: 'hologram', data: 'x' }] }),
  'error-as-text': () => ({ ...text('it ran'), isError: 'yes' }),
  'other-structure': () => ({ ...text('see the data'), structuredContent: { count: 'many' } }),
  'no-object': () => 'a text',
  pid: () => text(String(process.pid)),
  family: () => text(String(spawn('sleep', ['600'], { stdio: 'ignore' }).pid)),
  memory: () => {
    for (let at = 0; at < 40; at += 1) kept.push(Buffer.alloc(10 * 1024 * 1024, at));
    return undefined;
  },
  hang: () => undefined,
  exit: () => process.exit(3),
  'endless-line': () => {
    const write = () => {
      while (process.stdout.write('x'.repeat(1024 * 1024)));
      process.stdout.once('drain', write);
    };
    write();
  },
  flood: () => {
    const write = () => {
      while (
        process.stdout.write(
          `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(10_000) } })}\n`,
        )
      );
      process.stdout.once('drain', write);
    };
    write();
  },
  question: () => {
    send({ id: 'q1', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } });
    return undefined;
  },
};

const list = () => {
  const tools = JSON.parse(readFileSync(file, 'utf8'));
  return has('endless-list') ? { tools, nextCursor: String(Math.random()) } : { tools };
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {}, error } = JSON.parse(line);
  if (id === 'q1') return send({ id: kept[0], result: text(error?.message ?? 'answered') });
  if (id === undefined || has('silent') || (has('silent-list') && method === 'tools/list')) return undefined;
  if (method === 'initialize')
    return send({
      id,
      result: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'scripted', version: '1' },
      },
    });
  if (method === 'tools/list') return send({ id, result: list() });
  if (method === 'ping') return send({ id, result: {} });
  if (method !== 'tools/call') return send({ id, error: { code: -32601, message: 'Method not found' } });
  calls += 1;
  const tool = TOOLS[params.name];
  if (!tool) return send({ id, error: { code: -32602, message: `no tool ${params.name}` } });
  if (params.name === 'question') kept[0] = id;
  if (params.name === 'relist') return undefined;
  const result = tool(params.arguments ?? {});
  return result && send({ id, result });
});

process.on('SIGUSR2', () => send({ method: 'notifications/tools/list_changed' }));
