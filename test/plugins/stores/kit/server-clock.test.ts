import { mock } from 'node:test';
import { expect } from 'chai';
import { createServerClock, sendInTime } from '../../../../plugins/stores/kit/server-connection.ts';

describe('deadlines of a server’s clock', () => {
  const HOUR = 3_600_000;

  it('are never later than the bound, and hardly earlier', () => {
    for (const aheadMs of [-HOUR, 0, HOUR]) {
      const clock = createServerClock();
      const before = Date.now();
      clock.observe(before + aheadMs);
      const [now, deadline] = [clock.now(), clock.deadline(500)];
      const passedMs = Date.now() - before;
      expect(now - before - aheadMs).to.be.within(-20, passedMs + 20);
      expect(deadline - before - aheadMs).to.be.within(480, 500 + passedMs);
    }
  });

  it('are corrected when the server finds one over in time, and the operation is sent once more', async () => {
    const clock = createServerClock();
    const serverNow = () => Date.now() + HOUR;
    const sent: number[] = [];
    const send = async (deadline: number) => {
      sent.push(deadline);
      if (serverNow() > deadline) throw new Error('late');
      return 'done';
    };
    expect(await sendInTime(clock, 500, send, serverNow)).to.equal('done');
    expect(sent).to.have.length(2);
    expect(await sendInTime(clock, 500, send, serverNow)).to.equal('done');
    expect(sent).to.have.length(3);
  });

  it('are kept when the deadline has passed here as well, because no caller waits for the operation', async () => {
    const clock = createServerClock();
    let sent = 0;
    const send = async () => {
      sent += 1;
      await new Promise((resolve) => setTimeout(resolve, 30));
      throw new Error('late');
    };
    const outcome = await sendInTime(clock, 20, send, () => Date.now() + HOUR).catch((error) => error.message);
    expect([outcome, sent]).to.deep.equal(['late', 1]);
    expect(clock.deadline(0)).to.be.lessThan(Date.now() + 1);
  });

  for (const jumpMs of [-HOUR, HOUR])
    it(`are unchanged when the clock is set on of this machine by ${jumpMs / HOUR} h`, () => {
      const clock = createServerClock();
      const serverMs = Date.now();
      clock.observe(serverMs);
      const now = Date.now.bind(Date);
      const jumped = mock.method(Date, 'now', () => now() + jumpMs);
      try {
        const deadline = clock.deadline(500);
        expect(deadline - serverMs).to.be.within(480, 520 + now() - serverMs);
      } finally {
        jumped.mock.restore();
      }
    });

  it('leave every other error unchanged', async () => {
    const failure = new Error('other');
    const outcome = await sendInTime(
      createServerClock(),
      500,
      () => Promise.reject(failure),
      () => undefined,
    ).catch((e) => e);
    expect(outcome).to.equal(failure);
  });
});
