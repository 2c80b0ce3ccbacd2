import * as runner from 'node:test';
import { testSecrets } from 'tollgate/conformance';
import plugin from '../src/index.ts';
import { respond, SECRETS, TOKEN } from './safe.ts';

testSecrets({
  plugin,
  config: { url: 'https://safe.example', token: TOKEN },
  respond: ({ url, headers }) => respond(new URL(url).pathname, headers['authorization']),
  right: [...SECRETS].map(([name, text]) => ({ name, text })),
  missing: ['none'],
  secrets: [TOKEN],
  runner,
});
