import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as runner from 'node:test';
import { testStore } from 'tollgate/conformance';
import { open } from '../src/index.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'my-plugin-'));
runner.after(() => rmSync(folder, { recursive: true, force: true }));

testStore({ name: 'my-plugin', open: () => open(folder), runner });
