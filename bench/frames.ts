/**
 * Compares Bedrock with OpenAI in one run: CPU per stream chunk, from the vendor's bytes to the canonical chunk, and
 * through the whole gateway to the client. Also measures the signing of a request. `node --import tsx/esm
 * bench/frames.ts`
 */
import { createHash } from 'node:crypto';
import { createEventReader } from '../contract/event-reader.ts';
import { definePlugin, type Provider } from '../contract/index.ts';
import { createGateway } from '../core/gateway.ts';
import bedrock from '../plugins/providers/bedrock.ts';
import { signV4 } from '../plugins/providers/kit/index.ts';
import openai from '../plugins/providers/openai.ts';
import { setUpProvider } from '../test/conformance/provider-subject.ts';
import { amazonEvent } from '../test/support/vendors/amazon-frames.ts';
import { WIRES } from './wires.ts';

const CHUNKS = 20_000;
const ROUNDS = 9;

const words = { contentBlockIndex: 0, delta: { text: 'a word ' }, p: 'abcdefghijklmnopqrstuvwxyz' };
const claude = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a word ' } };
const begin = {
  type: 'message_start',
  message: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'm',
    usage: { input_tokens: 10, output_tokens: 1 },
  },
};
const start = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
const inBase64 = (event: object) => ({ bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abcdefgh' });

interface Case {
  readonly name: string;
  readonly provider: Provider;
  readonly model: string;
  readonly first: Buffer;
  readonly chunk: Buffer;
  readonly last: Buffer;
}

const amazon = setUpProvider(bedrock, { region: 'us-east-1' });
const CASES: readonly Case[] = [
  {
    name: 'chat completions',
    provider: setUpProvider(openai, {}),
    model: 'gpt-4.1',
    first: Buffer.from(WIRES.openai.open),
    chunk: Buffer.from(WIRES.openai.chunk(1n)),
    last: Buffer.from(WIRES.openai.close),
  },
  {
    name: 'Bedrock, Converse',
    provider: amazon,
    model: 'amazon.nova-pro-v1:0',
    first: amazonEvent('messageStart', { role: 'assistant' }),
    chunk: amazonEvent('contentBlockDelta', words),
    last: Buffer.concat([
      amazonEvent('messageStop', { stopReason: 'end_turn' }),
      amazonEvent('metadata', { usage: { inputTokens: 10, outputTokens: 400, totalTokens: 410 } }),
    ]),
  },
  {
    name: 'Bedrock, Claude',
    provider: amazon,
    model: 'anthropic.claude-sonnet-4-5-20250929-v1:0',
    first: Buffer.concat([begin, start].map((event) => amazonEvent('chunk', inBase64(event)))),
    chunk: amazonEvent('chunk', inBase64(claude)),
    last: Buffer.concat(
      [
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 400 } },
        { type: 'message_stop' },
      ].map((event) => amazonEvent('chunk', inBase64(event))),
    ),
  },
];

/** CPU per chunk in microseconds, each chunk in a separate read. */
function measure({ provider: { chat }, model, first, chunk }: Case): number {
  if (!chat) throw new Error('the provider has no chat');
  const decoder = chat.stream({ model, stream: true, created: 1, id: 'bench' });
  const reader = chat.reader?.({}) ?? createEventReader({});
  for (const event of reader.push(first)) decoder.push(event);
  let read = 0;
  const from = process.cpuUsage();
  for (let count = 0; count < CHUNKS; count += 1)
    for (const event of reader.push(chunk)) read += decoder.push(event).length;
  if (read < CHUNKS) throw new Error(`${read} chunks came of ${CHUNKS}`);
  const { user, system } = process.cpuUsage(from);
  return (user + system) / CHUNKS;
}

/** Number of chunks of a stream through the whole gateway. */
const STREAMED = 400;

/** Provider of a case with the vendor in this process: chunks arrive one by one. */
const vendor = definePlugin({
  name: 'vendor',
  kind: 'provider',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { at: { type: 'integer' } } },
  setup(api, { at = 0 }) {
    const { provider, first, chunk, last } = CASES[at] as Case;
    const { credential: _, ...open } = provider;
    async function* body(): AsyncGenerator<Uint8Array> {
      yield first;
      for (let left = STREAMED; left > 0; left -= 1) {
        // Like reads of a socket, one per turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
        yield chunk;
      }
      yield last;
    }
    const headers = { 'content-type': at === 0 ? 'text/event-stream' : 'application/vnd.amazon.eventstream' };
    api.provider({ ...open, anyModel: true, transport: async () => ({ status: 200, headers, body: body() }) });
  },
});

const gateway = await createGateway({
  config: {
    providers: Object.fromEntries(CASES.map((_, at) => [`p${at}`, { plugin: 'vendor', at }])),
    ...{ auth: { 'api-key': { bootstrap: true } }, logging: { level: 'silent' } },
  },
  plugins: [vendor],
  listen: false,
});
const key = gateway.announcements.find(({ use }) => use === 'key')?.value;

/** CPU per chunk in microseconds, from the vendor's bytes to those of the client. */
async function measureWhole({ model }: Case, at: number): Promise<number> {
  const from = process.cpuUsage();
  const response = await gateway.inject('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: `p${at}/${model}`, stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  const text = await response.text();
  if (response.status !== 200 || !text.includes('[DONE]')) throw new Error(`the bench got ${response.status}: ${text}`);
  const { user, system } = process.cpuUsage(from);
  return (user + system) / STREAMED;
}

const KEYS = { accessKeyId: 'ASIAEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI', sessionToken: 'x'.repeat(800) };
const SIZES = [2, 20, 200];

/** CPU in microseconds for signing a request with a body of this size in KB, and for hashing the body alone. */
function measureSigning(kb: number, isHash: boolean): number {
  const url =
    'https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke';
  const request = { method: 'POST', url, headers: { 'content-type': 'application/json' }, body: 'a'.repeat(kb * 1024) };
  const count = 1000;
  const from = process.cpuUsage();
  for (let left = count; left > 0; left -= 1)
    if (isHash) createHash('sha256').update(request.body).digest('hex');
    else signV4(request, KEYS, { region: 'us-east-1', service: 'bedrock' }, new Date());
  const { user, system } = process.cpuUsage(from);
  return (user + system) / count;
}

const best = new Map<string, number>();
const note = (name: string, us: number): void =>
  void best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, us));
// Interleaved, so that other load on the machine affects all cases alike.
for (let round = 0; round < ROUNDS; round += 1) {
  for (const each of CASES) note(`read ${each.name}`, measure(each));
  for (const [at, each] of CASES.entries())
    for (let stream = 0; stream < 10; stream += 1) note(`whole ${each.name}`, await measureWhole(each, at));
  for (const kb of SIZES) {
    note(`hash ${kb} KB`, measureSigning(kb, true));
    note(`sign ${kb} KB`, measureSigning(kb, false));
  }
}
await gateway.close();

const ROWS = Object.entries({ read: 'chat completions', whole: 'chat completions', hash: '2 KB', sign: '2 KB' });
for (const [kind, reference] of ROWS)
  for (const [name, us] of best)
    if (name.startsWith(`${kind} `))
      console.log(
        `${name.padEnd(24)} ${us.toFixed(2)} µs  ${(us / (best.get(`${kind} ${reference}`) ?? Number.NaN)).toFixed(2)} ×`,
      );
