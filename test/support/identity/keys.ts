import { expect } from 'chai';
import { isGatewayError, type Store } from '../../../core/index.ts';
import apiKey from '../../../plugins/auth/api-key/index.ts';
import { type FakeGateway, type FakeOptions, fakeTokens, setUpPlugins } from '../plugins/fake-api.ts';

/** A pepper no real gateway has. */
export const PEPPER = 'mK3v9Xq2Lw7Tz5Rb8Nc4Hd6Jf1Gp0YsAqWeUiOp';

/** A gateway with the api-key plugin and stand-in tokens, ready for requests. */
export async function startKeys(store: Store, config: object = {}, options: FakeOptions = {}): Promise<FakeGateway> {
  const plugins = [{ plugin: apiKey, config: { pepper: PEPPER, ...config } }, { plugin: fakeTokens }];
  const gateway = await setUpPlugins(store, plugins, options);
  await gateway.ready();
  return gateway;
}

/** The code of the GatewayError that a promise rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (isGatewayError(error)) return error.code;
    throw error;
  }
  return expect.fail('it was let through');
}

/** Waits for a condition; fails after two seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 2000;
  while (!(await condition())) {
    if (performance.now() > deadline) expect.fail('the condition did not come true');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
