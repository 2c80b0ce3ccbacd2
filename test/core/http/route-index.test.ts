import { expect } from 'chai';
import { createRouteIndex } from '../../../core/http/route-index.ts';

describe('the index of routes', () => {
  const index = createRouteIndex<string>();
  const paths = ['/api/core/:provider/chat/completions', '/:vendor/tts', '/v1/models', '/livez', '/v1/tts', '/a/:x/:y'];
  for (const path of paths) index.add('POST', path, path);

  const cases: readonly (readonly [path: string, route: string | undefined, params?: object])[] = [
    ['/api/core/openai/chat/completions', '/api/core/:provider/chat/completions', { provider: 'openai' }],
    ['/api/core/a%20b/chat/completions', '/api/core/:provider/chat/completions', { provider: 'a b' }],
    ['/v1/models', '/v1/models', {}],
    ['/v1/tts', '/:vendor/tts', { vendor: 'v1' }],
    ['/a/1/2', '/a/:x/:y', { x: '1', y: '2' }],
    ['/a/1', undefined],
    ['/a/1/2/3', undefined],
    ['/a//2', undefined],
    ['/api/core/%zz/chat/completions', undefined],
    ['/', undefined],
  ];
  for (const [path, route, params] of cases) {
    it(`${route ? 'finds' : 'leaves to the router'} ${path}`, () => {
      const found = index.find('POST', path);
      expect(found?.value).to.equal(route);
      if (route) expect(found?.params).to.deep.equal(params);
    });
  }

  it('keeps methods apart', () => {
    expect(index.find('GET', '/v1/models')).to.equal(undefined);
  });

  it('takes no path with a pattern in it', () => {
    expect(index.add('GET', '/v1/models/*id', 'x')).to.equal(false);
  });
});
