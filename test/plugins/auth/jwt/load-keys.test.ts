import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { loadKeys } from '../../../../plugins/auth/jwt/index.ts';
import { readOptions } from '../../../../plugins/auth/jwt/options.ts';
import { createSigner } from '../../../support/identity/tokens.ts';
import { jwtConfig } from './jwt-config.ts';

describe('reading keys from a provider', () => {
  let server: Server;
  let issuer: string;
  let paths: Record<string, RequestListener>;
  let requests: string[];
  let keys: { keys: object[] };

  before(async () => {
    keys = { keys: [(await createSigner('one')).publicJwk] };
    server = createServer((request, response) => {
      requests.push(request.url ?? '');
      const respond = paths[request.url ?? ''];
      if (respond) respond(request, response);
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    requests = [];
    paths = { '/.well-known/openid-configuration': json({ issuer, jwks_uri: `${issuer}/keys` }), '/keys': json(keys) };
  });

  const json =
    (value: unknown): RequestListener =>
    (_request, response) =>
      void response.end(JSON.stringify(value));
  const load = async (config: Parameters<typeof jwtConfig>[0] = {}) => {
    const { origin } = readOptions(jwtConfig({ issuer, ...config }), '/');
    if (origin.kind === 'secret') throw new Error('a secret is not read');
    return loadKeys(origin);
  };
  const problemOf = (promise: Promise<unknown>) =>
    promise.then(
      () => 'it was read',
      (error: Error) => `${error.name}: ${error.message}`,
    );

  it('finds them through the discovery document', async () => {
    expect(await load()).to.deep.equal(keys);
    expect(requests).to.deep.equal(['/.well-known/openid-configuration', '/keys']);
  });

  it('finds the discovery document of an issuer with a path', async () => {
    const tenant = `${issuer}/realms/acme`;
    paths['/realms/acme/.well-known/openid-configuration'] = json({ issuer: tenant, jwks_uri: `${issuer}/keys` });
    expect(await load({ issuer: tenant })).to.deep.equal(keys);
    expect(await problemOf(load({ issuer: `${tenant}/` }))).to.match(/belongs to the issuer/);
  });

  it('requests only the keys if their URL is configured', async () => {
    expect(await load({ jwksUri: `${issuer}/keys` })).to.deep.equal(keys);
    expect(requests).to.deep.equal(['/keys']);
  });

  const DOCUMENTS: readonly (readonly [string, () => unknown, RegExp])[] = [
    ['of another issuer', () => ({ issuer: 'https://evil.example', jwks_uri: `${issuer}/keys` }), /belongs to/],
    ['of no issuer', () => ({ jwks_uri: `${issuer}/keys` }), /belongs to/],
    ['that is null', () => null, /belongs to/],
    ['without keys', () => ({ issuer }), /no jwks_uri/],
    ['with keys over plain http', () => ({ issuer, jwks_uri: 'http://idp.example/keys' }), /no jwks_uri/],
    ['with keys in a file', () => ({ issuer, jwks_uri: 'file:///etc/passwd' }), /no jwks_uri/],
    ['with keys at no address', () => ({ issuer, jwks_uri: 'keys' }), /no jwks_uri/],
  ];
  for (const [title, document, problem] of DOCUMENTS) {
    it(`refuses a discovery document ${title}`, async () => {
      paths['/.well-known/openid-configuration'] = json(document());
      expect(await problemOf(load())).to.match(problem);
      expect(requests).to.deep.equal(['/.well-known/openid-configuration']);
    });
  }

  const SETS: readonly (readonly [string, unknown])[] = [
    ['no set', {}],
    ['a list', []],
    ['null', null],
    ['an empty set', { keys: [] }],
    ['a set of texts', { keys: ['key'] }],
    ['a set of nulls', { keys: [null] }],
    ['a set of symmetric keys', { keys: [{ kty: 'oct', k: 'AAAA' }] }],
  ];
  for (const [title, set] of SETS) {
    it(`refuses ${title} in place of keys`, async () => {
      paths['/keys'] = json(set);
      expect(await problemOf(load())).to.match(/contains no (JWK set|key)/);
    });
  }

  it('follows no redirect', async () => {
    paths['/keys'] = (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end();
    paths['/elsewhere'] = json(keys);
    expect(await problemOf(load())).to.match(/status 302/);
    expect(requests).not.to.include('/elsewhere');
  });

  it('refuses an answer of more than a mebibyte, announced or not', async () => {
    const big = JSON.stringify({ ...keys, junk: 'x'.repeat(1024 * 1024) });
    paths['/keys'] = (_request, response) => void response.end(big);
    expect(await problemOf(load())).to.match(/more than 1048576 bytes/);
    paths['/keys'] = (_request, response) => {
      response.write(big.slice(0, 600_000));
      response.end(big.slice(600_000));
    };
    expect(await problemOf(load())).to.match(/more than 1048576 bytes/);
  });

  it('refuses an endless answer', async () => {
    paths['/keys'] = (_request, response) => {
      const piece = Buffer.alloc(64 * 1024, 32);
      const pour = (): void => void response.write(piece, (error) => (error ? undefined : setImmediate(pour)));
      pour();
    };
    expect(await problemOf(load())).to.match(/more than 1048576 bytes/);
  });

  for (const status of [201, 204, 401, 500, 503]) {
    it(`refuses the status ${status}`, async () => {
      paths['/keys'] = (_request, response) => void response.writeHead(status).end();
      expect(await problemOf(load())).to.match(new RegExp(`status ${status}`));
    });
  }

  it('refuses anything but JSON in UTF-8', async () => {
    for (const bytes of [Buffer.from('<html>'), Buffer.from([0x7b, 0xff, 0x7d]), Buffer.alloc(0)]) {
      paths['/keys'] = (_request, response) => void response.end(bytes);
      expect(await problemOf(load())).to.match(/is not JSON|TypeError/);
    }
  });
});
