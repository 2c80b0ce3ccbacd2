import { expect } from 'chai';
import type { HookName } from '../../../contract/hooks.ts';
import type { Route } from '../../../contract/plugin.ts';
import { toHookEntry } from '../../../core/plugins/plugin-api.ts';
import { Registry } from '../../../core/plugins/registry.ts';

const route = (path: string): Route => ({
  method: 'GET',
  path,
  summary: 'x',
  auth: 'none',
  responses: { 200: 'x' },
  handler() {},
});

describe('the registry', () => {
  it('names both owners of a conflict between two plugins', () => {
    const registry = new Registry();
    registry.addRoute('first', route('/x'));
    expect(() => registry.addRoute('second', route('/x')))
      .to.throw(/plugin "second": plugin_conflict: route "GET \/x" is already registered by plugin "first"/)
      .with.property('plugin', 'second');
  });

  it('recognizes a route with other parameter names', () => {
    const registry = new Registry();
    registry.addRoute('first', route('/x/:id'));
    expect(() => registry.addRoute('second', route('/x/:name'))).to.throw(
      /route "GET \/x\/:name" is already .* "first"/,
    );
  });

  it('accepts the same path with another method', () => {
    const registry = new Registry();
    registry.addRoute('first', route('/x'));
    registry.addRoute('second', { ...route('/x'), method: 'POST' });
    expect(registry.routes).to.have.property('size', 2);
  });

  const BAD_HOOKS: readonly (readonly [what: string, name: string, hook: unknown, message: RegExp])[] = [
    ['an unknown name', 'prepair', () => {}, /there is no hook "prepair"\. Did you mean "prepare"\?/],
    ['a name of every object', 'constructor', () => {}, /there is no hook "constructor"/],
    ['no function', 'admit', undefined, /hook "admit" has no function/],
    ['an object without a handler', 'admit', { order: 'pre' }, /hook "admit" has no function/],
    [
      'an unknown order',
      'admit',
      { order: 'first', handler() {} },
      /hook "admit" has the invalid order "first"; use "pre", "post"/,
    ],
    [
      'operations that are no list',
      'admit',
      { operations: 'chat', handler() {} },
      /has invalid operations; use a list of names/,
    ],
    [
      'an empty list of operations',
      'admit',
      { operations: [], handler() {} },
      /has invalid operations; use a list of names/,
    ],
  ];
  for (const [what, name, hook, message] of BAD_HOOKS) {
    it(`refuses a hook with ${what}`, () => {
      expect(() => new Registry().addHook(toHookEntry('a', name as HookName, hook as never))).to.throw(message);
    });
  }

  it('refuses middleware that is not a function', () => {
    expect(() => new Registry().addMiddleware('a', 'cors' as never)).to.throw(
      /plugin "a": api\.use\(\) takes a Koa middleware/,
    );
  });

  it('accepts nothing once it is frozen, and names the late plugin', () => {
    const registry = new Registry();
    registry.freeze();
    expect(() => registry.addRoute('late', route('/x'))).to.throw(/plugin "late": registers route after setup\(\)/);
    expect(() => registry.addHook({ owner: 'late', name: 'admit', handler: () => {} })).to.throw(
      /registers hook "admit"/,
    );
    expect(() => registry.addMiddleware('late', () => {})).to.throw(/registers middleware after setup\(\)/);
  });
});
