import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { partOf } from '../support/generated-cases.ts';
import { amazonEvent } from '../support/vendors/amazon-frames.ts';
import { responsesBody, responsesEvents, responsesText } from '../support/vendors/responses-wire.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { streamText, wholeBody } from '../support/vendors/vendor-wires.ts';

/**
 * Effects of a vendor's request fields according to its own documentation: `test/fixtures/effects/<vendor>.json`. The
 * files were written from these pages and not from the tables of the plugins.
 */
interface Effects {
  readonly vendor: string;
  /** Model to call. Rows about a model call their own. */
  readonly model: string;
  /** Date on which the pages were read. */
  readonly read: string;
  readonly rows: readonly EffectRow[];
}

interface EffectRow {
  /** Name in the vendor's spelling. */
  readonly field: string;
  readonly value: unknown;
  readonly effect: 'tool' | 'model' | 'stores' | 'price';
  readonly does: string;
  /** Page that documents it. */
  readonly source: string;
  /** Text in a request that triggers the effect. Default: the field's name. */
  readonly shows?: string;
}

const FOLDER = new URL('../fixtures/effects/', import.meta.url);
const VENDORS = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as Effects);

const USED = { inputTokens: 1, outputTokens: 1 };
const SAID = { pieces: [{ text: 'Hello' }] };
const respond: Script = async (wire) => {
  const { path, body } = wire.request;
  const form = path.includes('/messages') ? 'anthropic' : /generateContent/i.test(path) ? 'gemini' : 'openai';
  const isResponses = path.includes('/responses');
  if (path.includes('/converse')) {
    const said = { output: { message: { content: [{ text: 'Hello' }] } }, stopReason: 'end_turn', usage: USED };
    if (!path.includes('stream')) return wire.send(respondWith(200, said));
    const frames = [
      amazonEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' } }),
      amazonEvent('messageStop', { stopReason: 'end_turn' }),
    ];
    await wire.send(
      head(200, { 'content-type': 'application/vnd.amazon.eventstream', 'transfer-encoding': 'chunked' }),
    );
    for (const part of [chunk(Buffer.concat(frames)), LAST_CHUNK]) await wire.send(part);
  } else if (/embed/i.test(path))
    await wire.send(
      respondWith(200, {
        ...{ data: [{ embedding: [1] }], usage: { prompt_tokens: 1, total_tokens: 1 } },
        ...{ embedding: { values: [1] }, embeddings: [{ values: [1] }] },
      }),
    );
  else if (!path.includes('stream') && !/"stream":true/.test(body.toString()))
    await wire.send(respondWith(200, isResponses ? responsesBody(SAID) : wholeBody(form, SAID)));
  else {
    const text = isResponses ? responsesText(responsesEvents(SAID)) : streamText(form, SAID);
    for (const part of [SSE_HEAD, chunk(text), LAST_CHUNK]) await wire.send(part);
  }
};

interface Way {
  readonly name: string;
  readonly path: (vendor: string, model: string) => string;
  /** Request with the vendor's field in it. */
  readonly body: (vendor: string, model: string, field: JsonObject) => JsonObject;
}

const HI = [{ role: 'user', content: 'Hi' }];
const full = (vendor: string, model: string): string => `${vendor}/${model}`;

/** Every route and place in which a caller may send a field. */
const WAYS: readonly Way[] = [
  ...[{}, { stream: true }].map(
    (more): Way => ({
      name: `chat completions${'stream' in more ? ', streamed' : ''}`,
      path: () => '/v1/chat/completions',
      body: (vendor, model, field) => ({ model: full(vendor, model), messages: HI, ...more, ...field }),
    }),
  ),
  {
    name: 'chat completions of one provider',
    path: (vendor) => `/api/core/${vendor}/chat/completions`,
    body: (_vendor, model, field) => ({ model, messages: HI, ...field }),
  },
  {
    name: 'extra_body',
    path: () => '/v1/chat/completions',
    body: (vendor, model, field) => ({ model: full(vendor, model), messages: HI, extra_body: field }),
  },
  {
    name: 'Messages',
    path: () => '/v1/messages',
    body: (vendor, model, field) => ({ model: full(vendor, model), max_tokens: 20, messages: HI, ...field }),
  },
  {
    name: 'Responses',
    path: () => '/v1/responses',
    body: (vendor, model, field) => ({ model: full(vendor, model), input: 'Hi', store: false, ...field }),
  },
  {
    name: 'Gemini',
    path: (vendor, model) => `/v1beta/models/${encodeURIComponent(full(vendor, model))}:generateContent`,
    body: (_vendor, _model, field) => ({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], ...field }),
  },
  {
    name: 'completions',
    path: () => '/v1/completions',
    body: (vendor, model, field) => ({ model: full(vendor, model), prompt: 'Hi', ...field }),
  },
  {
    name: 'embeddings',
    path: () => '/v1/embeddings',
    body: (vendor, model, field) => ({ model: full(vendor, model), input: 'Hi', ...field }),
  },
];

