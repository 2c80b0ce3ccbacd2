import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { routeText } from '../support/plugins/plugin-file.ts';
import { eventually } from '../support/wait.ts';
import { startFailingProcess } from './failing-process.ts';

const TIMER = `setTimeout(() => { throw new Error('stray'); }, 100);`;
const REJECTION = `setTimeout(() => { void Promise.reject(new Error('stray')); }, 100);`;

/** Uncaught errors; `call` is the path that triggers one. */
const STRAYS: readonly (readonly [title: string, setup: string, call?: string])[] = [
  ['a timer of setup', TIMER],
  ['an uncaught rejection', REJECTION],
  [
    'an interval begun after set-up, in onReady',
    `api.onReady(() => { const timer = setInterval(() => { clearInterval(timer); throw new Error('stray'); }, 100); });`,
  ],
  [
    'an emitter without a listener for its error',
    `const { EventEmitter } = await import('node:events'); setTimeout(() => new EventEmitter().emit('error', new Error('stray')), 100);`,
  ],
  ['something begun in a hook', `api.hook('admit', () => { ${TIMER} });`, 'chat'],
  ['something begun in a route', routeText('/call', `${REJECTION} ctx.body = {};`), '/call'],
  [
    'something begun in middleware',
    `api.use(async (ctx, next) => { if (ctx.path === '/call') { ${TIMER} } await next(); });`,
    '/call',
  ],
  [
    'a listener on a request',
    routeText('/call', `ctx.res.on('close', () => { throw new Error('stray'); }); ctx.body = {};`),
    '/call',
  ],
  ['a null that is rejected', routeText('/call', `void Promise.reject(null); ctx.body = {};`), '/call'],
];

describe('uncaught errors of a plugin (D52)', () => {
  const folder = useTempFolder('strays');

  for (const [title, setup, call] of STRAYS)
    it(`${title} is logged with the plugin's name, and the gateway continues`, async () => {
      const { url, running, logs } = await startFailingProcess(folder, setup);
      const key = /tg_\S+/.exec(running.stderr())?.[0] ?? '';
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const chat = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'still here' }] });
      if (call === 'chat')
        await (await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: chat })).text();
      else if (call) await (await fetch(url + call, { method: 'POST' })).text();
      await eventually(async () => {
        const [line] = logs().filter(({ msg }) => String(msg).startsWith('a plugin failed outside of any call'));
        expect(line).to.include({ level: 'error', plugin: 'failing' });
      });
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: chat });
      expect(response.status).to.equal(200);
      expect(await response.text()).to.include('still here');
      running.child.kill('SIGTERM');
      expect((await running.finished).code).to.equal(0);
    });

  it('a timer that throws while others are still set up does not stop the start', async () => {
    const { running, logs } = await startFailingProcess(
      folder,
      `setTimeout(() => { throw new Error('early'); }, 1); await new Promise((resolve) => setTimeout(resolve, 200));`,
    );
    expect(logs().find(({ plugin }) => plugin === 'failing')).to.nested.include({ 'err.message': 'early' });
    running.child.kill('SIGTERM');
    expect((await running.finished).code).to.equal(0);
  });

  for (const [title, setup] of [
    ['a timer', 'setInterval(() => {}, 1000);'],
    ['a server of its own', `const net = await import('node:net'); net.createServer().listen(0, '127.0.0.1');`],
  ] as const)
    it(`${title} that a plugin still holds does not keep the process`, async () => {
      const { running } = await startFailingProcess(folder, setup);
      running.child.kill('SIGTERM');
      expect((await running.finished).code).to.equal(0);
    });
});
