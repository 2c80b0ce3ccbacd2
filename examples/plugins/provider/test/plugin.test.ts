import * as runner from 'node:test';
import { testProvider } from 'tollgate/conformance';
import plugin from '../src/index.ts';

testProvider({ plugin, fixtures: new URL('../../test/fixtures/', import.meta.url), runner });
