import { mock } from 'node:test';
import { expect } from 'chai';
import { compileHooks } from '../../core/plugins/compile-hooks.ts';
import { setUpPlugin } from '../../core/plugins/foundation.ts';
import { HOOK_TIMEOUT_MS } from '../../core/plugins/hook-guard.ts';
import { failLateSteps } from '../../core/plugins/hook-runner.ts';
import { formsOf } from '../support/gateways/failure-forms.ts';
import {
  type FailureRig,
  OPERATOR_KEY,
  PROMPT_COST,
  startFailureRig,
  USAGE_COST,
} from '../support/gateways/failure-rig.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { recordPassed } from './passed-forms.ts';

const plugin = (name: string, setup: string) =>
  `export default { name: '${name}', kind: 'policy', apiVersion: 1, setup(api, config) { ${setup} } };`;
const hook = (name: string, body: string) =>
  `api.hook('${name}', (call, value) => { if (call.request.user !== '${name}') return undefined; ${body} });`;
const route = (path: string, body: string) =>
  `api.route({ method: 'GET', path: '${path}', summary: 'x', auth: 'none', responses: { 200: 'Done.' }, handler(ctx) { ${body} } });`;

describe('a failing plugin', () => {
  describe('at start', () => {
    for (const [title, setup, words] of [
      ['X01: a plugin that throws in setup', `throw new Error('no disk');`, /bad[\s\S]*setup failed: no disk/],
      [
        'X01: a plugin that rejects in setup',
        `return Promise.reject(new Error('no disk'));`,
        /bad[\s\S]*setup failed: no disk/,
      ],
      ['X06: a plugin that changes its configuration', `config.a = 1;`, /bad[\s\S]*setup failed/],
      [
        'X06: a plugin that registers a hook that does not exist',
        `api.hook('prepair', () => {});`,
        /prepair[\s\S]*prepare/,
      ],
      ['G02: a plugin that claims a route that is taken', route('/livez', ''), /bad[\s\S]*\/livez/],
    ] as const) {
      it(`${title} opens no port, and the message names it`, async () => {
        let started = false;
        const error = await startGateway(
          { plugins: ['./bad.mjs'] },
          { files: { 'bad.mjs': plugin('bad', setup) } },
        ).then(
          async (gateway) => {
            started = true;
            await gateway.stop();
          },
          (failure: Error) => failure,
        );
        expect(started).to.equal(false);
        expect(String(error)).to.match(words);
      });
    }

    it('X02: a plugin has thirty seconds for its setup, and is named when it takes longer', async () => {
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const never = { name: 'slow', plugin: { setup: () => new Promise<void>(() => {}) }, config: {} };
        const failed = setUpPlugin(never as never, {} as never).catch((error: Error) => error);
        mock.timers.tick(30_000);
        expect(String(await failed)).to.match(/slow[\s\S]*setup did not finish within 30 s/);
      } finally {
        mock.timers.reset();
      }
    });
  });

  it('X04: a plugin has thirty seconds for a hook, and is named when it takes longer', async () => {
    const entry = { owner: 'slow', name: 'admit', handler: () => new Promise<void>(() => {}) } as const;
    const { admit } = compileHooks([entry], {
      operation: 'chat',
      isRequest: () => true,
      isResponse: () => true,
      onIgnored: () => {},
      pending: { begin() {}, end() {} },
    });
    const failed = Promise.resolve(admit?.({} as never)).catch((error: Error) => error);
    failLateSteps(performance.now() + HOOK_TIMEOUT_MS);
    const error = (await failed) as Error;
    expect(error).to.have.property('code', 'internal_error');
    expect(String(error.cause)).to.match(/plugin "slow", hook "admit": did not finish within 30000 ms/);
  });

  describe('on a call', () => {
    let rig: FailureRig;
    before(async () => {
      const bad = plugin(
        'bad',
        [
          hook('prepare', `throw new Error('at /home/operator top secret')`),
          hook('admit', `return Promise.reject(new Error('later'))`),
          hook('send', 'return 5'),
          hook('receive', `return 'five'`),
          hook(
            'stream',
            `let n = 0; return { push(chunk) { if (++n === 3) throw new Error('third'); return [chunk]; } };`,
          ),
          hook('error', `throw new Error('again')`),
          `api.hook('finish', (call) => { if (call.request.user === 'finish') throw new Error('after all'); });`,
          route('/split', `ctx.set('x-bad', 'a\\r\\nset-cookie: b=c'); ctx.body = {};`),
          route('/utf16', `ctx.set('x-bad', '\\ud83d\\ude00'); ctx.body = {};`),
          route('/status', `ctx.status = 99; ctx.body = {};`),
          route('/circle', `const body = {}; body.self = body; ctx.body = body;`),
          route('/nothing', ''),
          `api.route({ method: 'GET', path: '/seen', summary: 'x', auth: ['key'], responses: { 200: 'Seen.' }, handler(ctx) { ctx.body = { principal: ctx.state.principal, state: Object.keys(ctx.state), settings: api.settings, config }; } });`,
          `api.hook('receive', (call, value) => call.request.user === 'echo' ? { ...value, seen: JSON.parse(JSON.stringify(call)) } : undefined);`,
        ].join('\n'),
      );
      rig = await startFailureRig({ plugins: ['./bad.mjs'] }, { files: { 'bad.mjs': bad } });
    });
    after(() => rig?.stop());
    beforeEach(() => rig.vendor.script(respondWith(200, completion())));

    for (const [title, user, cost] of [
      ['X03: a plugin that throws in a hook before the call', 'prepare', 0],
      ['X03: a plugin that rejects in a hook before the call', 'admit', 0],
      ['X06: a plugin that returns a number for a request', 'send', 0],
      ['X06: a plugin that returns a text for a response, which is paid for,', 'receive', USAGE_COST],
    ] as const) {
      it(`${title} is a 500 without its message, which is in the log, in every format`, async () => {
        const mark = await rig.mark();
        // A stream does not run the hook of complete responses.
        const forms = formsOf(user === 'receive' ? false : undefined);
        for (const form of forms) {
          const heard = await rig.sendAs(form, 'one/m', {}, user);
          const { message } = rig.expectErrorAs(form, heard, 'internal_error');
          expect(message)
            .to.match(/plugin/)
            .and.not.match(/home|secret|bad/);
          const lines = rig.gateway.logs.filter(
            ({ level, request_id }) => level === 'error' && request_id === heard.headers['x-request-id'],
          );
          expect(lines, 'one line in the log').to.have.lengthOf(1);
          expect(JSON.stringify(lines)).to.include(`plugin \\"./bad.mjs\\", hook \\"${user}\\"`);
        }
        await rig.expectOrder(mark, forms.length, cost * forms.length);
        recordPassed(title, forms);
      });
    }

    it('X03: a plugin that throws in the error hook hides no error from the caller', async () => {
      const mark = await rig.mark();
      rig.vendor.script(respondWith(500, 'no'));
      rig.expectError(await rig.send({ user: 'error' }), 'internal_error', 500);
      await rig.expectOrder(mark, 1, 0);
    });

    it('X03: a plugin that throws after the call changes neither the response nor its charge', async () => {
      const mark = await rig.mark();
      expect((await rig.send({ user: 'finish' })).status).to.equal(200);
      await rig.expectOrder(mark, 1, USAGE_COST);
    });

    it('X05: a plugin that throws on the third chunk of a stream is one error frame after the two before, charged once', async () => {
      const mark = await rig.mark();
      rig.vendor.script(events(['aaaa', 'bbbb', 'cccc', 'dddd'].map((text) => delta(text))));
      const heard = await rig.send({ user: 'stream', stream: true });
      const shown = heard.text;
      if (heard.status === 200) rig.expectError(heard, 'internal_error');
      expect(shown).not.to.include('dddd');
      await rig.expectOrder(mark, 1, PROMPT_COST + 4);
    });

    it('X05: a plugin that throws on the third chunk of a stream is one error, charged once, in every format', async () => {
      const mark = await rig.mark();
      rig.vendor.script(events(['aaaa', 'bbbb', 'cccc', 'dddd'].map((text) => delta(text))));
      const forms = formsOf(true);
      for (const form of forms) {
        const heard = await rig.sendAs(form, 'one/m', {}, 'stream');
        rig.expectErrorAs(form, heard, 'internal_error', heard.text.includes('aaaa') ? 'aaaabbbb' : '');
        expect(heard.text).not.to.include('dddd');
      }
      await rig.expectOrder(mark, forms.length, (PROMPT_COST + 4) * forms.length);
      recordPassed('X05', forms);
    });

    for (const [title, where, status] of [
      ['a header that would split the answer', '/split', 500],
      ['a header beyond Latin-1', '/utf16', 500],
      ['an invalid status', '/status', 500],
      ['a body that is no JSON', '/circle', 500],
      ['no body at all', '/nothing', 500],
    ] as const) {
      it(`X09: a plugin that responds with ${title} leaves the caller a well-formed error on an intact connection`, async () => {
        const response = await rig.gateway.get(where);
        const text = await response.text();
        expect(response.headers.get('set-cookie')).to.equal(null);
        expect(response.status, text).to.equal(status);
        expect(JSON.parse(text)).to.have.nested.property('error.code');
        expect((await rig.gateway.get('/livez')).status).to.equal(200);
      });
    }

    it('X08: a plugin finds no key in its arguments', async () => {
      const seen = await (await rig.gateway.get('/seen')).text();
      const heard = await rig.send({ user: 'echo' });
      expect(heard.text).to.include('"seen"');
      for (const text of [seen, heard.text]) {
        expect(text).not.to.include(OPERATOR_KEY);
        expect(text).not.to.include(rig.gateway.key.split('_')[2]);
      }
    });

    it('is followed by a gateway that serves the next hundred calls', async () => {
      await rig.expectOrder(await rig.mark(), 0, 0, 100);
    });
  });
});
