import * as runner from 'node:test';
import { testSpeech } from 'tollgate/conformance';
import plugin from '../src/index.ts';
import { silence } from './vendor.ts';

testSpeech({
  plugin,
  config: { apiKey: 'any' },
  samples: [{ format: 'wav', headers: { 'content-type': 'audio/wav' }, body: silence() }],
  errors: [
    { status: 401, body: {}, class: 'authentication' },
    { status: 429, body: {}, class: 'rate_limit' },
  ],
  runner,
});
