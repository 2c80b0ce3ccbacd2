import { expect } from 'chai';
import type { Principal } from '../../contract/call.ts';
import type { GatewayError } from '../../contract/errors.ts';
import { isAllowed, splitModel } from '../../contract/model-names.ts';
import { assertAllowed, type Catalog, targetOfPath, targetsOfRequest } from '../../models/catalog.ts';

const MODELS: Readonly<Record<string, readonly string[]>> = {
  alpha: ['big', 'big-mini', 'vendor/slashed', 'twice'],
  beta: ['small', 'twice', 'kept'],
  gone: ['kept', 'lost'],
};
const catalog: Catalog = {
  list: (provider) => MODELS[provider] ?? [],
  isConfigured: (provider) => provider !== 'gone',
  has: (provider) => Object.hasOwn(MODELS, provider),
  providers: () => Object.keys(MODELS),
  suggest: (provider, model) => (MODELS[provider] ?? []).filter((id) => id[0] === model[0]),
  find: (provider, model) => {
    const ids = (MODELS[provider] ?? []).filter((id) => model === id || model.startsWith(`${id}-20`));
    const id = ids.toSorted((a, b) => b.length - a.length)[0];
    return id === undefined ? undefined : { id };
  },
};
const aliases = new Map([
  ['fast', ['beta/small']],
  ['smart', ['alpha/big', 'beta/small']],
  ['alpha/big-mini', ['beta/small']],
  ['small', ['alpha/big']],
]);
const principal = (lists: Pick<Principal, 'models' | 'providers'>): Principal => ({
  credential: 'key',
  userId: 'u',
  account: 'u',
  ...lists,
});

function errorOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    return error as GatewayError;
  }
  return expect.fail('it was let through');
}

const find = (model: string) =>
  targetsOfRequest(
    {
      catalog,
      aliases,
      dialectAliases: { own: ['beta/small'], 'fast-own': ['alpha/big'], 'alpha/big': ['beta/small'] },
    },
    model,
  );

describe('the targets of a request', () => {
  const FOUND: readonly (readonly [model: string, targets: readonly string[]])[] = [
    ['alpha/big', ['alpha big']],
    ['alpha/vendor/slashed', ['alpha vendor/slashed']],
    ['alpha/big-2026-01-01', ['alpha big-2026-01-01']],
    ['fast', ['beta small']],
    ['smart', ['alpha big', 'beta small']],
    ['alpha/big-mini', ['alpha big-mini']],
    ['big', ['alpha big']],
    ['big-2026-01-01', ['alpha big-2026-01-01']],
    ['vendor/slashed', ['alpha vendor/slashed']],
    ['kept', ['beta kept']],
    ['small', ['alpha big']],
    ['own', ['beta small']],
    ['fast-own', ['alpha big']],
  ];
  for (const [model, targets] of FOUND)
    it(`of "${model}" are ${targets.join(', then ')}`, () => {
      const found = find(model).targets.map((target) => `${target.provider} ${target.model}`);
      expect(found).to.deep.equal(targets);
    });

  const MISSING: readonly (readonly [model: string, says: RegExp])[] = [
    ['bgi', /The model "bgi" does not exist. Use "provider\/model" or an alias/],
    ['lost', /The model "lost" does not exist/],
    ['twice', /More than one provider has a model "twice". Use "alpha\/twice" or "beta\/twice"/],
    ['gamma/big', /The model "gamma\/big" does not exist/],
    ['alpha/nothing', /The provider "alpha" has no model "nothing"/],
    ['fsat', /Did you mean "fast"/],
    ['/x', /The model "\/x" does not exist/],
    ['constructor', /The model "constructor" does not exist/],
    ['__proto__/x', /The model "__proto__\/x" does not exist/],
  ];
  for (const [model, says] of MISSING)
    it(`of "${model}" are empty, and similar names are suggested`, () => {
      const error = errorOf(() => find(model));
      expect(error).to.include({ code: 'unsupported_model', param: 'model' });
      expect(error.message).to.match(says);
    });

  it('are returned with their alias, of the configuration or of the client’s format', () => {
    expect(find('fast').requested).to.equal('fast');
    expect(find('own').requested).to.equal('own');
    expect(find('big').requested).to.equal(undefined);
    expect(find('alpha/big').requested).to.equal(undefined);
  });

  it('of a path name the existing providers', () => {
    const error = errorOf(() => targetOfPath(catalog, 'alhpa', 'big'));
    expect(error.code).to.equal('unsupported_provider');
    expect(error.message).to.match(/Did you mean "alpha"\?.*Configured: alpha, beta, gone/);
  });

  it('are returned without control characters, with a limit', () => {
    const { message } = errorOf(() => find(`\u0007\n${'x'.repeat(500)}`));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for
    expect(message).not.to.match(/[\u0000-\u001f]/);
    expect(message.length).to.be.lessThan(250);
  });

  it('split at the first slash', () => {
    expect(splitModel('a/b/c')).to.deep.equal({ provider: 'a', model: 'b/c' });
    expect(splitModel('/b')).to.deep.equal({ provider: '', model: '/b' });
  });
});

describe('the allow-lists of a key', () => {
  const big = { provider: 'alpha', model: 'big' };
  const dated = { provider: 'alpha', model: 'big-2026-01-01' };
  const mini = { provider: 'alpha', model: 'big-mini' };
  type Lists = Pick<Principal, 'models' | 'providers'>;
  const ROWS: readonly (readonly [
    lists: Lists,
    target: typeof big,
    requested: string | undefined,
    allowed: boolean,
  ])[] = [
    [{}, big, undefined, true],
    [{ models: [] }, big, undefined, false],
    [{ models: ['*'] }, big, undefined, true],
    [{ models: ['big'] }, big, undefined, true],
    [{ models: ['alpha/big'] }, big, undefined, true],
    [{ models: ['beta/big'] }, big, undefined, false],
    [{ models: ['alpha/*'] }, mini, undefined, true],
    [{ models: ['big'] }, dated, undefined, true],
    [{ models: ['big'] }, mini, undefined, false],
    [{ models: ['smart'] }, big, 'smart', true],
    [{ models: ['smart'] }, big, undefined, false],
    [{ providers: ['beta'] }, big, undefined, false],
    [{ providers: ['alpha'] }, big, undefined, true],
    [{ providers: ['beta'], models: ['smart'] }, big, 'smart', false],
    [{ providers: [] }, big, undefined, false],
  ];
  for (const [lists, target, requested, allowed] of ROWS)
    it(`${allowed ? 'let' : 'do not let'} ${target.model}${requested ? ` by "${requested}"` : ''} through ${JSON.stringify(lists)}`, () => {
      expect(isAllowed(catalog, principal(lists), target, requested)).to.equal(allowed);
    });

  it('are checked for every target of a list, with the right error code', () => {
    const targets = [{ provider: 'beta', model: 'small' }, big];
    const error = errorOf(() => assertAllowed(catalog, principal({ models: ['small'] }), targets));
    expect(error).to.include({ code: 'model_not_allowed', param: 'model' });
  });
});
