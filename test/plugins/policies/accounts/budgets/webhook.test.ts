import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { createHttpClient } from '../../../../../egress/http-client.ts';
import type { Notice } from '../../../../../plugins/policies/accounts/budgets/notices.ts';
import { createWebhook } from '../../../../../plugins/policies/accounts/budgets/set-up.ts';
import { createDeliveries } from '../../../../../plugins/policies/kit/deliveries.ts';
import { createSilentLog } from '../../../../support/log.ts';
import { eventually } from '../../../../support/wait.ts';

const ORIGIN = 'https://hooks.example';
const SECRET = 'a secret of the test';
const NOTICE: Notice = {
  ...{ type: 'budget.soft_limit', budget: 'daily', of: 'all', every: 'day', timezone: 'UTC' },
  ...{ amount: '2.00', used: '1.00', soft: '1.00', starts_at: null, resets_at: null },
};

describe('the webhook of budgets', () => {
  let nock: typeof import('nock');
  // Imported only here: nock patches the sockets of the whole process from its import on.
  before(async () => {
    ({ default: nock } = await import('nock'));
    if (!nock.isActive()) nock.activate();
  });
  beforeEach(() => {
    nock.disableNetConnect();
  });
  afterEach(() => {
    nock.cleanAll();
    nock.enableNetConnect();
  });
  // Other files of this process make requests without a socket, which nock does not know.
  after(() => nock.restore());

  const start = (options: Partial<Parameters<typeof createDeliveries>[1]> = {}) => {
    const log = createSilentLog();
    const deliveries = createDeliveries(log, { receiver: 'the webhook of budgets', firstPauseMs: 1, ...options });
    const http = () => createHttpClient(new Set([new URL(ORIGIN).host]), '0.0.0');
    return {
      send: createWebhook({ http }, { url: `${ORIGIN}/hook`, secret: SECRET }, deliveries),
      deliveries,
      lines: log.lines,
    };
  };
  const errors = (lines: readonly { readonly level: string; readonly message?: string | undefined }[]) =>
    lines.filter(({ level }) => level === 'error').map(({ message }) => message);

  it('resends a notice until it is accepted, under one id, with a new signature each time', async () => {
    const got: { readonly body: string; readonly signature: string }[] = [];
    const note = (body: unknown, signature: string): void => void got.push({ body: JSON.stringify(body), signature });
    for (const status of [500, 429, 503, 200])
      nock(ORIGIN)
        .post('/hook')
        .reply(function reply(_url, body) {
          note(body, String([this.req.headers['x-tollgate-signature']].flat()[0]));
          return [status];
        });
    const { send, lines, deliveries } = start();
    send(NOTICE);
    await eventually(async () => expect(got).to.have.lengthOf(4));
    expect(new Set(got.map(({ body }) => body)).size).to.equal(1);
    for (const { body, signature } of got) {
      const [, t = '', v1] = /^t=(\d+),v1=(\w+)$/.exec(signature) ?? [];
      expect(v1).to.equal(createHmac('sha256', SECRET).update(`${t}.${body}`).digest('hex'));
    }
    await deliveries.close();
    expect(errors(lines)).to.deep.equal([]);
  });

  it('follows no redirect, and drops a permanently refused one', async () => {
    nock(ORIGIN).post('/hook').reply(302, undefined, { location: 'https://elsewhere.example/' });
    nock(ORIGIN).post('/hook').reply(404);
    const { send, lines } = start();
    send(NOTICE);
    send(NOTICE);
    await eventually(async () =>
      expect(errors(lines)).to.deep.equal(Array.from({ length: 2 }, () => 'the webhook of budgets rejected a notice')),
    );
    expect(nock.isDone()).to.equal(true);
  });

  it('gives up after the maximum number of attempts, and with too many waiting, and reports it', async () => {
    nock(ORIGIN).post('/hook').times(3).reply(500);
    const { send, lines, deliveries } = start({ maxTries: 3, maxWaiting: 1 });
    send(NOTICE);
    send(NOTICE);
    await eventually(async () => expect(errors(lines)).to.have.lengthOf(2));
    expect(errors(lines)[0]).to.include('too many notices are queued');
    expect(errors(lines)[1]).to.include('it is dropped');
    await deliveries.close();
  });

  it('tries waiting notices once more at shutdown', async () => {
    nock(ORIGIN).post('/hook').reply(500);
    const last = nock(ORIGIN).post('/hook').reply(200);
    const { send, deliveries, lines } = start({ firstPauseMs: 60_000 });
    send(NOTICE);
    await eventually(async () => expect(lines).to.have.lengthOf(1));
    await deliveries.close();
    expect(last.isDone()).to.equal(true);
    expect(errors(lines)).to.deep.equal([]);
  });
});
