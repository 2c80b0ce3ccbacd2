import { expect } from 'chai';
import { readBooks } from '../support/clients/books.ts';
import { type FailureRig, OPERATOR_KEY, PROMPT_COST, startFailureRig } from '../support/gateways/failure-rig.ts';
import { pluginFile, routeText } from '../support/plugins/plugin-file.ts';
import { completion } from '../support/vendors/openai-vendor.ts';
import { respondWith, sse, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

describe('the life of a call', () => {
  let rig: FailureRig;
  const begin = async (setup: string, config: Record<string, unknown> = {}): Promise<void> => {
    rig = await startFailureRig(
      { plugins: ['./probe.mjs'], ...config },
      { files: { 'probe.mjs': pluginFile({ setup }) } },
    );
  };
  afterEach(() => rig.stop());

  /** Reservation of the account while the vendor is silent. */
  async function heldDuring(request: object): Promise<number> {
    let respond = (): void => {};
    const silent = new Promise<void>((resolve) => {
      respond = resolve;
    });
    for (const vendor of [rig.vendor, rig.second])
      vendor.script(async (wire) => {
        await silent;
        await wire.send(respondWith(200, completion()));
      });
    const before = rig.vendor.requests.length + rig.second.requests.length;
    const heard = rig.send(request);
    await eventually(async () => expect(rig.vendor.requests.length + rig.second.requests.length).to.equal(before + 1));
    const { held } = await readBooks(rig.gateway.url, rig.gateway.key);
    respond();
    expect((await heard).status).to.equal(200);
    return held;
  }

  describe('money is reserved for exactly the sent request', () => {
    it('a prepare hook that raises max_tokens raises the reservation', async () => {
      await begin(
        `api.hook('prepare', (call, request) => request.user === 'more' ? { ...request, max_tokens: 500 } : undefined);`,
      );
      expect(await heldDuring({})).to.equal(PROMPT_COST + 100 * 2);
      expect(await heldDuring({ user: 'more' })).to.equal(PROMPT_COST + 500 * 2);
      expect(rig.vendor.requests.at(-1)?.json()).to.include({ max_tokens: 500 });
    });

    it('a prepare hook that makes the prompt longer raises the reservation', async () => {
      await begin(
        `api.hook('prepare', (call, request) => ({ ...request, messages: [{ role: 'system', content: 'b'.repeat(800) }, ...request.messages] }));`,
      );
      expect(await heldDuring({})).to.equal(PROMPT_COST + 204 + 100 * 2);
    });

    it('a route hook to a more expensive model raises the reservation', async () => {
      await begin(
        `api.hook('route', (call) => call.request.user === 'dear' ? [{ provider: 'two', model: 'm' }] : undefined);`,
      );
      expect(await heldDuring({ user: 'dear' })).to.equal(10 * (PROMPT_COST + 100 * 2));
      expect(rig.second.requests).to.have.lengthOf(1);
    });

    it('a call that exceeds the balance after a hook’s change is refused, and nothing is sent', async () => {
      await begin(
        `api.hook('prepare', (call, request) => request.user === 'more' ? { ...request, max_tokens: 5000 } : undefined);`,
        { billing: 'enforce' },
      );
      await rig.gateway.command('accounts', 'credit', 'local', '0.001');
      rig.vendor.script(respondWith(200, completion()));
      expect((await rig.send()).status).to.equal(200);
      rig.expectError(await rig.send({ user: 'more' }), 'insufficient_balance', 402);
      expect(rig.vendor.requests).to.have.lengthOf(1);
    });

    for (const [title, hook] of [
      [
        'a prepare hook that makes a request invalid',
        `api.hook('prepare', (call, request) => ({ ...request, max_tokens: 'many' }));`,
      ],
      [
        'a send hook that replaces the body',
        `api.hook('send', (call, request) => ({ ...request, body: { ...request.body, max_tokens: 9 } }));`,
      ],
    ] as const)
      it(`${title} is refused with the plugin named, and nothing is sent, reserved or charged`, async () => {
        await begin(hook);
        const mark = await rig.mark();
        const heard = await rig.send();
        rig.expectError(heard, 'internal_error', 500);
        expect(rig.gateway.logText()).to.include('plugin \\"./probe.mjs\\", hook ');
        expect(rig.vendor.requests).to.have.lengthOf(0);
        await rig.expectOrder(mark, 1, 0, 0);
      });

    it('a send hook may change headers, path and query', async () => {
      await begin(
        `api.hook('send', (call, request, target) => ({ ...request, path: request.path + '?via=' + target.provider, headers: { ...request.headers, 'x-mine': 'yes' } }));`,
      );
      rig.vendor.script(respondWith(200, completion()));
      expect((await rig.send()).status).to.equal(200);
      const [request] = rig.vendor.requests;
      expect(request?.path).to.equal('/chat/completions?via=one');
      expect(request?.headers).to.include({ 'x-mine': 'yes' });
    });
  });

  const OBSERVER = `
  const reports = [];
  api.hook('attempt', (call, { failure, durationMs, ...attempt }) => {
    reports.push({ ...attempt, timed: durationMs >= 0, ...(failure && { class: failure.class ?? null, code: failure.error.code, message: failure.message }) });
  });
  ${routeText('/reports', 'ctx.body = reports.splice(0);')}`;

  describe('each attempt is reported', () => {
    const reports = async () => (await (await rig.gateway.post('/reports', undefined)).json()) as readonly object[];
    const one = { provider: 'fresh', model: 'm' };
    const two = { provider: 'two', model: 'm' };

    it('with target, number, status, class, message and next step, with and without a stream', async () => {
      await begin(OBSERVER);
      for (const stream of [false, true]) {
        rig.vendor.script(respondWith(500, { error: { message: `key ${OPERATOR_KEY} of http://10.0.0.1:80 broke` } }));
        rig.second.script(respondWith(200, completion()));
        expect((await rig.send({ model: 'both', stream })).status).to.equal(200);
        const [first, second, ...more] = await reports();
        expect(more).to.deep.equal([]);
        expect(first).to.deep.include({ target: one, number: 1, status: 500, next: 'next target', timed: true });
        expect(first).to.include({ class: 'upstream_error', code: 'provider_unavailable' });
        expect((first as { message: string }).message)
          .to.include('broke')
          .and.not.include(OPERATOR_KEY)
          .and.not.include('10.0.0.1');
        expect(second).to.deep.equal({ target: two, number: 2, status: 200, next: 'respond', timed: true });
      }
    });

    it('if nothing was sent: a missing key and an unreachable host have no status', async () => {
      await begin(OBSERVER, { providers: { openai: {} }, models: { patient: ['openai/gpt-4o', 'dead/m', 'two/m'] } });
      rig.second.script(respondWith(200, completion()));
      expect((await rig.send({ model: 'patient' })).status).to.equal(200);
      const [missing, dead, last] = (await reports()) as readonly Record<string, unknown>[];
      expect(missing).to.deep.include({ number: 1, next: 'next target', class: null, code: 'provider_not_configured' });
      expect(missing).not.to.have.property('status');
      expect(dead).to.deep.include({ number: 2, next: 'next target', code: 'provider_unavailable' });
      expect(dead).not.to.have.property('status');
      expect(last).to.deep.include({ number: 3, status: 200, next: 'respond' });
    });

    it('if the last one failed, and if the caller caused the error', async () => {
      await begin(OBSERVER);
      rig.vendor.script(respondWith(503, 'no'));
      rig.second.script(respondWith(503, 'no'));
      rig.expectError(await rig.send({ model: 'both' }), 'provider_overloaded');
      expect((await reports()).map((report) => (report as { next: string }).next)).to.deep.equal([
        'next target',
        'retry',
        'end',
      ]);
      rig.vendor.script(respondWith(400, { error: { message: 'messages[0] is odd' } }));
      rig.expectError(await rig.send({ model: 'both' }), 'invalid_request', 400);
      const [report, ...more] = await reports();
      expect(more).to.deep.equal([]);
      expect(report).to.deep.include({ target: one, status: 400, next: 'end', class: 'invalid_request' });
    });

    it('if a codec throws an error, and the log names its provider', async () => {
      const codec = `{ request: (input) => ({ path: '/x', body: input }), response() { throw new TypeError('x of undefined'); }, stream: () => ({ push() { throw new TypeError('x of undefined'); }, end() {} }) }`;
      const setup = `api.provider({ specVersion: 1, vendor: 'broken', models: [{ id: 'm' }], error: () => ({ class: 'upstream_error', message: '' }), baseUrl: config.baseUrl, chat: ${codec} });`;
      const upstream = await startScriptedUpstream();
      rig = await startFailureRig(
        { plugins: ['./probe.mjs'], providers: { broken: { plugin: './broken.mjs', baseUrl: upstream.url } } },
        {
          files: {
            'probe.mjs': pluginFile({ setup: OBSERVER }),
            'broken.mjs': pluginFile({ kind: 'provider', setup }),
          },
        },
      );
      try {
        for (const stream of [false, true]) {
          upstream.script(stream ? sse('{}') : respondWith(200, {}));
          rig.expectError(await rig.send({ model: 'broken/m', stream }), 'internal_error', 500);
          const [report] = await reports();
          expect(report).to.deep.include({ number: 1, status: 200, next: 'end', code: 'internal_error' });
        }
        expect(rig.gateway.logText()).to.include('provider \\"broken\\": x of undefined');
      } finally {
        await upstream.close();
      }
    });
  });
});
