import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect } from 'chai';
import { useTempFolder } from '../../support/folders.ts';
import type { TestGateway } from '../../support/gateways/gateway.ts';
import { freePort } from '../../support/processes/server-process.ts';
import { until } from '../../support/wait.ts';
import { connectClient, namesFor, send, startMcp, textOf } from './mcp-rig.ts';

const require = createRequire(import.meta.url);

/** Program of a published server. */
function programOf(name: string): string {
  return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'dist/index.js');
}

const EVERYTHING = programOf('@modelcontextprotocol/server-everything');

describe('published MCP servers', () => {
  const folder = useTempFolder('mcp-files');
  let gateway: TestGateway;
  let remote: ChildProcess;
  let port: number;

  const startRemote = async (): Promise<void> => {
    remote = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
      env: { ...process.env, PORT: String(port) },
      stdio: 'ignore',
    });
    await until('it listens', () =>
      fetch(`http://127.0.0.1:${port}/mcp`).then(
        () => true,
        () => false,
      ),
    );
  };

  before(async function () {
    this.timeout(120_000);
    mkdirSync(path.join(folder, 'shared'));
    writeFileSync(path.join(folder, 'shared/hello.txt'), 'Hello from a file.');
    writeFileSync(path.join(folder, 'private.txt'), 'private');
    port = await freePort();
    await startRemote();
    gateway = await startMcp({
      everything: { command: process.execPath, args: [EVERYTHING] },
      remote: { url: `http://127.0.0.1:${port}/mcp` },
      files: {
        command: process.execPath,
        args: [programOf('@modelcontextprotocol/server-filesystem'), './shared'],
        cwd: folder,
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    remote?.kill('SIGKILL');
  });

  it('are offered together: by stdio and HTTP, of the former protocol, to clients of both', async () => {
    const names = await namesFor(gateway);
    expect(names).to.include.members(['everything__echo', 'remote__echo', 'files__read_text_file']);
    for (const mode of ['auto', 'legacy'] as const) {
      const client = await connectClient(gateway, mode);
      for (const server of ['everything', 'remote']) {
        const { content } = await client.callTool({ name: `${server}__get-sum`, arguments: { a: 2, b: 3 } });
        expect(JSON.stringify(content)).to.include('5');
      }
      const image = await client.callTool({ name: 'everything__get-tiny-image', arguments: {} });
      expect(image.content.map(({ type }) => type)).to.include('image');
      await client.close();
    }
  });

  it('are offered to a client of the former SDK', async () => {
    const client = new FormerClient({ name: 'former', version: '1' });
    const headers = { authorization: `Bearer ${gateway.key}` };
    const transport = new FormerTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } });
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    expect((await client.listTools()).tools.length).to.be.greaterThan(20);
    const result = await client.callTool({ name: 'everything__echo', arguments: { message: 'hi' } });
    expect(JSON.stringify(result.content)).to.include('Echo: hi');
    await client.close();
  });

  it('read files of their own folder alone', async () => {
    const read = (file: string) =>
      send(gateway, 'tools/call', { name: 'files__read_text_file', arguments: { path: file } });
    const reply = await read(path.join(folder, 'shared/hello.txt'));
    expect(textOf(reply), JSON.stringify(reply)).to.equal('Hello from a file.');
    const outside = await read(path.join(folder, 'private.txt'));
    expect(outside.result?.isError).to.equal(true);
    expect(JSON.stringify(outside)).to.not.include('"private"');
  });

  it('that forget their sessions get another one, and the call is done once', async function () {
    this.timeout(120_000);
    const sum = () => send(gateway, 'tools/call', { name: 'remote__get-sum', arguments: { a: 1, b: 1 } });
    expect(textOf(await sum())).to.include('2');
    const ended = new Promise((resolve) => remote.once('exit', resolve));
    remote.kill('SIGKILL');
    await ended;
    expect((await sum()).error?.data).to.include({ code: 'provider_unavailable' });
    await startRemote();
    await until('it works again', async () => textOf(await sum()).includes('2'));
  });
});
