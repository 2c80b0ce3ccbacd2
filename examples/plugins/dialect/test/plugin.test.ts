import * as runner from 'node:test';
import { testDialect } from 'tollgate/conformance';
import plugin from '../src/index.ts';

testDialect({ plugin, fixtures: new URL('../../test/fixtures/', import.meta.url), runner });
