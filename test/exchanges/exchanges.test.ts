/**
 * Golden exchanges: a client's request, a vendor's response, and the results on both sides. Each file is a list of
 * cases, in the folder of the client's format and named after the vendor's. `npm run exchanges` rewrites the results;
 * review the difference.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { type IngressRig, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { readText } from '../support/read-text.ts';
import {
  chunk,
  LAST_CHUNK,
  type RecordedRequest,
  respondWith,
  SSE_HEAD,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';

interface Exchange {
  readonly title: string;
  readonly request: {
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body: object;
  };
  /**
   * Response, or the events of a stream: an object is the data of an event, a string the text of a frame. `then` is
   * sent after the client has received the previous events.
   */
  readonly upstream:
    | { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body: unknown }
    | { readonly events: readonly (object | string)[]; readonly then?: readonly (object | string)[] };
  /** Request to the vendor; null if there was none. */
  readonly sent?: unknown;
  /** Response to the client. */
  readonly received?: unknown;
}

const UPDATE = process.env['UPDATE'] === '1';
const FOLDER = import.meta.dirname;
const PATHS: Readonly<Record<string, string>> = Object.freeze({
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
});
/** Bytes per chunk of a vendor's stream. */
const CUT = 61;
/** Format-specific headers of a request to a vendor. */
const SENT_HEADERS = /^(anthropic-(version|beta)|openai-beta)$/;
/** Values that differ between runs: random ids, times, values sealed with a key of the gateway. */
const RANDOM: readonly (readonly [RegExp, string])[] = [
  [/"(id|item_id|request_id|requestId|responseId)":"([a-z]+[-_])?[\w-]{22}(_\d+)?"/g, '"$1":"$2…$3"'],
  [/"(prompt_cache_key)":"[\w-]{32}"/g, '"$1":"…"'],
  [/\btg1\.([\w-]+)\.[\w-]+\./g, 'tg1.$1.….'],
  [/"(created|created_at)":1[78]\d{8}\b/g, '"$1":0'],
];

describe('an exchange', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'));
  for (const file of files.toSorted()) {
    const name = path.join(FOLDER, file);
    const cases = JSON.parse(readFileSync(name, 'utf8')) as readonly Exchange[];
    const renewed = [...cases];
    describe(file.replace('.json', ''), () => {
      for (const [at, exchange] of cases.entries())
        it(exchange.title, async () => {
          const { title, request, upstream, ...expected } = exchange;
          const found = await run(rig, file, exchange);
          renewed[at] = { title, request, upstream, ...found };
          if (!UPDATE) expect(found).to.deep.equal(expected);
        });
      after(() => UPDATE && writeFileSync(name, `${written(renewed)}\n`));
    });
  }
});

async function run({ gateway, script }: IngressRig, file: string, { request, upstream }: Exchange): Promise<object> {
  const sent: RecordedRequest[] = [];
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  for (const name of WIRES)
    script(name, async (wire) => {
      sent.push(wire.request);
      await say(upstream, name === 'anthropic', begun, wire);
    });
  const { path: where = PATHS[path.dirname(file)] ?? '', headers, body } = request;
  const response = await gateway.post(where, body, headers);
  begin();
  const { text } = await readText(response);
  const [requested] = sent;
  const [dropped, retryAfter] = ['x-tollgate-dropped', 'retry-after'].map(
    (name) => response.headers.get(name) ?? undefined,
  );
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const received = {
    status: response.status,
    dropped,
    retryAfter,
    ...(isStream ? { events: eventsOf(text) } : { body: JSON.parse(text) }),
  };
  return plain({ sent: requested ? sentOf(requested) : null, received });
}

async function say(upstream: Exchange['upstream'], isNamed: boolean, begun: Promise<void>, wire: Wire): Promise<void> {
  if (!('events' in upstream)) return wire.send(respondWith(upstream.status ?? 200, upstream.body, upstream.headers));
  const { events, then } = upstream;
  const sendAll = async (frames: readonly (object | string)[]): Promise<void> => {
    const bytes = Buffer.from(frames.map((event) => frameOf(event, isNamed)).join(''));
    for (let at = 0; at < bytes.length; at += CUT) await wire.send(chunk(bytes.subarray(at, at + CUT)));
  };
  await wire.send(SSE_HEAD);
  await sendAll(events);
  if (then) {
    await begun;
    await sendAll(then);
  }
  await wire.send(LAST_CHUNK);
}

function frameOf(event: object | string, isNamed: boolean): string {
  if (typeof event === 'string') return `${event}\n\n`;
  return `${isNamed && 'type' in event ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`;
}

/** Frames of a stream: the data of a frame whose name equals its type or is missing, any other frame as text. */
function eventsOf(text: string): readonly unknown[] {
  const isNamed = text.startsWith('event: ');
  return text
    .split('\n\n')
    .filter(Boolean)
    .map((frame) => {
      const data = /^(?:event: .*\n)?data: (\{.*\})$/.exec(frame)?.[1];
      const event = data === undefined ? undefined : (JSON.parse(data) as object);
      return event && frameOf(event, isNamed) === `${frame}\n\n` ? event : frame;
    });
}

function sentOf({ path: where, headers, body }: RecordedRequest): object {
  const reported = Object.entries(headers).filter(([name]) => SENT_HEADERS.test(name));
  return {
    path: where,
    ...(reported.length > 0 && { headers: Object.fromEntries(reported) }),
    body: JSON.parse(body.toString()),
  };
}

/** Content packed into a signature for Gemini's clients, which may be sealed. */
const PACKED = /dG9sbGdhdGU6[\w+/]+={0,2}/g;

function unpacked(packed: string): string {
  const inner = Buffer.from(packed, 'base64').toString('utf8');
  return inner.includes('tg1.') ? JSON.stringify(inner).slice(1, -1) : packed;
}

function plain(value: object): object {
  let text = JSON.stringify(value).replace(PACKED, (packed) => unpacked(packed));
  for (const [pattern, by] of RANDOM) text = text.replace(pattern, by);
  return JSON.parse(text) as object;
}

const WIDTH = 240;

/** Readable JSON: a value that fits is on one line. */
function written(value: unknown, indent = ''): string {
  const line = JSON.stringify(value);
  if (line.length + indent.length <= WIDTH || typeof value !== 'object' || value === null) return line;
  const inner = `${indent} `;
  const isList = Array.isArray(value);
  const parts = Object.entries(value).map(
    ([key, item]) => inner + (isList ? '' : `${JSON.stringify(key)}: `) + written(item, inner),
  );
  return `${isList ? '[' : '{'}\n${parts.join(',\n')}\n${indent}${isList ? ']' : '}'}`;
}
