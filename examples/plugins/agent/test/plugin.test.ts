import * as runner from 'node:test';
import { testAgent, testPlugin } from 'tollgate/conformance';
import plugin, { agent } from '../src/index.ts';

testAgent({ agent, runner });
testPlugin({ plugin, runner });
