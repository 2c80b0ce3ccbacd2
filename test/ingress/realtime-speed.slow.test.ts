import { expect } from 'chai';
import { openRealtime } from '../support/clients/realtime-client.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { startRealtimeVendor, type VendorSession } from '../support/vendors/realtime-vendor.ts';
import { until } from '../support/wait.ts';

describe('the realtime websocket', () => {
  it('reads from a vendor only as fast as its client reads', async () => {
    const vendor = await startRealtimeVendor();
    const gateway = await startGateway({
      providers: { openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1` } },
    });
    try {
      const client = await openRealtime(gateway);
      await client.got('session.created');
      const session = vendor.sessions[0] as VendorSession;
      client.socket.pause();
      const delta = 'A'.repeat(1024 * 1024);
      const sent = 64;
      for (let at = 0; at < sent; at += 1)
        session.send({ type: 'response.output_audio.delta', response_id: 'r', delta });
      let last = 0;
      let same = 0;
      await until('the gateway takes no more', () => {
        const { bufferedAmount } = session.socket;
        same = bufferedAmount === last ? same + 1 : 0;
        last = bufferedAmount;
        return same > 50;
      });
      expect(last, 'what waits at the vendor').to.be.above((sent / 2) * delta.length);
      client.socket.resume();
      await client.got('response.output_audio.delta', sent);
      client.socket.close();
    } finally {
      await gateway.stop();
      await vendor.close();
    }
  });
});
