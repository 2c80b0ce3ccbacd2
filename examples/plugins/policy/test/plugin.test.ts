import * as runner from 'node:test';
import { testPolicy } from 'tollgate/conformance';
import plugin from '../src/index.ts';

testPolicy({ plugin, config: { calls: 1_000_000 }, lets: ['A quiet day.'], runner });
