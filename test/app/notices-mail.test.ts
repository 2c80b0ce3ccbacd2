import { expect } from 'chai';
import { type MailServer, startMailServer } from '../support/clients/mail-server.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type RoutingRig, refusal, startRoutingRig } from '../support/gateways/routing-rig.ts';
import { eventually } from '../support/wait.ts';

const PASSWORD = 'the password of the tests';
const FROM = 'Tollgate <gateway@example.com>';

interface Tried {
  readonly receiver: string;
  readonly taken: boolean;
  readonly said: string;
}

describe('notices by mail', () => {
  let server: MailServer;
  let gateway: TestGateway | undefined;
  let rig: RoutingRig | undefined;
  afterEach(async () => {
    await Promise.all([gateway?.stop(), rig?.stop()]);
    [gateway, rig] = [undefined, undefined];
    await server?.close();
  });

  const mail = (smtp: object, more: object = {}) => ({
    notices: {
      receivers: {
        mail: {
          smtp: { host: 'localhost', port: server.port, user: 'tollgate', password: PASSWORD, ca: server.ca, ...smtp },
          ...{ from: FROM, to: ['ops@example.com', 'boss@example.com'], ...more },
        },
      },
    },
  });
  const tryIt = async (policies: object): Promise<Tried | undefined> => {
    gateway = await startGateway({ policies });
    const [row] = await gateway.command<readonly Tried[]>('notices', 'test');
    process.exitCode = 0;
    return row;
  };

  it('report an unhealthy target over TLS, after a sign-in at the server @slow', async () => {
    server = await startMailServer();
    rig = await startRoutingRig({ both: ['a/m', 'b/m'] }, {}, { policies: mail({}, { events: ['target.opened'] }) });
    rig.vendors['a']?.script(refusal(401));
    expect((await rig.send('both')).by).to.equal('b');
    const [got] = await eventually(async () => {
      expect(server.mails).to.have.lengthOf(1);
      return server.mails;
    });
    expect(got).to.deep.include({
      ...{ from: 'gateway@example.com', to: ['ops@example.com', 'boss@example.com'] },
      ...{ isEncrypted: true, credential: `tollgate:${PASSWORD}` },
    });
    expect(got?.data).to.include('Subject: [Tollgate] Target a/m is unhealthy');
    expect(got?.data).to.match(/^error: 401$/m);
    expect(got?.data).to.match(/^Auto-Submitted: auto-generated$/im);
    expect(server.inTheClear.map((line) => line.split(' ')[0])).to.deep.equal(['EHLO', 'STARTTLS']);
    expect(rig.gateway.logText()).to.not.include(PASSWORD);
  });

  it('go to no server without TLS or with another certificate, which receives no password', async () => {
    server = await startMailServer({ offersTls: false });
    expect(await tryIt(mail({}))).to.deep.include({ receiver: 'mail', taken: false });
    expect(server.inTheClear.join()).to.not.include('AUTH').and.not.include('MAIL');
    await Promise.all([gateway?.stop(), server.close()]);
    const other = await startMailServer();
    server = await startMailServer();
    const tried = await tryIt(mail({ ca: other.ca }));
    await other.close();
    expect(tried).to.include({ taken: false });
    expect(tried?.said).to.match(/certificate|self.signed/i);
    expect(server.mails).to.deep.equal([]);
  });

  it('go to a server of this machine without TLS if no certificate is configured', async () => {
    server = await startMailServer({ offersTls: false });
    const tried = await tryIt(mail({ ca: undefined, user: undefined, password: undefined }));
    expect(tried).to.deep.include({ taken: true, said: '250 queued' });
    expect(server.mails[0]).to.deep.include({ isEncrypted: false, credential: undefined });
  });

  it('name the recipient that a server rejects', async () => {
    server = await startMailServer();
    server.refuse('550 no such user');
    const tried = await tryIt(mail({}));
    expect(tried).to.include({ taken: false });
    expect(tried?.said).to.include('ops@example.com');
    expect(server.mails[0]?.to).to.deep.equal(['boss@example.com']);
  });

  it('are sent again, under the same id, to a server that is busy @slow', async () => {
    server = await startMailServer();
    server.refuse('451 later', '451 later');
    gateway = await startGateway({ policies: mail({}, { events: ['reload.refused'] }) });
    gateway.recordReload('a problem of the test');
    const [got] = await eventually(async () => {
      expect(server.mails).to.have.lengthOf(1);
      return server.mails;
    });
    expect(got?.data).to.match(/^Message-ID: <[0-9a-f-]{36}@tollgate>$/im);
    expect(got?.data).to.include('a problem of the test');
  });

  for (const [what, options, wrong] of [
    ['nowhere to go', { from: FROM, to: ['a@example.com'] }, 'has neither url nor smtp'],
    ['a server and no recipient', { smtp: { host: 'localhost' }, from: FROM }, 'has no `to`'],
    [
      'a server and a form',
      { smtp: { host: 'localhost' }, from: FROM, to: ['a@example.com'], format: 'slack' },
      'format',
    ],
    [
      'a user and no password',
      { smtp: { host: 'localhost', user: 'u' }, from: FROM, to: ['a@example.com'] },
      'password',
    ],
    ['two lines in an address', { smtp: { host: 'localhost' }, from: FROM, to: ['a@example.com\nBcc: b@c.d'] }, 'to'],
  ] as const)
    it(`refuse a receiver with ${what}, with the remedy`, async () => {
      server = await startMailServer();
      const refused = await startGateway({ policies: { notices: { receivers: { mail: options } } } }).then(
        (started) => started.stop(),
        (error: Error) => error.message,
      );
      expect(refused).to.include('policies.notices.receivers.mail').and.include(wrong);
    });
});
