import Router from '@koa/router';
import { expect } from 'chai';
import { RouteIndex } from '../../../core/http/route-index.ts';

const PATHS = [
  '/',
  '/livez',
  '/v1/chat/completions',
  '/:vendor/tts',
  '/:vendor/tts/voices',
  '/api/core/:provider/chat/completions',
  '/api/core/openai/chat/completions',
  '/api/core/admin/calls/:id',
  '/api/core/admin/calls/newest',
  '/api/:a/admin/:b/:c',
  '/keys/:id/rotate',
];

const REQUESTS = [
  ...PATHS.map((path) => path.replaceAll(/:\w+/g, 'x')),
  '/api/core/openai/chat/completions',
  '/api/core/a%2Fb/chat/completions',
  '/api/core/%E0%A4%A/chat/completions',
  '/api/core//chat/completions',
  '/api/core/admin/calls/newest',
  '/api/x/admin/y/z',
  '/V1/chat/completions',
  '/livez/',
  '//tts',
  '/tts',
  '',
  '/keys/__proto__/rotate',
  '/constructor/tts',
];

describe('the index of routes', () => {
  it('finds the route and the parameters that the router finds', () => {
    const router = new Router({ strict: true, sensitive: true });
    const index = new RouteIndex<string>();
    for (const [order, path] of PATHS.entries()) {
      router.register(path, ['GET'], () => {});
      expect(index.add('GET', path, order, path), path).to.equal(true);
    }
    for (const path of REQUESTS) {
      const [layer] = router.match(path, 'GET').pathAndMethod;
      const expected = layer && { handler: String(layer.path), params: layer.params(path, layer.captures(path), {}) };
      const found = index.find('GET', path);
      expect(found && { handler: found.handler, params: found.params }, path).to.deep.equal(expected);
    }
  });

  it('leaves other methods and other kinds of paths to the router', () => {
    const index = new RouteIndex<string>();
    index.add('GET', '/a', 0, 'a');
    expect(index.find('POST', '/a')).to.equal(undefined);
    for (const path of ['/models/*name', '/models/:model\\:generate', '/a{/:b}', '/:a-:b'])
      expect(index.add('GET', path, 1, path), path).to.equal(false);
  });
});
