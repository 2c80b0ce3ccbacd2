import * as runner from 'node:test';
import { testAuth } from 'tollgate/conformance';
import plugin from '../src/index.ts';

const tokens = { ann: 'my-plugin-0123456789abcdef', bea: 'my-plugin-fedcba9876543210' };

testAuth({
  plugin,
  config: { tokens },
  right: Object.entries(tokens).map(([userId, credential]) => ({ credential, principal: { userId } })),
  runner,
});
