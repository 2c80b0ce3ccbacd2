import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile, readText, startError } from '../support/plugins/plugin-file.ts';
import { eventually } from '../support/wait.ts';

/** Does what the `user` of a request names: at admission, to the request, to the response, to a stream. */
const GUARD = pluginFile({
  name: 'guard',
  setup: `
    const hang = () => new Promise(() => {});
    const acts = {
      hang,
      bug: () => { throw new Error('a bug of the guard'); },
      'late bug': () => Promise.reject(new Error('a bug of the guard')),
      refuse: () => { throw new GatewayError('content_filtered', 'The guard says no.'); },
      slow: () => new Promise((resolve) => setTimeout(resolve, 5)),
    };
    api.hook('admit', (call) => acts[call.request.user]?.());
    api.hook('prepare', (call, request) =>
      request.user === 'change' ? { ...request, messages: [{ role: 'user', content: 'changed' }] } : undefined);
    api.hook('answer', (call) => call.request.user !== 'answer' ? undefined : { response: {
      id: 'x', object: 'chat.completion', created: 1, model: 'guard',
      choices: [{ index: 0, message: { role: 'assistant', content: 'at once' }, finish_reason: 'stop' }] } });
    api.hook('stream', (call) => {
      if (!call.request.user?.startsWith('stream')) return undefined;
      const held = [];
      let seen = 0;
      return {
        push(chunk) {
          seen += 1;
          if (seen === 3) return acts[call.request.user.slice(7)]();
          held.push(chunk);
          return seen === 1 ? [] : held.splice(0, 1);
        },
        end: () => held.splice(0),
      };
    });
    api.hook('finish', () => undefined);`,
});

const start = (options: object): Promise<TestGateway> =>
  startGateway({ policies: { guard: { plugin: './guard.mjs', ...options } } }, { files: { 'guard.mjs': GUARD } });

const WORDS = 'one two three four five';
const send = (gateway: TestGateway, user: string, rest: object = {}): Promise<Response> =>
  gateway.post(CHAT, chatOf(WORDS, { user, ...rest }));

