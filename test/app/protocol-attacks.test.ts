import { expect } from 'chai';
import { settledBooks } from '../support/clients/books.ts';
import { openRealtime } from '../support/clients/realtime-client.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  type RealtimeVendor,
  respond,
  responseEvents,
  startRealtimeVendor,
} from '../support/vendors/realtime-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const CANARY = 'canary-my-diagnosis-is-private';
const ABSURD: readonly unknown[] = [-1, 1e30, '5000', null, {}, 0, 1.5];

/** Way into an operation with a protocol of its own. */
interface OwnWay {
  readonly name: string;
  /** Runs one call to its end. Resolves with true if it was performed, false if the gateway rejected it. */
  call(key: string, text?: string): Promise<boolean>;
  /** True if the vendor reports usage. */
  readonly hasUsage: boolean;
  /** Of a protocol with a lasting connection: sends so many calls at once by one. Resolves when each has an end. */
  readonly flood?: (key: string, count: number) => Promise<void>;
}

/** Line of a file of requests. */
const lineOf = (text: string): string =>
  JSON.stringify({
    ...{ custom_id: 'a', method: 'POST', url: '/v1/chat/completions' },
    body: { model: 'batcher/m', max_tokens: 100, messages: [{ role: 'user', content: text }] },
  });

describe('attacks on operations with a protocol of their own', () => {
  let http: ScriptedUpstream;
  let realtime: RealtimeVendor;
  let gateway: TestGateway;
  /** Usage that vendors report, for each of its names. */
  let reported: unknown;
  /** Calls that reached a vendor. */
  let sent = 0;
  let onCall: () => Promise<void> = async () => undefined;

  const usage = () => ({
    prompt_tokens: reported,
    completion_tokens: reported,
    input_tokens: reported,
    output_tokens: reported,
  });

  before(async () => {
    http = await startScriptedUpstream(async ({ request: { method, path }, send }) => {
      const is = (pattern: string): boolean => `${method} ${path}` === pattern;
      if (is('POST /v1/audio/speech') || is('POST /v1/batches')) {
        sent += 1;
        await onCall();
      }
      if (is('POST /v1/audio/speech'))
        return send(`HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\ncontent-length: 4\r\n\r\n\0\0\0\0`);
      if (path.endsWith('/content')) {
        const body = { id: 'c', object: 'chat.completion', created: 1, model: 'm', usage: usage() };
        const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }];
        const line = { custom_id: 'a', response: { status_code: 200, body: { ...body, choices } } };
        const text = JSON.stringify(line);
        return send(
          `HTTP/1.1 200 OK\r\ncontent-type: application/jsonl\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
        );
      }
      if (path.startsWith('/v1/files')) return send(respondWith(200, { id: 'file-v', object: 'file' }));
      return send(respondWith(200, { id: 'batch_v', object: 'batch', status: 'completed', output_file_id: 'file-r' }));
    });
    realtime = await startRealtimeVendor();
    realtime.onEvent = (event, session) => {
      if (event['type'] !== 'response.create') return respond(event, session);
      sent += 1;
      void onCall().then(() => session.send(...responseEvents(`resp_${sent}`, { text: 'fine', usage: usage() })));
    };
    const price = { input: 4, output: 24, audio_input: 32, audio_output: 64 };
    gateway = await startGateway(
      {
        billing: 'track',
        providers: {
          openai: { apiKey: 'k', baseUrl: `${realtime.url}/v1`, prices: { '*': price } },
          batcher: { plugin: 'openai', apiKey: 'k', baseUrl: `${http.url}/v1`, models: ['m'], prices: { m: price } },
        },
        tts: {
          speaker: { plugin: 'openai', apiKey: 'k', baseUrl: `${http.url}/v1`, prices: { '*': { characters: 15 } } },
        },
      },
      { level: 'debug' },
    );
  });
  after(async () => {
    await gateway?.stop();
    await http?.close();
    await realtime?.close();
  });
  beforeEach(() => {
    reported = null;
    sent = 0;
    onCall = async () => undefined;
  });

  const headers = (key: string) => ({ authorization: `Bearer ${key}` });

  const WAYS: readonly OwnWay[] = [
    {
      name: 'speech by JSON',
      hasUsage: false,
      async call(key, text = 'Hello there') {
        const body = { model: 'speaker/tts-1', input: text, response_format: 'pcm' };
        const response = await gateway.post('/v1/audio/speech', body, headers(key));
        await response.arrayBuffer();
        return response.ok;
      },
    },
    {
      name: 'batches by form and batch line',
      hasUsage: true,
      async call(key, text = 'Hello there') {
        const form = new FormData();
        form.append('purpose', 'batch');
        form.append('file', new Blob([lineOf(text)]), 'requests.jsonl');
        const uploaded = await fetch(`${gateway.url}/v1/files`, { method: 'POST', headers: headers(key), body: form });
        if (!uploaded.ok) return false;
        const { id } = (await uploaded.json()) as { readonly id: string };
        const body = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' };
        const created = await gateway.post('/v1/batches', body, headers(key));
        if (!created.ok) return false;
        const batch = (await created.json()) as { readonly id: string };
        // Reading an ended batch settles it.
        await (await gateway.get(`/v1/batches/${batch.id}`, headers(key))).text();
        return true;
      },
    },
    {
      name: 'realtime by websocket',
      hasUsage: true,
      async call(key, text = 'Hello there') {
        const client = await openRealtime({ url: gateway.url, key }).catch(() => undefined);
        if (!client) return false;
        const response = { max_output_tokens: 100, output_modalities: ['text'], instructions: text };
        client.send({ type: 'response.create', response });
        const outcomeAt = (type: string, result: boolean) =>
          client.got(type).then(
            () => result,
            () => false,
          );
        const isDone = await Promise.race([outcomeAt('response.done', true), outcomeAt('error', false)]);
        client.socket.close();
        return isDone;
      },
      async flood(key, count) {
        const client = await openRealtime({ url: gateway.url, key });
        const response = { max_output_tokens: 100, output_modalities: ['text'], instructions: 'Hello there' };
        for (let at = 0; at < count; at += 1) client.send({ type: 'response.create', response });
        const ends = () => client.events.filter(({ type }) => type === 'response.done' || type === 'error').length;
        await until('each message has an end', () => client.code !== undefined || ends() >= count);
        client.socket.close();
      },
    },
  ];

  let users = 0;
  const createKey = async (...options: readonly string[]): Promise<string> => {
    users += 1;
    const words = ['keys', 'create', '--user', `user-${users}`, ...options];
    return (await gateway.command<{ api_key: string }>(...words)).api_key;
  };
  const spentBy = async (key: string): Promise<number> => (await settledBooks(gateway.url, key)).spent;
  const maxOf = async (way: OwnWay): Promise<number> => {
    const key = await createKey();
    expect(await way.call(key)).to.equal(true);
    const most = await spentBy(key);
    expect(most).to.be.greaterThan(0);
    return most;
  };

  for (const way of WAYS)
    describe(way.name, () => {
      if (way.hasUsage)
        it('is charged the maximum, and no more, for absurd usage', async () => {
          const most = await maxOf(way);
          for (const value of ABSURD) {
            reported = value;
            const key = await createKey();
            expect(await way.call(key)).to.equal(true);
            expect(await spentBy(key), `usage of ${JSON.stringify(value)}`).to.equal(most);
          }
        });

      it('reaches the vendor three times of ten at once with a budget for three and a half', async () => {
        const most = await maxOf(way);
        const key = await createKey('--budget', ((most * 3.5) / 1e6).toFixed(9));
        sent = 0;
        const all = await Promise.all(Array.from({ length: 10 }, () => way.call(key)));
        const performed = all.filter(Boolean);
        expect([performed.length, sent]).to.deep.equal([3, 3]);
        expect(await spentBy(key)).to.be.at.most(most * 3.5);
      });

      it('is charged once for a key that is revoked midway, which then reaches no vendor', async () => {
        const key = await createKey();
        const admin = await createKey('--admin');
        onCall = async () => {
          onCall = async () => undefined;
          const path = `/api/core/admin/keys/${encodeURIComponent(key)}/revoke`;
          expect((await gateway.post(path, {}, headers(admin))).status).to.equal(200);
        };
        await way.call(key);
        expect(await way.call(key)).to.equal(false);
        expect(sent).to.equal(1);
      });

      it('is refused once the money is spent midway, and holds nothing', async () => {
        const most = await maxOf(way);
        const key = await createKey('--budget', ((most * 1.5) / 1e6).toFixed(9));
        sent = 0;
        onCall = async () => {
          onCall = async () => undefined;
          // The first call holds the budget while the second one arrives.
          expect(await way.call(key)).to.equal(false);
        };
        expect(await way.call(key)).to.equal(true);
        expect(await way.call(key)).to.equal(false);
        expect(sent).to.equal(1);
        expect(await spentBy(key)).to.be.closeTo(most, 1);
      });

      const { flood } = way;
      if (flood)
        it('passes on what the budget holds of a flood of small messages, and goes on serving others', async () => {
          const most = await maxOf(way);
          const key = await createKey('--budget', ((most * 3.5) / 1e6).toFixed(9));
          const other = await createKey();
          sent = 0;
          const flooded = flood(key, 500);
          const served = way.call(other);
          await flooded;
          expect(await served, 'the other caller').to.equal(true);
          expect(sent - 1).to.be.within(1, 3);
          expect(await spentBy(key)).to.be.at.most(most * 3.5);
        });

      it('leaves no text of the caller in the log or the metrics', async () => {
        await way.call(await createKey(), CANARY);
        expect(gateway.logText()).not.to.include(CANARY);
        expect(await (await gateway.get('/metrics')).text()).not.to.include(CANARY);
      });
    });
});
