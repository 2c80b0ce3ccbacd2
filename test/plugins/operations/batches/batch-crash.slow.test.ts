import { expect } from 'chai';
import OpenAI, { toFile } from 'openai';
import { installGateway } from '../../../support/gateways/gateway-process.ts';
import { eventually } from '../../../support/wait.ts';
import { line, result, startBatchVendor } from './batch-vendor.ts';

describe('a batch whose gateway is killed while it is settled', () => {
  it('is charged once for each line by the gateway that comes after it', async () => {
    const vendor = await startBatchVendor();
    const gateways = await installGateway({
      store: 'sqlite:./data',
      billing: 'enforce',
      providers: {
        openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1`, prices: { 'gpt-5.5': { input: 5, output: 30 } } },
      },
      operations: { batches: { lookEvery: '50ms' } },
    });
    const books = () => gateways.command('accounts', 'show', 'local');
    const names = Array.from({ length: 20 }, (_, at) => `line-${at}`);
    try {
      await gateways.command('accounts', 'credit', 'local', '10');
      const first = await gateways.start();
      const client = new OpenAI({ apiKey: gateways.key, baseURL: `${first.url}/v1`, maxRetries: 0 });
      const lines = names.map((name) => JSON.stringify(line(name))).join('\n');
      const file = await client.files.create({ purpose: 'batch', file: await toFile(Buffer.from(lines), 'a.jsonl') });
      await client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      });
      const results = names.map((name) => result(name));
      // Half of them come, and then nothing more.
      vendor.cutAt = 100 + results.slice(0, 10).reduce((sum, each) => sum + JSON.stringify(each).length + 1, 0);
      vendor.end([...vendor.batches.keys()][0] ?? '', results);
      await eventually(async () => expect(Number((await books()).spent_usd)).to.be.greaterThan(0.03));
      await first.kill();
      const { spent_usd, held_usd } = await books();
      expect(Number(spent_usd)).to.be.lessThan(0.08);
      expect(Number(held_usd)).to.be.greaterThan(0);
      vendor.cutAt = undefined;
      await gateways.start();
      await eventually(async () => expect((await books()).held_usd).to.equal('0.00'));
      // 20 times 1,000 tokens in and 100 out at half of the price.
      expect((await books()).spent_usd).to.equal('0.08');
    } finally {
      await gateways.remove();
      await vendor.close();
    }
  });
});
