import { expect } from 'chai';
import { maskSecrets, maskUrl } from '../../config/read.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    apiKey: { type: 'string', secret: true },
    keys: { type: 'array', items: { type: 'string', secret: true } },
    nested: { $ref: '#/$defs/inner' },
    either: {
      anyOf: [
        { type: 'string', secret: true },
        { type: 'object', properties: { pin: { secret: true } } },
      ],
    },
  },
  additionalProperties: true,
  $defs: { inner: { type: 'object', properties: { word: { type: 'string', secret: true } } } },
};

describe('masking', () => {
  const values: readonly [title: string, value: object, expected: object][] = [
    ['a secret of the schema', { apiKey: 'x' }, { apiKey: '****' }],
    ['a secret that is a number', { apiKey: 5 }, { apiKey: '****' }],
    ['secrets in a list', { keys: ['x', 'y'] }, { keys: ['****', '****'] }],
    ['a secret behind a reference', { nested: { word: 'x' } }, { nested: { word: '****' } }],
    ['secrets of one of two forms', { either: { pin: 1, other: 2 } }, { either: { pin: '****', other: '****' } }],
    [
      'what is named like a secret',
      { o: { password: 'x', Authorization: 'y', auth_token: 'z' } },
      { o: { password: '****', Authorization: '****', auth_token: '****' } },
    ],
    ['nothing in counts of tokens', { maxTokens: 5, tokens: 'many' }, { maxTokens: 5, tokens: 'many' }],
    ['nothing that is not set', { apiKey: null }, { apiKey: null }],
  ];
  for (const [title, value, expected] of values) {
    it(`hides ${title}`, () => {
      expect(maskSecrets(value, SCHEMA)).to.deep.equal(expected);
    });
  }

  it('hides the values of headers, whatever their names', () => {
    const value = { providers: { own: { headers: { 'x-auth': 'wintermute', 'x-tenant': 'a', nested: { b: 'c' } } } } };
    expect(maskSecrets(value, {})).to.deep.equal({
      providers: { own: { headers: { 'x-auth': '****', 'x-tenant': '****', nested: { b: '****' } } } },
    });
  });

  it('leaves the value itself unchanged', () => {
    const value = { apiKey: 'x' };
    maskSecrets(value, SCHEMA);
    expect(value).to.deep.equal({ apiKey: 'x' });
  });

  const urls: readonly [url: string, expected: string][] = [
    ['redis://user:pw@db:6379/0', 'redis://****@db:6379/0'],
    ['redis://:pw@db', 'redis://****@db'],
    ['postgres://u:p%40w@db/x', 'postgres://****@db/x'],
    ['postgres://u:p@w@db/x', 'postgres://****@db/x'],
    ['postgres://u:p/w@db/x', 'postgres://****@db/x'],
    ['https://a.example/v1?api_key=pw&x=1', 'https://a.example/v1?api_key=****&x=1'],
    ['https://a.example:8080/@scope/x', 'https://a.example:8080/@scope/x'],
    ['http://[::1]:8080/a@b', 'http://[::1]:8080/a@b'],
    ['sqlite:./data', 'sqlite:./data'],
    ['mail@a.example', 'mail@a.example'],
  ];
  for (const [url, expected] of urls) {
    it(`shows ${url} as ${expected}`, () => {
      expect(maskUrl(url)).to.equal(expected);
    });
  }
});
