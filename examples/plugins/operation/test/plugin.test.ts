import * as runner from 'node:test';
import { testOperation } from 'tollgate/conformance';
import { codec } from '../src/counter.ts';
import plugin from '../src/index.ts';

testOperation({
  plugin,
  offer: { codec },
  samples: [
    {
      request: { model: 'words', text: 'two words' },
      vendor: { words: 2 },
      response: { words: 2 },
      units: { characters: 9 },
    },
  ],
  runner,
});
