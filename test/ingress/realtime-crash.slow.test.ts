import { expect } from 'chai';
import { openRealtime } from '../support/clients/realtime-client.ts';
import { installGateway } from '../support/gateways/gateway-process.ts';
import { responseEvents, startRealtimeVendor, usageOf } from '../support/vendors/realtime-vendor.ts';
import { eventually, until } from '../support/wait.ts';

describe('a realtime response whose gateway is killed', () => {
  it('is charged its reservation once, by the next gateways', async () => {
    const vendor = await startRealtimeVendor();
    const gateways = await installGateway({
      store: 'sqlite:./data',
      billing: 'enforce',
      providers: {
        openai: {
          ...{ apiKey: 'sk-x', baseUrl: `${vendor.url}/v1` },
          prices: { 'gpt-realtime-2': { input: 4, output: 24, audio_input: 32, audio_output: 64 } },
        },
      },
      policies: { accounts: { longestCall: '1s', holdMargin: '1s', sweepEvery: '100ms' } },
    });
    const books = () => gateways.command('accounts', 'show', 'local');
    try {
      await gateways.command('accounts', 'credit', 'local', '10');
      const first = await gateways.start();
      const client = await openRealtime({ url: first.url, key: gateways.key });
      const usage = usageOf({ text_tokens: 100 }, { text_tokens: 10 });
      let number = 0;
      vendor.onEvent = (event, session) => {
        if (event['type'] !== 'response.create') return;
        number += 1;
        session.send(...responseEvents(`resp_${number}`, { text: 'ha', usage }).slice(0, number === 1 ? undefined : 3));
      };
      const response = { max_output_tokens: 1000, output_modalities: ['text'] };
      client.send({ type: 'response.create', response });
      await client.got('response.done');
      // 100 at 4 and 10 at 24; the second response is still being written.
      await eventually(async () => expect((await books()).spent_usd).to.equal('0.00064'));
      client.send({ type: 'response.create', response });
      await client.got('response.output_text.delta', 2);
      await first.kill();
      const { held_usd: held, spent_usd: spent } = await books();
      expect(spent).to.equal('0.00064');
      // 1,000 tokens at 24, plus the input that it was to read.
      expect(Number(held)).to.be.within(0.024, 0.026);
      await until(
        'the client and the vendor are left',
        () => client.code !== undefined && vendor.sessions[0]?.code !== undefined,
      );
      await Promise.all([gateways.start(), gateways.start()]);
      await eventually(async () => expect((await books()).held_usd).to.equal('0.00'));
      expect(Number((await books()).spent_usd)).to.be.closeTo(0.00064 + Number(held), 1e-9);
      const { data } = await gateways.command('calls', '--user', 'local', '--limit', '10');
      const outcomes = (data as { outcome: string; operation: string }[]).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'expired')).to.have.length(1);
    } finally {
      await gateways.remove();
      await vendor.close();
    }
  });

  it('is charged the reservation for an unreported transcription (G17)', async () => {
    const vendor = await startRealtimeVendor();
    const price = { input: 4, output: 24, audio_input: 32, audio_output: 64 };
    const gateways = await installGateway({
      store: 'sqlite:./data',
      billing: 'enforce',
      providers: {
        openai: {
          ...{ apiKey: 'sk-x', baseUrl: `${vendor.url}/v1` },
          prices: { 'gpt-realtime-2': price, 'whisper-1': { input: 0, output: 0, fees: { seconds: 0.001 } } },
        },
      },
      policies: { accounts: { longestCall: '1s', holdMargin: '1s', sweepEvery: '100ms' } },
    });
    const books = () => gateways.command('accounts', 'show', 'local');
    try {
      await gateways.command('accounts', 'credit', 'local', '10');
      const first = await gateways.start();
      const client = await openRealtime({ url: first.url, key: gateways.key });
      const input = { turn_detection: null, transcription: { model: 'whisper-1' } };
      client.send({ type: 'session.update', session: { type: 'realtime', audio: { input } } });
      await client.got('session.updated');
      client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' });
      const events = () => vendor.sessions[0]?.events ?? [];
      await until('the sound has come', () => events().some(({ type }) => type === 'input_audio_buffer.append'));
      await first.kill();
      // One minute at 0.001 a second.
      expect(await books()).to.include({ held_usd: '0.06', spent_usd: '0.00' });
      await gateways.start();
      await eventually(async () => expect(await books()).to.include({ held_usd: '0.00', spent_usd: '0.06' }));
    } finally {
      await gateways.remove();
      await vendor.close();
    }
  });
});