const PLAIN = WAYS[0] as Way;

/**
 * Fields with another meaning in chat completions: the model's name, and fields that exist only in one vendor's own
 * format.
 */
const OF_OTHER_FORMATS: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'input', 'contents'],
  ...['additionalModelRequestFields', 'guardrailConfig', 'promptVariables', 'toolConfig'],
]);

/** Normalizes a text, because vendors spell the same name differently. */
const plain = (text: string): string => text.replaceAll(/[_\s]/g, '').toLowerCase();

describe('fields with effects need permission', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let key: string;
  before(async () => {
    upstream = await startScriptedUpstream(respond);
    const providers = VENDORS.map(({ vendor }) => [
      vendor,
      { apiKey: 'sk-test-0123456789', baseUrl: `${upstream.url}/${vendor}`, models: ['*'] },
    ]);
    const relay = { plugin: 'openai-compatible', baseUrl: `${upstream.url}/relay`, models: ['*'] };
    gateway = await startGateway({ providers: { ...Object.fromEntries(providers), relay } });
    // Only named models: a key needs access to all models for a request in which the vendor chooses the model.
    const models = ['relay/m'].concat(
      VENDORS.flatMap(({ vendor, model, rows }) => [
        full(vendor, model),
        ...rows.filter(({ field }) => field === 'model').map(({ value }) => full(vendor, String(value))),
      ]),
    );
    const made = await gateway.command<{ api_key: string }>(
      ...['keys', 'create', '--user', 'plain', '--models', models.join(',')],
    );
    key = made.api_key;
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  const send = async (way: Way, vendor: string, model: string, field: JsonObject) => {
    const seen = upstream.requests.length;
    const response = await gateway.post(way.path(vendor, model), way.body(vendor, model, field), {
      authorization: `Bearer ${key}`,
    });
    const text = await response.text();
    return { status: response.status, text, sent: upstream.requests.slice(seen).map(({ body }) => body.toString()) };
  };

  for (const { vendor, model, rows } of VENDORS)
    for (const [at, row] of rows.entries())
      it(`of ${vendor}, on every route: ${row.field} ${JSON.stringify(row.value).slice(0, 80)} ${row.does} (E1, E2, E11)`, async () => {
        const isModel = row.field === 'model';
        const passed: string[] = [];
        for (const way of partOf(WAYS, at)) {
          if (isModel && way.name === 'extra_body') continue;
          const named = isModel ? String(row.value) : model;
          const { status, text, sent } = await send(way, vendor, named, isModel ? {} : { [row.field]: row.value });
          expect(status, `${way.name}: ${text}`).to.be.oneOf([200, 400, 403, 404]);
          const shows = plain(row.shows ?? `"${row.field}"`);
          const acts = sent.some((bytes) => (isModel ? bytes !== '' : plain(bytes).includes(shows)));
          if (acts || (status !== 200 && sent.length > 0)) passed.push(`${way.name} (${status}): ${sent.join()}`);
        }
        expect(passed).to.deep.equal([]);
      });

  it('of the vendors above also need it at an unknown server, which may be one of them (E1)', async () => {
    const passed: string[] = [];
    for (const { vendor, rows } of VENDORS)
      for (const row of partOf(
        rows.filter(({ field, effect }) => effect !== 'price' && !OF_OTHER_FORMATS.has(field)),
      )) {
        const { sent } = await send(PLAIN, 'relay', 'm', { [row.field]: row.value });
        if (sent.some((bytes) => plain(bytes).includes(plain(row.shows ?? `"${row.field}"`))))
          passed.push(`${vendor} ${row.field} ${JSON.stringify(row.value)}`);
      }
    expect(passed).to.deep.equal([]);
  });

  it('are listed for every vendor that documents one, each with the page', () => {
    for (const { vendor, rows, read } of VENDORS) {
      expect(read, vendor).to.match(/^\d{4}-\d\d$/);
      for (const { source, does } of rows) {
        expect(source, vendor).to.match(/^https:\/\//);
        expect(does, vendor).to.not.equal('');
      }
    }
    expect(VENDORS.flatMap(({ rows }) => rows)).to.have.length.above(100);
  });

  it('are not in a plain request, which passes on every route, except to the vendor that always searches', async () => {
    const ways = WAYS.filter(({ name }) => name !== 'embeddings');
    for (const [at, { vendor, model }] of VENDORS.entries())
      for (const way of partOf(ways, at)) {
        const { status, text, sent } = await send(way, vendor, model, {});
        const searches = vendor === 'perplexity';
        expect([status, sent.length], `${vendor} ${way.name}: ${text}`).to.deep.equal(searches ? [403, 0] : [200, 1]);
        if (searches) expect(text, way.name).to.include('web_search');
      }
  });
});
