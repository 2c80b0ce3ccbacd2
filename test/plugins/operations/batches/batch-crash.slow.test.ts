import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { expect } from 'chai';
import OpenAI, { toFile } from 'openai';
import { type GatewayProcess, type Installation, installGateway } from '../../../support/gateways/gateway-process.ts';
import { eventually } from '../../../support/wait.ts';
import { type BatchVendor, line, message, result, startBatchVendor } from './batch-vendor.ts';
import { type GoogleVendor, responded, startGoogleVendor } from './google-vendor.ts';

/** 1,000 tokens in and 100 out, at half the price. */
const PRICE = { input: 5, output: 30 };
const COST = 0.004;

interface Vendors {
  readonly vendor: BatchVendor;
  readonly google: GoogleVendor;
}

/** Batch at one vendor: its start, and the beginning of its results. */
interface Case {
  /** Requests are charged 500 at a time: half of them fill two pages. */
  readonly requests: number;
  begin(gateway: GatewayProcess, key: string, names: readonly string[]): Promise<unknown>;
  end(vendors: Vendors, names: readonly string[]): void;
}

/** Sends half of the result lines, then stalls. */
function endHalf({ vendor }: Vendors, results: readonly object[]): void {
  const half = results.slice(0, results.length / 2);
  vendor.cutAt = 100 + half.reduce((sum, each) => sum + JSON.stringify(each).length + 1, 0);
  vendor.end([...vendor.batches.keys()][0] ?? '', results);
}

const CASES: Readonly<Record<string, Case>> = {
  OpenAI: {
    requests: 2000,
    async begin({ url }, apiKey, names) {
      const client = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
      const lines = names.map((name) => JSON.stringify(line(name))).join('\n');
      const { id } = await client.files.create({ purpose: 'batch', file: await toFile(Buffer.from(lines), 'a.jsonl') });
      await client.batches.create({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' });
    },
    end: (vendors, names) =>
      endHalf(
        vendors,
        names.map((name) => result(name)),
      ),
  },
  Anthropic: {
    requests: 2000,
    begin({ url }, apiKey, names) {
      const params = { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] };
      const client = new Anthropic({ apiKey, baseURL: url, maxRetries: 0 });
      return client.messages.batches.create({ requests: names.map((custom_id) => ({ custom_id, params })) });
    },
    end: (vendors, names) => endHalf(vendors, names.map(message)),
  },
  // All results arrive at once; there are so many that charging them takes seconds.
  Google: {
    requests: 2000,
    begin({ url }, apiKey, names) {
      const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });
      const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
      const src = names.map(() => ({ contents, config: { maxOutputTokens: 100 } }));
      return client.batches.create({ model: 'gemini/gemini-3.8-flash', src });
    },
    end: ({ google }, names) => google.end(names.map(() => responded())),
  },
};

describe('a batch whose gateway is killed while it is settled', () => {
  let vendors: Vendors;
  let gateways: Installation;
  beforeEach(async () => {
    vendors = { vendor: await startBatchVendor(), google: await startGoogleVendor() };
    const { url } = vendors.vendor;
    gateways = await installGateway({
      store: 'sqlite:./data',
      billing: 'enforce',
      providers: {
        openai: { apiKey: 'sk-x', baseUrl: `${url}/v1`, prices: { 'gpt-5.5': PRICE } },
        anthropic: { apiKey: 'sk-ant-x', baseUrl: url, prices: { 'claude-opus-5': PRICE } },
        gemini: {
          apiKey: 'x',
          baseUrl: `${vendors.google.upstream.url}/v1beta`,
          prices: { 'gemini-3.8-flash': PRICE },
        },
      },
      operations: { batches: { lookEvery: '50ms' } },
    });
  });
  afterEach(async () => {
    await gateways.remove();
    await vendors.vendor.close();
    await vendors.google.upstream.close();
  });

  for (const [name, { requests, begin, end }] of Object.entries(CASES))
    it(`is charged once for each request by the next gateway, at ${name}`, async () => {
      const books = () => gateways.command('accounts', 'show', 'local');
      const names = Array.from({ length: requests }, (_, at) => `line-${at}`);
      await gateways.command('accounts', 'credit', 'local', '20');
      const first = await gateways.start();
      await begin(first, gateways.key, names);
      end(vendors, names);
      await eventually(async () => expect(Number((await books()).spent_usd)).to.be.greaterThan(0.03));
      await first.kill();
      const { spent_usd, held_usd } = await books();
      expect(Number(spent_usd)).to.be.lessThan(requests * COST);
      expect(Number(held_usd)).to.be.greaterThan(0);
      vendors.vendor.cutAt = undefined;
      await gateways.start();
      await eventually(async () => expect((await books()).held_usd).to.equal('0.00'));
      expect(Number((await books()).spent_usd)).to.be.closeTo(requests * COST, 1e-9);
    });
});
