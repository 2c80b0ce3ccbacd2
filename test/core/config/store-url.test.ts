import { expect } from 'chai';
import { readStoreUrl } from '../../../core/config/store-url.ts';

describe('the store value of a configuration', () => {
  const cases: readonly (readonly [unknown, string, Record<string, unknown>])[] = [
    ['memory:', 'memory', {}],
    ['sqlite:./data', 'sqlite', { folder: '/etc/tollgate/data' }],
    ['sqlite:data/sub', 'sqlite', { folder: '/etc/tollgate/data/sub' }],
    ['sqlite:../data', 'sqlite', { folder: '/etc/data' }],
    ['sqlite:/var/lib/tollgate', 'sqlite', { folder: '/var/lib/tollgate' }],
    ['sqlite:///var/lib/tollgate', 'sqlite', { folder: '/var/lib/tollgate' }],
    ['sqlite:', 'sqlite', { folder: '/etc/tollgate/data' }],
    [' SQLite:./data ', 'sqlite', { folder: '/etc/tollgate/data' }],
    ['redis://h:6379/1', 'redis', { url: 'redis://h:6379/1' }],
    ['rediss://u:p@h', 'redis', { url: 'rediss://u:p@h' }],
    ['postgres://u:p@h/db', 'postgres', { url: 'postgres://u:p@h/db' }],
    ['postgresql://h/db', 'postgres', { url: 'postgresql://h/db' }],
    [{ url: 'sqlite:./data', durability: 'full' }, 'sqlite', { folder: '/etc/tollgate/data', durability: 'full' }],
    [{ url: 'redis://h', cluster: true }, 'redis', { url: 'redis://h', cluster: true }],
    [{ adapter: '@keyv/mongo', options: { url: 'x' } }, 'keyv', { adapter: '@keyv/mongo', options: { url: 'x' } }],
    [{ adapter: './mine.mjs' }, 'keyv', { adapter: '/etc/tollgate/mine.mjs' }],
    [{ plugin: 'tollgate-plugin-x', url: 'x:1', a: 1 }, 'tollgate-plugin-x', { url: 'x:1', a: 1 }],
    [{ plugin: 'tollgate-plugin-x' }, 'tollgate-plugin-x', {}],
  ];
  for (const [value, plugin, config] of cases) {
    it(`${JSON.stringify(value)} opens ${plugin} with ${JSON.stringify(config)}`, () => {
      expect(readStoreUrl(value, '/etc/tollgate')).to.deep.equal({ plugin, config });
    });
  }

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
      expect(() => readStoreUrl(value, '/x'))
        .to.throw(TypeError, /memory:, sqlite:\.\/data/)
        .with.property('message')
        .that.does.not.include('s3cret');
    });
  }
});
