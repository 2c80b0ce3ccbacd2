import { expect } from 'chai';
import { createCookies } from '../../../../plugins/auth/kit/cookies.ts';
import { isOwnPath } from '../../../../plugins/auth/openid/paths.ts';

const VALUE = 'a'.repeat(43);

describe('the cookies of a session', () => {
  it('can be set by no other host over https: they are __Host- ones, which have no domain and the path /', () => {
    const header = createCookies(true).session.write(VALUE, 60_000);
    expect(header).to.equal(`__Host-tollgate-session=${VALUE}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=60`);
  });

  it('are limited to the admin API on plain http', () => {
    const header = createCookies(false).session.write(VALUE, 60_000);
    expect(header).to.equal(`tollgate-session=${VALUE}; Path=/api/core/admin; HttpOnly; SameSite=Lax; Max-Age=60`);
  });

  it('are removed by an end that has passed', () => {
    expect(createCookies(true).login.write(undefined)).to.match(/^__Host-tollgate-login=; .*Max-Age=0$/);
  });

  it('are not taken under a name that other hosts could set', () => {
    const { session } = createCookies(true);
    expect(session.read(`tollgate-session=${VALUE}; __Secure-tollgate-session=${VALUE}`)).to.equal(undefined);
    expect(session.read(`a=b; __Host-tollgate-session=${VALUE}; c=d`)).to.equal(VALUE);
  });

  it('are read only in their own format', () => {
    const { session } = createCookies(false);
    for (const value of ['', 'a', `${VALUE}a`, `"${VALUE}"`, '../../x', VALUE.replace('a', 'ä')])
      expect(session.read(`tollgate-session=${value}`), value).to.equal(undefined);
    expect(session.read(undefined)).to.equal(undefined);
    expect(session.isSent('tollgate-session=')).to.equal(true);
    expect(session.isSent('other=1')).to.equal(false);
  });
});

describe('the path to go to after signing in', () => {
  const OWN = ['/', '/console', '/console/keys?user=a%20b#top', '/api/core/admin/session', '/a?next=https://x.example'];
  for (const path of OWN)
    it(`may be ${path}`, () => {
      expect(isOwnPath(path)).to.equal(true);
    });

  const OTHERS = [
    ...['', 'console', '//evil.example', '///evil.example', '/\\evil.example', '\\\\evil.example', '/a\\b', '/a//b'],
    ...['https://evil.example', 'javascript:alert(1)', '/\t/evil.example', '/\n/evil.example', ' /console', '/ü'],
    ...[
      '/./x',
      '/../x',
      '/a/..',
      '/.//evil.example',
      '/%2e%2E/x',
      '/a%0d%0aset-cookie:x=y\r\n',
      `/${'a'.repeat(1000)}`,
    ],
    ...['/api/core/admin/login', '/api/core/admin/login?return_to=/', '/API/core/admin/callback/'],
  ];
  for (const path of OTHERS)
    it(`may not be ${JSON.stringify(path.slice(0, 40))}`, () => {
      expect(isOwnPath(path)).to.equal(false);
    });
});
