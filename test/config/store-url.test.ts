import path from 'node:path';
import { expect } from 'chai';
import { readStoreUrl } from '../../config/store-url.ts';
import { removeFolders } from '../support/folders.ts';
import { checkText, PLUGINS } from './config-plugins.ts';

describe('the store value of a configuration', () => {
  afterEach(removeFolders);

  const stores = PLUGINS.schemas.filter(({ kind }) => kind === 'store');
  const cases: readonly (readonly [unknown, string, Record<string, unknown>])[] = [
    ['memory:', 'memory', {}],
    ['sqlite:./data', 'sqlite', { folder: './data' }],
    ['sqlite:data/sub', 'sqlite', { folder: 'data/sub' }],
    ['sqlite:../data', 'sqlite', { folder: '../data' }],
    ['sqlite:/var/lib/tollgate', 'sqlite', { folder: '/var/lib/tollgate' }],
    ['sqlite:///var/lib/tollgate', 'sqlite', { folder: '/var/lib/tollgate' }],
    ['sqlite:', 'sqlite', {}],
    [' SQLite:./data ', 'sqlite', { folder: './data' }],
    ['redis://h:6379/1', 'redis', { url: 'redis://h:6379/1' }],
    ['rediss://u:p@h', 'redis', { url: 'rediss://u:p@h' }],
    ['postgres://u:p@h/db', 'postgres', { url: 'postgres://u:p@h/db' }],
    ['postgresql://h/db', 'postgres', { url: 'postgresql://h/db' }],
    [{ url: 'sqlite:./data', durability: 'full' }, 'sqlite', { folder: './data', durability: 'full' }],
    [{ url: 'redis://h', cluster: true }, 'redis', { url: 'redis://h', cluster: true }],
    [{ adapter: '@keyv/mongo', options: { url: 'x' } }, 'keyv', { adapter: '@keyv/mongo', options: { url: 'x' } }],
    [{ adapter: './mine.mjs' }, 'keyv', { adapter: './mine.mjs' }],
    [{ plugin: 'tollgate-plugin-x', url: 'x:1', a: 1 }, 'tollgate-plugin-x', { url: 'x:1', a: 1 }],
    [{ plugin: 'tollgate-plugin-x' }, 'tollgate-plugin-x', {}],
  ];
  for (const [value, plugin, config] of cases) {
    it(`${JSON.stringify(value)} opens ${plugin} with ${JSON.stringify(config)}`, () => {
      expect(readStoreUrl(value, stores)).to.deep.equal({ plugin, config });
    });
  }

  it('has an absolute path, under the folder of the configuration, also the default one', async () => {
    for (const [store, folder] of [
      ['sqlite:./keys', 'keys'],
      ['sqlite:../keys', '../keys'],
      ['sqlite:', 'data'],
      ['sqlite:///var/lib/tollgate', '/var/lib/tollgate'],
    ] as const) {
      const config = await checkText(`store: '${store}'\n`);
      expect(config.store.config).to.deep.equal({ folder: path.resolve(config.baseDir, folder) });
    }
  });

  for (const value of [
    undefined,
    null,
    1,
    [],
    {},
    '',
    'data',
    'mysql://h:s3cret@x',
    'redis',
    'redis:// s3cret',
    { url: 's3cret' },
  ]) {
    it(`${JSON.stringify(value)} is refused with the forms and without the value`, () => {
      expect(() => readStoreUrl(value, stores))
        .to.throw(TypeError, /memory:, sqlite:\.\/data/)
        .with.property('message')
        .that.does.not.include('s3cret');
    });
  }
});
