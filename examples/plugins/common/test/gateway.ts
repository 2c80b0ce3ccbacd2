import type { Plugin } from 'tollgate';
import { createGateway, type Gateway } from 'tollgate/gateway';

/** A gateway in memory with this plugin, and a first key for calls. */
export async function openGateway(config: object, plugins: readonly Plugin[]): Promise<TestGateway> {
  const gateway = await createGateway({
    config: { auth: { 'api-key': { bootstrap: true } }, logging: { level: 'silent' }, ...config },
    plugins,
    listen: false,
  });
  const key = gateway.announcements.find(({ use }) => use === 'key')?.value ?? '';
  return {
    gateway,
    post: (path, body, credential = key) =>
      gateway.inject(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
  };
}

export interface TestGateway {
  readonly gateway: Gateway;
  post(path: string, body: object, credential?: string): Promise<Response>;
}
