/** The official client runs one script against every provider. Upstreams send each vendor's recorded bytes. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import OpenAI, { type APIError } from 'openai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { partOfTests } from '../support/generated-cases.ts';
import { loadNetworkProviders } from '../support/plugins/all-providers.ts';
import { AMAZON_HEAD, amazonStream } from '../support/vendors/amazon-frames.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);
const KEY = 'sk-operator-secret-1234567890';
const MESSAGES = [{ role: 'user' as const, content: 'Hi' }];
const TOOLS = [{ type: 'function' as const, function: { name: 'get_weather', parameters: { type: 'object' } } }];

interface Expected {
  readonly choices?: readonly {
    readonly content?: string;
    readonly message?: { readonly content?: string | null; readonly tool_calls?: readonly object[] };
    readonly tool_calls?: readonly { readonly id?: string }[];
    readonly finish_reason?: string;
  }[];
}

/** Fixtures of a vendor by prefix, with the expected results. */
function fixtures(vendor: string, prefix: string, extension: string) {
  const folder = new URL(`${vendor}/`, FIXTURES);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => name.startsWith(prefix) && name.endsWith(extension) && !name.endsWith('.expected.json'))
    .map((name) => {
      const expected = new URL(`${name}.expected.json`, folder);
      return {
        name,
        bytes: readFileSync(new URL(name, folder)),
        expected: existsSync(expected) ? (JSON.parse(readFileSync(expected, 'utf8')) as Expected) : {},
      };
    });
}

/** Events of a fixture, in frames for vendors that do not use server-sent events. */
function stream(bytes: Uint8Array, isFramed: boolean): Script {
  return async (wire) => {
    await wire.send(isFramed ? AMAZON_HEAD : SSE_HEAD);
    await wire.send(chunk(isFramed ? amazonStream(new TextDecoder().decode(bytes)) : bytes));
    await wire.send(LAST_CHUNK);
  };
}

const PROVIDERS = await loadNetworkProviders();

describe('the official client against every provider', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let client: OpenAI;

  before(async () => {
    upstream = await startScriptedUpstream();
    const entries = PROVIDERS.map(({ name }) => [name, { apiKey: KEY, baseUrl: `${upstream.url}/v1`, models: ['*'] }]);
    // Perplexity searches the web on every request.
    gateway = await startGateway({
      providers: Object.fromEntries(entries),
      plans: { searching: { serverTools: ['web_search'] } },
      defaultPlan: 'searching',
    });
    client = gateway.openai();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  for (const [at, { name, provider }] of PROVIDERS.entries()) {
    const { describe, it } = partOfTests(at);
    describe(name, () => {
      const model = `${name}/some-model`;
      const isFramed = provider.chat?.reader !== undefined;

      for (const { name: file, bytes, expected } of fixtures(name, 'chat', '.json')) {
        it(`gets a response: ${file}`, async () => {
          upstream.script(respondWith(200, bytes, { 'content-type': 'application/json' }));
          const { choices } = await client.chat.completions.create({ model, messages: MESSAGES });
          const wanted = expected.choices?.[0]?.message;
          if (wanted?.content !== undefined) expect(choices[0]?.message.content).to.equal(wanted.content);
          if (wanted?.tool_calls) expect(choices[0]?.message.tool_calls).to.have.length(wanted.tool_calls.length);
          const { header, prefix = '' } = provider.credential ?? { header: 'authorization' };
          expect(upstream.requests.at(-1)?.headers[header]).to.equal(prefix + KEY);
        });
      }

      for (const { name: file, bytes, expected } of fixtures(name, 'stream', '.sse')) {
        it(`gets a stream, and its helper combines it: ${file}`, async () => {
          upstream.script(stream(bytes, isFramed));
          const tools = (expected.choices?.[0]?.tool_calls?.length ?? 0) > 0 ? { tools: TOOLS } : {};
          const request = { model, messages: MESSAGES, ...tools, stream_options: { include_usage: true } };
          const completion = await client.chat.completions.stream(request).finalChatCompletion();
          const wanted = expected.choices?.[0];
          if (wanted?.content !== undefined)
            expect(completion.choices[0]?.message.content ?? '').to.equal(wanted.content);
          if (wanted?.finish_reason) expect(completion.choices[0]?.finish_reason).to.equal(wanted.finish_reason);
          if (wanted?.tool_calls?.length) {
            expect(completion.choices[0]?.message.tool_calls).to.have.length(wanted.tool_calls.length);
          }
          expect(completion.usage?.total_tokens).to.be.greaterThan(0);
        });
      }

      for (const { name: file, bytes } of fixtures(name, 'failure', '.sse')) {
        it(`raises for a stream that fails: ${file}`, async () => {
          upstream.script(stream(bytes, isFramed));
          const parts = client.chat.completions.stream({ model, messages: MESSAGES }).finalChatCompletion();
          expect(await parts.catch((error: unknown) => error)).to.be.instanceOf(OpenAI.APIError);
        });
      }

      it('raises for a rate limit, with the wait', async () => {
        upstream.script(respondWith(429, {}, { 'retry-after': '7' }));
        const error = await client.chat.completions
          .create({ model, messages: MESSAGES })
          .catch((failure: unknown) => failure as APIError);
        expect(error).to.be.instanceOf(OpenAI.RateLimitError).and.include({ code: 'upstream_rate_limited' });
        expect((error as APIError).headers?.get('retry-after')).to.equal('7');
      });

      for (const [status, code] of [
        [401, 'provider_auth_failed'],
        [402, 'provider_quota_exhausted'],
        [500, 'provider_unavailable'],
      ] as const) {
        it(`raises 503 ${code} for the vendor’s ${status}, and shows no key`, async () => {
          upstream.script(respondWith(status, { error: { message: `no ${KEY}` } }));
          const error = await client.chat.completions
            .create({ model, messages: MESSAGES })
            .catch((failure: unknown) => failure as APIError);
          expect(error).to.include({ status: 503, code });
          expect(JSON.stringify((error as APIError).error)).not.to.include(KEY);
        });
      }

      if (!provider.embed) return;
      for (const { name: file, bytes } of fixtures(name, 'embeddings', '.json')) {
        it(`gets embeddings, which it requests as base64: ${file}`, async () => {
          upstream.script(respondWith(200, bytes, { 'content-type': 'application/json' }));
          const { data } = await client.embeddings.create({ model, input: ['one', 'two'] });
          expect(data).to.have.length(2);
          for (const { embedding } of data)
            expect(embedding.every(Number.isFinite) && embedding.length > 0).to.equal(true);
        });
      }
    });
  }
});
