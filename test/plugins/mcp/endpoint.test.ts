import { expect } from 'chai';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { generatedCases } from '../../support/generated-cases.ts';
import { call, connectClient, createServers, namesFor, send, startMcp, textOf } from './mcp-rig.ts';

const LONG = 'a'.repeat(90);

describe('the MCP endpoint', () => {
  let gateway: TestGateway;
  let servers: Awaited<ReturnType<typeof createServers>>;
  before(async () => {
    servers = await createServers();
    const s = await servers.serve(['echo', 'fail', 'data', LONG, 'dotted.name', { ...named('bad name') }]);
    const other = await servers.serve(['echo'], { tools: { deny: ['none*'] } });
    const limited = await servers.serve(['echo', 'fail', 'data'], {
      tools: { allow: ['e*', 'fail'], deny: ['fail'] },
    });
    gateway = await startMcp({ s: s.options, other: other.options, limited: limited.options });
  });
  after(async () => {
    await gateway?.stop();
    await servers?.remove();
  });

  for (const mode of ['auto', 'legacy'] as const)
    it(`serves a client of the SDK that negotiates by "${mode}"`, async () => {
      const client = await connectClient(gateway, mode);
      expect(client.getNegotiatedProtocolVersion()).to.equal(mode === 'auto' ? '2026-07-28' : '2025-11-25');
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).to.include.members(['s__echo', 'other__echo']);
      const result = await client.callTool({ name: 's__echo', arguments: { a: [1, 'ü'] } });
      expect(result.content).to.deep.equal([{ type: 'text', text: '{"a":[1,"ü"]}' }]);
      const data = await client.callTool({ name: 's__data', arguments: { a: 1 } });
      expect(data.structuredContent).to.deep.equal({ a: 1 });
      const failed = await client.callTool({ name: 's__fail' });
      expect(failed.isError).to.equal(true);
      if (mode === 'legacy') await client.ping();
      await client.close();
    });

  it('offers tools of all servers with joined names of at most 64 characters, in a fixed order', async () => {
    const names = await namesFor(gateway);
    expect(names).to.have.members([
      's__echo',
      's__fail',
      's__data',
      `s__${'a'.repeat(52)}_${hashPart(names, 's__aaa')}`,
      `s__dotted_name_${hashPart(names, 's__dotted')}`,
      'other__echo',
      'limited__echo',
    ]);
    expect(names.every((name) => /^[\w-]{1,64}$/.test(name))).to.equal(true);
    expect(await namesFor(gateway)).to.deep.equal(names);
  });

  it('calls a tool by its shortened name', async () => {
    const name = (await namesFor(gateway)).find((each) => each.startsWith('s__dotted')) ?? '';
    const reply = await send(gateway, 'tools/call', { name, arguments: {} });
    expect(reply.error?.message, 'the scripted server has no such tool').to.include('no tool dotted.name');
  });

  it('offers one server under its own names at its own path', async () => {
    expect(await namesFor(gateway, undefined, '/mcp/other')).to.deep.equal(['echo']);
    const reply = await send(gateway, 'tools/call', { name: 'echo', arguments: { b: 1 } }, { at: '/mcp/other' });
    expect(textOf(reply)).to.equal('{"b":1}');
    expect((await send(gateway, 'tools/list', {}, { at: '/mcp/none' })).status).to.equal(404);
  });

  it('describes itself and gives lists a time to live for one caller', async () => {
    const { result } = await send(gateway, 'server/discover');
    expect(result).to.include({ resultType: 'complete', cacheScope: 'private' });
    expect(result?.['supportedVersions']).to.include('2026-07-28');
    expect(result?.['ttlMs']).to.be.a('number').greaterThan(0);
    const list = await send(gateway, 'tools/list');
    expect(list.result).to.include({ resultType: 'complete', cacheScope: 'private', ttlMs: 30_000 });
  });

  it('returns 405 to GET and DELETE, and 202 to a notification', async () => {
    const headers = { authorization: `Bearer ${gateway.key}` };
    for (const method of ['GET', 'DELETE'])
      expect((await fetch(`${gateway.url}/mcp`, { method, headers })).status, method).to.equal(405);
    const sent = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const accept = 'application/json, text/event-stream';
    expect((await gateway.post('/mcp', sent, { accept })).status).to.equal(202);
  });

  const MISMATCHES: readonly { readonly title: string; readonly headers: Record<string, string> }[] = [
    { title: 'another method', headers: { 'mcp-method': 'tools/list' } },
    { title: 'another name', headers: { 'mcp-name': 's__fail' } },
    { title: 'no name', headers: { 'mcp-name': '' } },
    { title: 'a name that is not valid base64', headers: { 'mcp-name': '=?base64?!!?=' } },
    { title: 'another version', headers: { 'mcp-protocol-version': '2025-11-25' } },
  ];
  for (const { title, headers } of MISMATCHES)
    it(`rejects headers that do not match the body: ${title}`, async () => {
      const reply = await send(gateway, 'tools/call', { name: 's__echo', arguments: {} }, { headers });
      expect(reply.status).to.equal(400);
      expect(reply.error?.code).to.equal(-32_020);
    });

  it('accepts a name in base64', async () => {
    const headers = { 'mcp-name': `=?base64?${Buffer.from('s__echo').toString('base64')}?=` };
    const reply = await send(gateway, 'tools/call', { name: 's__echo', arguments: {} }, { headers });
    expect(textOf(reply)).to.equal('{}');
  });

  it('names its versions to a client of another one', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2030-01-01',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } };
    const response = await gateway.post('/mcp', body, {
      'mcp-protocol-version': '2030-01-01',
      'mcp-method': 'tools/list',
      accept: 'application/json, text/event-stream',
    });
    expect(response.status).to.equal(400);
    const { error } = (await response.json()) as { error: { code: number; data: { supported: readonly string[] } } };
    expect(error.code).to.equal(-32_022);
    expect(error.data.supported).to.include('2026-07-28');
  });

  for (const name of [
    's__none',
    'none__echo',
    'echo',
    '__proto__',
    'constructor',
    's__constructor',
    'limited__fail',
    'limited__data',
    `s__${LONG}`,
    '../echo',
  ])
    it(`does not know the forged name "${name.slice(0, 20)}"`, async () => {
      const reply = await send(gateway, 'tools/call', { name, arguments: {} });
      expect(reply.error?.code).to.equal(-32_602);
      expect(reply.error?.message).to.match(/^Unknown tool/);
    });

  it('rejects unknown methods, batches, cursors that it did not give, and bodies that are not messages', async () => {
    expect((await send(gateway, 'tools/destroy')).error?.code).to.equal(-32_601);
    expect((await send(gateway, 'subscriptions/listen', { notifications: {} })).error?.code).to.equal(-32_601);
    expect((await send(gateway, 'tools/list', { cursor: '-1' })).error?.code).to.equal(-32_602);
    for (const body of [
      [],
      [{ jsonrpc: '2.0', id: 1, method: 'ping' }],
      {},
      { jsonrpc: '1.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', id: {}, method: 'ping' },
    ])
      expect((await gateway.post('/mcp', body)).status, JSON.stringify(body)).to.equal(400);
  });

  it('needs a key', async () => {
    expect((await send(gateway, 'tools/list', {}, { key: 'tg_none' })).status).to.equal(401);
  });

  it('rejects pages of other origins, and names that only lead to this machine', async () => {
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, { host: 'evil.example' }] as Record<
      string,
      string
    >[])
      expect((await sendRaw(gateway, headers)).status, JSON.stringify(headers)).to.equal(403);
    for (const host of ['localhost:8787', '127.0.0.1', '[::1]:1'])
      expect((await sendRaw(gateway, { host })).status, host).to.equal(200);
  });

  it('returns what the tool of the caller alone returned, for many calls at once', async () => {
    const length = generatedCases(200);
    const replies = await Promise.all(Array.from({ length }, (_, at) => call(gateway, 'echo', { at })));
    expect(replies.map(textOf)).to.deep.equal(Array.from({ length }, (_, at) => JSON.stringify({ at })));
  });
});

function named(name: string): object {
  return { name, inputSchema: { type: 'object' } };
}

/** Hash at the end of the name that begins so. */
function hashPart(names: readonly string[], start: string): string {
  const hash =
    names
      .find((name) => name.startsWith(start))
      ?.split('_')
      .at(-1) ?? '';
  expect(hash).to.match(/^[0-9a-f]{8}$/);
  return hash;
}

/** `fetch` sets no header `host`. */
async function sendRaw(gateway: TestGateway, headers: Record<string, string>): Promise<{ readonly status: number }> {
  const { request } = await import('node:http');
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  return await new Promise((resolve, reject) => {
    const sent = request(
      `${gateway.url}/mcp`,
      {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
      },
      (response) => {
        response.resume();
        resolve({ status: response.statusCode ?? 0 });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
