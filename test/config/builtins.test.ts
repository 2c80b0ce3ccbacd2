import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { listBuiltins } from '../../config/import-plugin.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

describe('the built-in plugins', () => {
  afterEach(removeFolders);

  it('are the modules and folders with an index of each kind’s folder', () => {
    const root = pathToFileURL(
      `${makeFolder({
        'providers/acme.ts': '',
        'providers/acme.d.ts': '',
        'providers/acme.js.map': '',
        'providers/native/index.js': '',
        'providers/native/codec.js': '',
        'providers/kit/index.ts': '',
        'providers/README.md': '',
        'tts/acme.js': '',
        'policies/gate.ts': '',
        'guardrails/words.ts': '',
        'guardrails/kit/index.ts': '',
      })}/`,
    );
    expect(listBuiltins(root).map(({ kind, name, url }) => [kind, name, url.slice(root.href.length)])).to.deep.equal([
      ['provider', 'acme', 'providers/acme.ts'],
      ['provider', 'native', 'providers/native/index.js'],
      ['tts', 'acme', 'tts/acme.js'],
      ['policy', 'gate', 'policies/gate.ts'],
      ['policy', 'words', 'guardrails/words.ts'],
    ]);
  });

  it('include the access log', () => {
    expect(listBuiltins().map(({ kind, name }) => `${kind} ${name}`)).to.include('policy access-log');
  });
});
