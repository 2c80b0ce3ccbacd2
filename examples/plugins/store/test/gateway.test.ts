import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { it } from 'node:test';
import plugin from '../src/index.ts';
import { openGateway } from './gateway.ts';

it('keeps the documents of a gateway', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'my-plugin-'));
  const store = { plugin: 'my-plugin', folder };
  const { gateway, post } = await openGateway({ store, providers: { echo: {} } }, [plugin]);
  const call = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hello' }] };
  assert.equal((await post('/v1/chat/completions', call)).status, 200);
  assert.ok(readdirSync(folder).length > 0, 'the key is a document');
  await gateway.close();
  rmSync(folder, { recursive: true });
});
