import { expect } from 'chai';
import { type Credential, StreamFailure } from '../../contract/index.ts';
import { createRenewed, fetchCredential, readToken, tokenCredential } from '../../plugins/providers/kit/index.ts';
import { runKit } from '../support/plugins/run-kit.ts';
import { type CredentialApi, testCredential } from './credential.ts';

const SECRET = 'acme-secret-4711';
const URL_ = 'https://id.acme.example/token';

type Lines = Parameters<typeof createRenewed<string>>[0];

/** Correct credential, except for these changes. */
function acme(change: (api: CredentialApi) => Partial<Lines> & Partial<Pick<Credential, 'headers' | 'refused'>>) {
  return (api: CredentialApi): Credential => {
    const own = change(api);
    const fetch = async () => {
      const form = { grant_type: 'client_credentials', client_secret: SECRET };
      return readToken(await fetchCredential(api.http, { who: 'Acme', url: URL_, form }), 'Acme', Date.now());
    };
    const renewed = createRenewed({ what: 'the token of Acme', fetch, log: api.log, ...own });
    return { ...tokenCredential(renewed), ...own };
  };
}

/** Credential without caching: each result of `fetch` is used directly. */
const bare = (headers: (api: CredentialApi) => () => Promise<string>) =>
  acme((api) => {
    const next = headers(api);
    return { headers: async () => ({ authorization: `Bearer ${await next()}` }) };
  });

const send = async (api: CredentialApi, more: object = {}): Promise<string> => {
  const client = await api.http();
  const body = await client.post(URL_, { ...more, retry: { limit: 0 } }).json<{ access_token: string }>();
  return body.access_token;
};

const problems = async (open: (api: CredentialApi) => Credential): Promise<string> =>
  (
    await runKit((runner) =>
      testCredential({
        ...{ name: 'acme', open, secrets: [SECRET], runner },
        issue: (_request, { mark, seconds }) => ({ body: { access_token: mark, expires_in: seconds } }),
      }),
    )
  )
    .map(({ title, message }) => `${title}: ${message}`)
    .join('\n');

describe('the kit for credentials', () => {
  it('accepts a correct one', async () => {
    expect(await problems(acme(() => ({})))).to.equal('');
  });

  const WRONG: readonly (readonly [what: string, open: (api: CredentialApi) => Credential, title: RegExp])[] = [
    [
      'is asked for by each request',
      bare((api) => () => send(api)),
      /twenty concurrent requests sent more than one token request/,
    ],
    [
      'is held for ever @slow',
      bare((api) => {
        let held: Promise<string> | undefined;
        return () => {
          held ??= send(api);
          return held;
        };
      }),
      /what has ended is still used/,
    ],
    [
      'is renewed when it has ended, not before @slow',
      bare((api) => {
        let held: { readonly token: Promise<string>; readonly endsAt: number } | undefined;
        return () => {
          if (!held || held.endsAt <= Date.now()) held = { token: send(api), endsAt: Date.now() + 3_600_000 };
          return held.token;
        };
      }),
      /it is not renewed a minute before its end/,
    ],
    [
      'is waited for while it is renewed',
      bare((api) => {
        let held: { readonly token: string; readonly endsAt: number } | undefined;
        return async () => {
          if (!held || held.endsAt - 300_000 <= Date.now())
            held = { token: await send(api), endsAt: Date.now() + 3_600_000 };
          return held.token;
        };
      }),
      /no request waits for that/,
    ],
    ['fails with an error of its own', bare((api) => () => send(api)), /is no StreamFailure/],
    [
      'shows its secret when it is refused',
      acme(() => ({
        fetch: () => Promise.reject(new StreamFailure({ class: 'authentication', message: `${SECRET} is refused` })),
      })),
      /a secret is in an error or the log/,
    ],
    [
      'writes its token to the log @slow',
      acme((api) => ({
        async fetch() {
          const lease = readToken(await fetchCredential(api.http, { who: 'Acme', url: URL_ }), 'Acme', Date.now());
          api.log.info({ token: lease.value }, 'signed in');
          return lease;
        },
      })),
      /a secret is in the log/,
    ],
    [
      'asks by an address that holds its secret',
      bare((api) => () => send(api, { searchParams: { client_secret: SECRET } })),
      /a secret is in an address/,
    ],
    [
      'waits for its issuer for ever',
      bare((api) => () => send(api, { timeout: { request: undefined } })),
      /it is waited for Infinity ms/,
    ],
    [
      'is tried again without an end',
      acme(() => ({ refused: () => true })),
      /a new credential would be renewed in an endless loop/,
    ],
    [
      'reads the environment',
      bare((api) => () => send(api, { json: { id: process.env['ACME_ID'] } })),
      /not the environment/,
    ],
    ['has no headers', (api) => ({ ...acme(() => ({}))(api), headers: undefined }) as never, /it has no `headers`/],
  ];
  for (const [what, open, title] of WRONG)
    it(`finds one that ${what}`, async () => expect(await problems(open)).to.match(title));
});