/** Value of a metric of the guard. */
async function metricOf(gateway: TestGateway, name: string, hook: string): Promise<number> {
  const text = await (await gateway.get('/metrics')).text();
  const line = text
    .split('\n')
    .find((each) => each.startsWith(`tollgate_plugin_hook_${name}{plugin="guard",hook="${hook}"}`));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

interface Hook {
  readonly plugin: string;
  readonly hook: string;
  readonly action: string;
  readonly ms?: number;
}

/** Hook actions in the record of a response's call. */
const hooksOf = (gateway: TestGateway, response: Response): Promise<readonly Hook[] | null> =>
  eventually(async () => {
    const list = (await (await gateway.get('/api/core/calls?limit=100')).json()) as {
      readonly data: readonly { readonly request_id: string; readonly hooks: readonly Hook[] | null }[];
    };
    const found = list.data.find(({ request_id }) => request_id === response.headers.get('x-request-id'));
    expect(found, 'the record').not.to.equal(undefined);
    return found?.hooks ?? null;
  });

describe('the hooks of a failing plugin', () => {
  describe('with the default, closed', () => {
    let gateway: TestGateway;
    before(async () => {
      gateway = await start({ timeout: '50ms' });
    });
    after(() => gateway?.stop());

    it('E32: a hook that hangs ends its call after the instance’s own time, not after thirty seconds', async () => {
      const response = await send(gateway, 'hang');
      expect(response.status).to.equal(500);
      expect(gateway.logText()).to.include('plugin \\"guard\\", hook \\"admit\\": did not finish within 50 ms');
    });

    it('E32: after five timeouts in a row calls fail immediately, which is logged; the plugin’s other hooks still run', async () => {
      for (let at = 0; at < 5; at++) await (await send(gateway, 'hang')).text();
      expect(await metricOf(gateway, 'skipped_total', 'admit')).to.be.at.least(0);
      const before = await metricOf(gateway, 'calls_total', 'admit');
      expect((await send(gateway, 'nothing')).status).to.equal(500);
      expect(await metricOf(gateway, 'calls_total', 'admit')).to.equal(before);
      expect(await metricOf(gateway, 'skipped_total', 'admit')).to.be.at.least(1);
      expect(gateway.logText()).to.include('timed out repeatedly');
    });
  });

  it('E32: one caller who makes it hang repeatedly does not disable it for others, who must not skip it', async () => {
    const gateway = await start({ timeout: '200ms' });
    const { api_key: other } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'other');
    const others = async (): Promise<number> => {
      const response = await gateway.post(CHAT, chatOf(WORDS), { authorization: `Bearer ${other}` });
      await response.text();
      return response.status;
    };
    // No other caller is active: the hook is skipped only for the caller that made it hang.
    const hanging = await Promise.all(Array.from({ length: 12 }, async () => (await send(gateway, 'hang')).status));
    expect(new Set(hanging)).to.deep.equal(new Set([500]));
    expect((await send(gateway, 'none')).status).to.equal(500);
    expect([await others(), await others(), (await send(gateway, 'none')).status]).to.deep.equal([200, 200, 200]);
    // Other callers succeed while the hook hangs for that caller.
    let isOver = false;
    const again = Promise.all(Array.from({ length: 12 }, () => send(gateway, 'hang'))).finally(() => {
      isOver = true;
    });
    while (!isOver) expect(await others()).to.equal(200);
    await again;
    expect(await others()).to.equal(200);
    await gateway.stop();
  });

  describe('with onFailure: open', () => {
    let gateway: TestGateway;
    before(async () => {
      gateway = await start({ timeout: '50ms', onFailure: 'open' });
    });
    after(() => gateway?.stop());

    for (const user of ['hang', 'bug', 'late bug'])
      it(`E32: a call continues after ${user}, and the log names plugin and hook`, async () => {
        const response = await send(gateway, user);
        expect(response.status).to.equal(200);
        expect(await readText(response)).to.include('five');
        const line = gateway.logs.findLast(({ msg }) => msg === 'a admit hook failed');
        expect(line).to.include({ level: 'error', plugin: 'guard', hook: 'admit' });
        const [hook] = (await hooksOf(gateway, response)) ?? [];
        expect(hook).to.include({ plugin: 'guard', hook: 'admit', action: 'failed' });
      });

    it('E32: a refusal stays a refusal', async () => {
      const response = await send(gateway, 'refuse');
      expect(response.status).to.equal(400);
      expect(await response.text()).to.include('The guard says no.');
    });

    it('E32: a stream continues without a failed transform, with the text that it held back', async () => {
      const text = await readText(await send(gateway, 'stream bug', { stream: true }));
      expect(text).to.equal(await readText(await send(gateway, 'none', { stream: true })));
      expect(text).to.include(WORDS);
    });

    it('E32: after five timeouts in a row calls continue without it immediately', async () => {
      for (let at = 0; at < 6; at++) expect((await send(gateway, 'hang')).status).to.equal(200);
      const before = await metricOf(gateway, 'calls_total', 'admit');
      expect((await send(gateway, 'refuse')).status).to.equal(200);
      expect(await metricOf(gateway, 'calls_total', 'admit')).to.equal(before);
      expect(await metricOf(gateway, 'skipped_total', 'admit')).to.be.at.least(1);
    });
  });

  it('E32: an option without effect is refused at its place', async () => {
    const files = {
      'none.mjs': pluginFile({ setup: '' }),
      'end.mjs': pluginFile({ setup: `api.hook('finish', () => undefined);` }),
    };
    const started = (options: object) => startError(startGateway({ policies: { guard: options } }, { files }));
    expect(await started({ plugin: './none.mjs', timeout: '1s' })).to.match(/guard\.timeout.*registers no hook/);
    expect(await started({ plugin: './end.mjs', onFailure: 'open' })).to.match(
      /guard\.onFailure.*no hook that a call waits for/,
    );
    expect(await started({ plugin: './none.mjs', onFailure: 'ajar' })).to.match(/onFailure.*open.*closed/);
  });
});

