import type { Plugin, Principal, Store } from '../../../contract/index.ts';
import apiKey from '../../../plugins/auth/api-key/index.ts';
import type { FakeOptions } from '../plugins/fake-api.ts';
import { type FakeGateway, setUpPlugins } from '../plugins/fake-gateway.ts';

/** Pepper that no real gateway has. */
export const PEPPER = 'mK3v9Xq2Lw7Tz5Rb8Nc4Hd6Jf1Gp0YsAqWeUiOp';

/** Auth plugin with the tokens `token:<user>` and `token:<user>:{"plan":"pro"}`: the claims of a JWT, without one. */
const fakeTokens: Plugin<object, 'auth'> = {
  name: 'fake-tokens',
  kind: 'auth',
  apiVersion: 1,
  setup(api) {
    api.hook('authenticate', ({ credential }) => {
      const match = /^token:([^:]+)(?::(.*))?$/s.exec(credential);
      if (!match?.[1]) return undefined;
      const claims = JSON.parse(match[2] ?? '{}') as Partial<Principal>;
      return { credential: 'token', userId: match[1], account: match[1], permissions: ['keys:write'], ...claims };
    });
  },
};

/** Starts a gateway with the api-key plugin and fake tokens. */
export async function startKeys(store: Store, config: object = {}, options: FakeOptions = {}): Promise<FakeGateway> {
  const plugins = [{ plugin: apiKey, config: { pepper: PEPPER, ...config } }, { plugin: fakeTokens }];
  const gateway = await setUpPlugins(store, plugins, options);
  await gateway.ready();
  return gateway;
}
