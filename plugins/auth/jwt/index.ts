import type { JWTVerifyGetKey } from 'jose';
import { definePlugin, type PluginApi } from '../../../core/index.ts';
import { createKeySource } from '../kit/key-source.ts';
import { findProblems } from './check.ts';
import { toPrincipal } from './claims.ts';
import { CONFIG_SCHEMA } from './config-schema.ts';
import { loadKeys } from './load-keys.ts';
import { type KeyOrigin, readOptions } from './options.ts';
import { createTokenVerifier, invalidToken, SHAPE } from './verify.ts';

/** Tokens of an identity provider: who a user is, what they may, and whether they may manage keys. */
export default definePlugin({
  name: 'jwt',
  kind: 'auth',
  apiVersion: 1,
  credentials: ['token'],
  isCredential: (text) => SHAPE.test(text),
  configSchema: CONFIG_SCHEMA,
  check: (config, { baseDir }) => findProblems(config, baseDir),

  async setup(api, config) {
    const options = readOptions(config, api.settings.baseDir);
    const key = await openKey(api, options.origin);
    const verifier = createTokenVerifier(options, key, (payload) => toPrincipal(payload, config), api.log);

    api.hook('authenticate', ({ credential, bearer, now }) =>
      bearer && isTokenShaped(credential) ? verifier.verify(credential, now) : undefined,
    );
    // After all issuers had their turn: a token that none of them knows is a bad token, not a bad API key.
    api.hook('authenticate', {
      order: 'post',
      handler({ credential, bearer }) {
        if (bearer && isTokenShaped(credential)) throw invalidToken();
        return undefined;
      },
    });
  },
});

/** What tokens are verified with. A file is read now, so that a bad one stops the start. */
async function openKey(api: PluginApi, origin: KeyOrigin): Promise<Uint8Array | JWTVerifyGetKey> {
  if (origin.kind === 'secret') return origin.secret;
  const source = createKeySource({
    load: () => loadKeys(origin),
    onFailure: (error) => api.log.warn({ err: error }, 'The signing keys of the identity provider cannot be read.'),
    now: () => performance.now(),
  });
  if (origin.kind === 'file') await source.refresh();
  // Read ahead of the first token, but never waited for: a provider that is down does not stop the start.
  else api.onReady(() => void source.refresh().catch(() => undefined));
  return source.getKey;
}

/** A JWT has three parts, an encrypted one five; nothing else that comes as a bearer has any. */
function isTokenShaped(credential: string): boolean {
  return credential.indexOf('.') !== credential.lastIndexOf('.');
}