describe('actions of plugins’ hooks', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await start({});
  });
  after(() => gateway?.stop());

  const ACTED: readonly (readonly [user: string, status: number, hooks: readonly Hook[] | null])[] = [
    ['none', 200, null],
    ['change', 200, [{ plugin: 'guard', hook: 'prepare', action: 'changed' }]],
    ['answer', 200, [{ plugin: 'guard', hook: 'answer', action: 'answered' }]],
    ['refuse', 400, [{ plugin: 'guard', hook: 'admit', action: 'refused' }]],
    ['bug', 500, [{ plugin: 'guard', hook: 'admit', action: 'failed' }]],
  ];
  for (const [user, status, hooks] of ACTED)
    it(`E44: ${hooks?.[0]?.action ?? 'nothing'} is in the record of the call, with and without a stream`, async () => {
      for (const stream of [false, true]) {
        const response = await send(gateway, user, { stream });
        await response.text();
        expect(response.status).to.equal(status);
        expect(await hooksOf(gateway, response)).to.deep.equal(hooks);
      }
    });

  it('E44: a transform is in the record of a stream if it changed the content, not if it only delayed it', async () => {
    const sides = ['response'];
    const guarded = await startGateway({
      policies: {
        masks: { plugin: 'words', words: ['two three'], action: 'mask', sides },
        holds: { plugin: 'words', words: ['four six', 'five six'], action: 'mask', sides },
      },
    });
    try {
      const response = await guarded.post(CHAT, chatOf(WORDS, { stream: true, n: 2 }));
      expect(await response.text()).to.include('***');
      expect(await hooksOf(guarded, response)).to.deep.equal([{ plugin: 'masks', hook: 'stream', action: 'changed' }]);
    } finally {
      await guarded.stop();
    }
  });

  it('E52: calls, failures and seconds of each hook are metrics by plugin and hook', async () => {
    const before = await metricOf(gateway, 'failures_total', 'admit');
    await (await send(gateway, 'bug')).text();
    await (await send(gateway, 'refuse')).text();
    await (await send(gateway, 'slow')).text();
    expect(await metricOf(gateway, 'failures_total', 'admit')).to.equal(before + 1);
    expect(await metricOf(gateway, 'calls_total', 'admit')).to.be.at.least(3);
    expect(await metricOf(gateway, 'seconds_count', 'admit')).to.equal(1);
    expect(await metricOf(gateway, 'seconds_sum', 'admit')).to.be.at.least(0.004);
    expect(await metricOf(gateway, 'calls_total', 'finish')).to.be.at.least(1);
  });

  it('E52: operators see each hook’s actions in all processes, in the list of plugins', async () => {
    const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
    await (await send(gateway, 'bug')).text();
    const list = await gateway.get('/api/core/admin/plugins', { authorization: `Bearer ${key}` });
    const { data } = (await list.json()) as {
      data: readonly { name: string; hook_counts: readonly { hook: string; calls: number; failures: number }[] }[];
    };
    const counts = data.find(({ name }) => name === 'guard')?.hook_counts ?? [];
    const admit = counts.find(({ hook }) => hook === 'admit');
    expect(admit?.failures).to.equal(await metricOf(gateway, 'failures_total', 'admit'));
    expect(admit?.calls).to.be.at.least(admit?.failures ?? Infinity);
  });

  it('E52: the error line of a call that failed by a plugin names plugin and hook, and so does its line in the access log', async () => {
    const response = await send(gateway, 'bug');
    await response.text();
    const request_id = response.headers.get('x-request-id');
    const line = gateway.logs.find((each) => each['msg'] === 'internal error' && each['request_id'] === request_id);
    expect(line).to.include({ plugin: 'guard', hook: 'admit' });
    await eventually(async () => {
      const access = gateway.logs.find((each) => each['msg'] === 'request' && each['request_id'] === request_id);
      expect(access).to.include({ hooks: 'guard admit failed' });
    });
  });

  it('E52: /readyz names a plugin that failed ten calls in a row, and stays ready, because one caller may trigger its bug', async () => {
    const checks = async () => {
      const response = await fetch(`${gateway.url}/readyz`);
      expect(response.status).to.equal(200);
      return ((await response.json()) as { readonly checks: Readonly<Record<string, string>> }).checks;
    };
    await (await send(gateway, 'none')).text();
    expect(await checks()).not.to.have.property('plugins');
    for (let at = 0; at < 10; at++) await (await send(gateway, 'bug')).text();
    expect((await checks())['plugins']).to.equal('guard: its hook "admit" failed its last 10 calls');
    await (await send(gateway, 'none')).text();
    expect(await checks()).not.to.have.property('plugins');
  });
});
