import type { Plugin, Principal, Store } from '../../../contract/index.ts';
import apiKey from '../../../plugins/auth/api-key/index.ts';
import type { FakeOptions } from '../plugins/fake-api.ts';
import { type FakeGateway, setUpPlugins } from '../plugins/fake-gateway.ts';

/** A pepper no real gateway has. */
export const PEPPER = 'mK3v9Xq2Lw7Tz5Rb8Nc4Hd6Jf1Gp0YsAqWeUiOp';

/** An auth plugin whose tokens are `token:<user>`, `token:<user>:{"plan":"pro"}`: what a JWT would say, without one. */
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

/** A gateway with the api-key plugin and stand-in tokens, ready for requests. */
export async function startKeys(store: Store, config: object = {}, options: FakeOptions = {}): Promise<FakeGateway> {
  const plugins = [{ plugin: apiKey, config: { pepper: PEPPER, ...config } }, { plugin: fakeTokens }];
  const gateway = await setUpPlugins(store, plugins, options);
  await gateway.ready();
  return gateway;
}
