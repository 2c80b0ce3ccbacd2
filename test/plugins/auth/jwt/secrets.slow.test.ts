import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { GatewayError } from '../../../../contract/index.ts';
import apiKey from '../../../../plugins/auth/api-key/index.ts';
import jwt from '../../../../plugins/auth/jwt/index.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { corpusText } from '../../../support/corpus.ts';
import { PEPPER } from '../../../support/identity/keys.ts';
import { AUDIENCE, createSigner, goodClaims, ISSUER, signShared } from '../../../support/identity/tokens.ts';
import { type FakeGateway, setUpPlugins } from '../../../support/plugins/fake-gateway.ts';

const SHARED_SECRET = 'bV9xq4Lr7Zt2Kc8Wn5Jf1Hd6Pg3Sy0Ua_Ee-Oo';

describe('tokens signed with known secrets', () => {
  let folder: string;
  let gateway: FakeGateway;
  let shared: FakeGateway;

  const start = async (config: object) => {
    const plugins = [
      { plugin: apiKey, config: { pepper: PEPPER } },
      { plugin: jwt, config: { issuer: ISSUER, audience: AUDIENCE, ...config } },
    ];
    return setUpPlugins(await openMemory(), plugins, { settings: { baseDir: folder } });
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-jwt-'));
    const { publicJwk } = await createSigner('one');
    await writeFile(join(folder, 'keys.json'), JSON.stringify({ keys: [publicJwk] }));
    gateway = await start({ jwksFile: 'keys.json' });
    shared = await start({ secret: SHARED_SECRET });
  });
  after(() => rm(folder, { recursive: true }));

  it('J03 refuses each of them', async function () {
    this.timeout(900_000);
    const secrets = corpusText('jwt-secrets/jwt.secrets.list').split('\n');
    const claims = goodClaims();
    for (const [at, secret] of secrets.entries()) {
      const token = signShared(secret, claims);
      // Public keys accept no shared secret at all. A gateway with a secret must compute each signature, so it checks
      // every tenth token.
      for (const by of at % 10 === 0 ? [gateway, shared] : [gateway]) {
        const outcome = await by.authenticate(token).catch((error: GatewayError) => error.code);
        if (outcome !== 'invalid_token') expect.fail(`let through: ${secret}`);
      }
    }
  });
});
