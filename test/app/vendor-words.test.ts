import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const PROMPT = 'my diagnosis is gout';
/** Statuses of the vendor's errors; 200 for one in a stream. */
const STATUSES = [400, 403, 404, 413, 422, 429, 200, 500];
const ADMIN = '/api/core/admin';

describe('G63: a vendor’s error message that quotes the prompt', () => {
  let gateway: TestGateway;
  let vendor: ScriptedUpstream;
  before(async () => {
    const error = { error: { message: `cannot parse: ${PROMPT}`, type: 'invalid_request_error' } };
    vendor = await startScriptedUpstream();
    vendor.script((connection) => {
      const status = Number((connection.request.json() as { model: string }).model.split('-')[1]);
      return status === 200 ? sse(error)(connection) : connection.send(respondWith(status, error));
    });
    gateway = await startGateway({
      providers: {
        vendor: { plugin: 'openai-compatible', apiKey: 'sk-vendor-0001', baseUrl: `${vendor.url}/v1`, models: ['*'] },
        gone: {
          plugin: 'openai-compatible',
          apiKey: 'sk-vendor-0002',
          baseUrl: 'http://127.0.0.1:9/v1',
          models: ['*'],
        },
      },
      tags: { team: ['search'] },
    });
    for (const model of [...STATUSES.map((status) => `vendor/m-${status}`), 'gone/m']) {
      const stream = model.endsWith('200');
      const body = { model, stream, messages: [{ role: 'user', content: PROMPT }] };
      await (await gateway.post('/v1/chat/completions', body)).text();
    }
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const bearer = async (...words: readonly string[]): Promise<Record<string, string>> => {
    const made = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann', ...words);
    return { authorization: `Bearer ${made.api_key}` };
  };
  interface Shown {
    readonly id: string;
    readonly model: string;
    readonly provider: string;
    readonly error_message: string | null;
    readonly attempts: readonly { readonly status?: number; readonly class?: string; readonly reason?: string }[];
  }
  /** Everything that operators read of calls and targets. */
  const readAll = async (headers: Record<string, string>): Promise<{ calls: readonly Shown[]; text: string }> => {
    const get = async (path: string): Promise<string> => {
      const response = await gateway.get(ADMIN + path, headers);
      expect(response.status, path).to.equal(200);
      return await response.text();
    };
    const list = await eventually(async () => {
      const text = await get('/calls');
      expect((JSON.parse(text) as { data: object[] }).data).to.have.length(STATUSES.length + 1);
      return text;
    });
    const calls = (JSON.parse(list) as { readonly data: readonly Shown[] }).data;
    const single = await Promise.all(calls.map(({ id }) => get(`/calls/${id}`)));
    return { calls, text: [list, ...single, await get('/targets'), await follow(headers)].join('\n') };
  };
  const follow = async (headers: Record<string, string>): Promise<string> => {
    const stop = new AbortController();
    const response = await fetch(`${gateway.url}${ADMIN}/calls?follow=true&limit=20`, { headers, signal: stop.signal });
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (text.split('event: call').length > STATUSES.length + 1 && text.endsWith('\n\n')) break;
    }
    stop.abort();
    return text;
  };

  for (const role of ['viewer', 'operator'])
    it(`is not shown to an operator of the role ${role}`, async () => {
      const { calls, text } = await readAll(
        await bearer('--role', role, ...(role === 'viewer' ? ['--scope', 'targets:read'] : [])),
      );
      expect(text).not.to.include(PROMPT);
      for (const status of STATUSES) {
        const refused = calls.find(({ model }) => model.endsWith(`m-${status}`));
        expect(refused?.error_message, `${status}`).to.equal(null);
        expect(refused?.attempts[0]).to.include({ status }).and.to.have.property('class');
      }
    });

  it('is shown with the scope bodies:read, and to an admin', async () => {
    for (const words of [['--role', 'viewer', '--scope', 'bodies:read'], ['--admin']]) {
      const { calls, text } = await readAll(await bearer(...words));
      expect(text.split(PROMPT).length).to.be.above(6);
      for (const status of [400, 403, 404, 413, 422])
        expect(calls.find(({ model }) => model.endsWith(`m-${status}`))?.error_message, `${status}`).to.include(PROMPT);
    }
  });

  it('is shown to its own caller', async () => {
    expect(await (await gateway.get('/api/core/calls')).text()).to.include(PROMPT);
  });

  it('does not hide why a vendor cannot be reached', async () => {
    const { calls } = await readAll(await bearer('--role', 'viewer'));
    expect(calls.find(({ provider }) => provider === 'gone')?.attempts[0]?.reason).to.match(/connect/i);
  });
});
