/**
 * What it takes to read one chunk of a stream, from the vendor's bytes to the canonical chunk: Bedrock's frames beside OpenAI's events.
 * `node --import tsx/esm bench/frames.ts`
 */
import { createEventReader, type Provider } from '../core/index.ts';
import bedrock from '../plugins/providers/bedrock.ts';
import openai from '../plugins/providers/openai.ts';
import { setUpProvider } from '../test/conformance/provider-subject.ts';
import { amazonEvent } from '../test/support/vendors/amazon-frames.ts';
import { WIRES } from './wires.ts';

const CHUNKS = 20_000;
const ROUNDS = 9;

const words = { contentBlockIndex: 0, delta: { text: 'a word ' }, p: 'abcdefghijklmnopqrstuvwxyz' };
const claude = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a word ' } };
const start = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
const inBase64 = (event: object) => ({ bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abcdefgh' });

interface Case {
  readonly name: string;
  readonly provider: Provider;
  readonly model: string;
  readonly first: Buffer;
  readonly chunk: Buffer;
}

const amazon = setUpProvider(bedrock, { region: 'us-east-1' });
const CASES: readonly Case[] = [
  {
    name: 'chat completions',
    provider: setUpProvider(openai, {}),
    model: 'gpt-4.1',
    first: Buffer.from(WIRES.openai.open),
    chunk: Buffer.from(WIRES.openai.chunk(1n)),
  },
  {
    name: 'Bedrock, Converse',
    provider: amazon,
    model: 'amazon.nova-pro-v1:0',
    first: amazonEvent('messageStart', { role: 'assistant' }),
    chunk: amazonEvent('contentBlockDelta', words),
  },
  {
    name: 'Bedrock, Claude',
    provider: amazon,
    model: 'anthropic.claude-sonnet-4-5-20250929-v1:0',
    first: amazonEvent('chunk', inBase64(start)),
    chunk: amazonEvent('chunk', inBase64(claude)),
  },
];

/** Microseconds of CPU a chunk, each in a read of its own. */
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

const best = new Map<string, number>();
// Side by side, so that what else runs on the machine hits all of them.
for (let round = 0; round < ROUNDS; round += 1)
  for (const each of CASES)
    best.set(each.name, Math.min(best.get(each.name) ?? Number.POSITIVE_INFINITY, measure(each)));
const [[, chat] = ['', Number.NaN]] = best;
for (const [name, us] of best) console.log(`${name.padEnd(20)} ${us.toFixed(2)} µs  ${(us / chat).toFixed(2)} ×`);
