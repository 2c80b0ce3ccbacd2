import { expect } from 'chai';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';
import { until } from '../../support/wait.ts';
import { call, createServers, namesFor, send, startMcp, textOf } from './mcp-rig.ts';

describe('an MCP server that misbehaves', () => {
  let servers: Awaited<ReturnType<typeof createServers>>;
  let gateway: TestGateway | undefined;
  beforeEach(async () => {
    servers = await createServers();
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    await servers.remove();
  });

  const start = async (tools: readonly (string | object)[], options: object = {}, words: readonly string[] = []) => {
    const s = await servers.make(tools, words, options);
    const well = await servers.make(['echo']);
    gateway = await startMcp({ s: s.options, well: well.options });
    return { gateway, ...s };
  };

  it('is bounded in the size of a result', async () => {
    const { gateway } = await start(['large', 'echo'], { maxResult: '100kb' });
    expect((await call(gateway, 'large', { bytes: 90_000 })).error).to.equal(undefined);
    const { error } = await call(gateway, 'large', { bytes: 110_000 });
    expect(error?.message).to.include('more than 102400 bytes');
    expect(textOf(await call(gateway, 'echo')), 'it works on').to.equal('{}');
  });

  for (const tool of ['content-as-text', 'block-without-text', 'unknown-block', 'error-as-text'])
    it(`is named when its result is invalid (${tool}), and stays in use`, async () => {
      const { gateway } = await start([tool, 'echo']);
      const { error } = await call(gateway, tool);
      expect(error?.data).to.include({ code: 'provider_invalid_response' });
      expect(error?.message).to.equal('The MCP server "s" returned an invalid result.');
      expect(textOf(await call(gateway, 'echo'))).to.equal('{}');
    });

  it('is bounded in time when its response is no object', async () => {
    const { gateway } = await start(['no-object'], { timeout: '200ms' });
    expect((await call(gateway, 'no-object')).error?.data).to.include({ code: 'provider_timeout' });
  });

  it('may return another structure than its schema says, as its tools are not trusted to describe it', async () => {
    const outputSchema = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] };
    const { gateway } = await start([{ name: 'other-structure', inputSchema: { type: 'object' }, outputSchema }]);
    const { result } = await call(gateway, 'other-structure');
    expect(result?.structuredContent).to.deep.equal({ count: 'many' });
  });

  for (const word of ['silent', 'silent-list'])
    it(`that hangs when it starts (${word}) is refused after its time, in a chat too`, async () => {
      const { gateway } = await start(['echo'], { startTimeout: '300ms' }, [word]);
      expect((await call(gateway, 'echo')).error?.data).to.include({ code: 'provider_unavailable' });
      expect(await namesFor(gateway)).to.deep.equal(['well__echo']);
      const tools = [{ type: 'mcp', server: 's' }];
      const messages = [{ role: 'user', content: 'Hi' }];
      const response = await gateway.post('/v1/chat/completions', { model: 'echo/echo', messages, tools });
      expect([response.status, await response.text()].join(' ')).to.match(/^503 .*MCP server \\"s\\" is not available/);
    });

  it('whose result has 100 MB is ended, a chat goes on without it, and calls of others are not affected', async () => {
    const s = await servers.make(['large', 'echo']);
    const well = await servers.make(['echo']);
    const rig = await startIngressRig({
      plans: { all: { serverTools: ['mcp:*'] } },
      defaultPlan: 'all',
      mcp: { servers: { s: s.options, well: well.options } },
    });
    try {
      const large = JSON.stringify({ bytes: 100 * 1024 * 1024 });
      const usage = { prompt: 1, completion: 1 };
      rig.say('openai', [
        { pieces: [{ call: 's__large', id: 'c1', arguments: large }], usage },
        { pieces: [{ text: 'It is too large.' }], usage },
      ]);
      const tools = [{ type: 'mcp', server: 's' }];
      const messages = [{ role: 'user', content: 'Hi' }];
      const sent = rig.gateway.post('/v1/chat/completions', { model: MODEL_OF.openai, messages, tools });
      const others = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          send(rig.gateway, 'tools/call', { name: 'well__echo', arguments: { at } }),
        ),
      );
      expect(others.map(textOf)).to.deep.equal(Array.from({ length: 20 }, (_, at) => JSON.stringify({ at })));
      const { choices } = (await (await sent).json()) as {
        choices: [{ message: { content: string; mcp_calls: [{ output: string; is_error: boolean }] } }];
      };
      const [{ message }] = choices;
      expect(message.content).to.equal('It is too large.');
      expect(message.mcp_calls[0]).to.include({ is_error: true });
      expect(message.mcp_calls[0].output).to.include('did not return a result');
      expect(rig.gateway.logText()).to.include('it sent a message of more than');
      await until('it works again', async () => textOf(await call(rig.gateway, 'echo')) === '{}');
    } finally {
      await rig.stop();
    }
  });

  for (const tool of ['endless-line', 'flood'])
    it(`is ended when it sends without end (${tool}), and started again`, async () => {
      const { gateway } = await start([tool, 'echo']);
      const { error } = await call(gateway, tool);
      expect(error?.data).to.include({ code: 'provider_unavailable' });
      await until('it works again', async () => textOf(await call(gateway, 'echo')) === '{}');
      expect(gateway.logText()).to.match(/it sent (?:a message of more than|too many messages)/);
    });

  if (process.platform === 'linux')
    it('is ended when it takes more than its memory, and started again', async () => {
      const { gateway } = await start(['memory', 'echo'], { maxMemory: '200mb' });
      const { error } = await call(gateway, 'memory');
      expect(error?.data).to.include({ code: 'provider_unavailable' });
      expect(gateway.logText()).to.include('it used more than 209715200 bytes of memory');
      await until('it works again', async () => textOf(await call(gateway, 'echo')) === '{}');
    });

  it('is bounded in time, and stays in use', async () => {
    const { gateway } = await start(['hang', 'echo'], { timeout: '200ms' });
    const { error } = await call(gateway, 'hang');
    expect(error?.data).to.include({ code: 'provider_timeout' });
    expect(textOf(await call(gateway, 'echo'))).to.equal('{}');
  });

  it('that ends is reported, refused for a moment and started again', async () => {
    const { gateway } = await start(['exit', 'echo']);
    expect((await call(gateway, 'exit')).error?.data).to.include({ code: 'provider_unavailable' });
    const down = await call(gateway, 'echo');
    expect(down.error?.message).to.include('The MCP server "s" is not available');
    const ready = (await (await gateway.get('/readyz')).json()) as { status: string; checks: { plugins?: string } };
    expect(ready.checks.plugins).to.equal('mcp: "s" is failed');
    expect(ready.status, 'one server does not take the gateway away').to.equal('ready');
    expect(await namesFor(gateway), 'other servers are offered').to.deep.equal(['well__echo']);
    await until('it works again', async () => textOf(await call(gateway, 'echo')) === '{}');
    expect(gateway.logText()).to.include('it ended with exit code 3');
  });

  it('that does not start is reported with the last line of its errors, to operators alone', async () => {
    const { gateway } = await start(['echo'], {}, ['ends-at-start']);
    expect(await namesFor(gateway)).to.deep.equal(['well__echo']);
    expect(gateway.logText()).to.include('no token is set');
    const text = await (await gateway.get('/readyz')).text();
    expect(text).to.include('\\"s\\" is failed').and.not.include('no token');
  });

  it('that is missing is reported', async () => {
    const { gateway } = await start(['echo'], { command: '/none/program', args: [] });
    expect(await namesFor(gateway)).to.deep.equal(['well__echo']);
    expect(gateway.logText()).to.match(/not found|ENOENT/);
  });

  const LISTS: readonly {
    readonly title: string;
    readonly tools: readonly object[];
    readonly offered: readonly string[];
  }[] = [
    { title: 'schemas that are none', tools: [{ name: 'echo', inputSchema: 'text' }], offered: [] },
    { title: 'a tool without a name', tools: [{ inputSchema: { type: 'object' } }], offered: [] },
    {
      title: 'names that are not valid, or twice the same',
      tools: ['echo', 'echo', 'a b', '__proto__', '', 'x'.repeat(129)].map((name) => ({
        name,
        inputSchema: { type: 'object' },
      })),
      offered: ['s__echo'],
    },
    {
      title: 'a definition that is too large',
      tools: [
        { name: 'echo', description: 'x'.repeat(70_000), inputSchema: { type: 'object' } },
        { name: 'fail', inputSchema: { type: 'object' } },
      ],
      offered: ['s__fail'],
    },
    {
      title: 'too many tools',
      tools: Array.from({ length: 600 }, (_, at) => ({ name: `t${at}`, inputSchema: { type: 'object' } })),
      offered: Array.from({ length: 200 }, (_, at) => `s__t${at}`),
    },
  ];
  for (const { title, tools, offered } of LISTS)
    it(`that lists ${title} is offered without them`, async () => {
      const { gateway } = await start(tools);
      const names = await namesFor(gateway);
      expect(names.filter((name) => name.startsWith('s__'))).to.deep.equal(offered);
    });

  it('whose list has no end is not offered', async () => {
    const { gateway } = await start(['echo'], {}, ['endless-list']);
    expect(await namesFor(gateway)).to.deep.equal(['well__echo']);
  });

  it('that asks the gateway for a model gets an error, and its call goes on', async () => {
    const { gateway } = await start(['question']);
    expect(textOf(await call(gateway, 'question'))).to.match(/not found|not support/i);
  });

  it('gets no other environment than its own and that of every program', async () => {
    const { gateway } = await start(['environment'], { env: { OWN_TOKEN: 'abc' } });
    const environment = JSON.parse(textOf(await call(gateway, 'environment'))) as object;
    const allowed = ['HOME', 'LOGNAME', 'OWN_TOKEN', 'PATH', 'PWD', 'SHELL', 'SHLVL', 'TERM', 'USER', '_', 'OLDPWD'];
    expect(Object.keys(environment).filter((name) => !allowed.includes(name))).to.deep.equal([]);
    expect(environment).to.include({ OWN_TOKEN: 'abc' });
  });

  it('that ignores its end is ended with the processes that it started', async () => {
    const { gateway: running } = await start(['family'], {}, ['ignores-end']);
    const child = Number(textOf(await call(running, 'family')));
    expect(isAlive(child)).to.equal(true);
    await running.stop();
    gateway = undefined;
    await until('its child has ended', () => !isAlive(child));
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
