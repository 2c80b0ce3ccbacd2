// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { expect } from 'chai';
import { egressWarnings } from '../../cli/warnings.ts';
import type { GatewayConfig } from '../../config/core-schema.ts';
import { removeFolders } from '../support/folders.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { checkText, problemLines } from './config-plugins.ts';

const [own, other, expired] = [createSelfSigned(), createSelfSigned(), createSelfSigned({ expired: true })];
const files = {
  'own.crt': own.cert,
  'own.key': own.key,
  'other.key': other.key,
  'expired.crt': expired.cert,
  'expired.key': expired.key,
  'text.pem': 'hello',
};
const provider = (...lines: readonly string[]): string =>
  ['providers:', '  acme:', ...lines.map((line) => `    ${line}`)].join('\n');
const HINT = 'Use http://host:port or https://host:port, with user:password@ before the host if required.';

describe('outgoing connections in a configuration', () => {
  afterEach(removeFolders);

  const egressOf = async (text: string, env: Readonly<Record<string, string>> = {}) => {
    const { instances } = await checkText(text, { files, env });
    return instances.find(({ name }) => name === 'acme')?.egress;
  };

  it('are direct by default', async () => {
    expect(await egressOf(provider('apiKey: k'))).to.equal(undefined);
    expect(await egressOf(provider('apiKey: k'), { HTTPS_PROXY: ' ', no_proxy: '*' })).to.equal(undefined);
  });

  it('use the proxies of the environment, which an option replaces', async () => {
    const env = { HTTPS_PROXY: 'http://u:p@proxy.example:3128', http_proxy: 'plain.example:80', NO_PROXY: 'a, b' };
    const https = { isTls: false, hostname: 'proxy.example', port: 3128, authorization: 'Basic dTpw' };
    const http = { isTls: false, hostname: 'plain.example', port: 80 };
    expect(await egressOf(provider('apiKey: k'), env)).to.deep.equal({
      environment: { https, http, direct: ['a', 'b'] },
    });
    expect(await egressOf(provider('proxy: false'), env)).to.deep.equal({ proxy: false });
    expect(await egressOf(provider("proxy: '${P:-false}'"), env)).to.deep.equal({ proxy: false });
    const own = { isTls: true, hostname: '::1', port: 443 };
    expect(await egressOf(provider("proxy: 'https://[::1]'"), env)).to.deep.equal({ proxy: own });
  });

  it('use certificates from files, or from referenced texts', async () => {
    const tls = { ca: own.cert.trim(), cert: own.cert.trim(), key: own.key.trim(), servername: 'vendor.example' };
    const inFiles = provider(
      'tls:',
      '  ca: own.crt',
      '  cert: own.crt',
      '  key: own.key',
      '  servername: vendor.example',
    );
    expect(await egressOf(inFiles)).to.deep.equal({ tls });
    const inTexts = inFiles.replaceAll(/: (own\.\w+)/g, ": '${file:$1}'");
    expect(await egressOf(inTexts)).to.deep.equal({ tls });
  });

  it('show no password and no key when the configuration is printed', async () => {
    const text = provider(
      'proxy: http://user:secret-word@proxy.example:3128',
      'tls: { cert: own.crt, key: "${file:own.key}" }',
    );
    const { printable } = await checkText(text, { files });
    const shown = JSON.stringify(printable());
    expect(shown).to.include('proxy.example').and.not.include('secret-word').and.not.include('PRIVATE KEY');
  });

  for (const [title, lines, problems] of [
    ['an invalid proxy', ['proxy: "http://"'], [`3:12 providers.acme.proxy: is not a valid proxy URL. ${HINT}`]],
    ['true', ['proxy: true'], [`3:12 providers.acme.proxy: is true. ${HINT}`]],
    [
      'a SOCKS proxy',
      ['proxy: socks5://u:p@host'],
      [`3:12 providers.acme.proxy: is a SOCKS proxy; only HTTP proxies with CONNECT are supported. ${HINT}`],
    ],
    [
      'a proxy with a path',
      ['proxy: http://host/proxy.pac'],
      [`3:12 providers.acme.proxy: has more than a host and a port. ${HINT}`],
    ],
    [
      'a password that is not encoded',
      ['proxy: http://u:100%@host'],
      [`3:12 providers.acme.proxy: has an invalid % in the user or password; use %25. ${HINT}`],
    ],
    [
      'a certificate without a key',
      ['tls: { cert: own.crt }'],
      [
        '3:18 providers.acme.tls.cert: needs key, which is not set or empty. Set both the certificate and its private key, or neither.',
      ],
    ],
    [
      'the key of another certificate',
      ['tls: { cert: own.crt, key: other.key }'],
      [
        '3:32 providers.acme.tls.key: does not belong to the certificate. Use the key of the certificate. The gateway’s own certificate must be first in its file.',
      ],
    ],
    [
      'authorities that are none',
      ['tls: { ca: text.pem }'],
      [
        '3:16 providers.acme.tls.ca: is a file without certificates. Use a PEM file with the certificates of the authority.',
      ],
    ],
    [
      'a file that is not there',
      ['tls: { ca: nope.crt }'],
      [
        '3:16 providers.acme.tls.ca: needs the file nope.crt, which does not exist. Create it, or correct the path. Relative paths start at the configuration file.',
      ],
    ],
  ] as const)
    it(`refuses ${title}`, async () => {
      expect(await problemLines(provider(...lines), { files })).to.deep.equal(
        problems.map((line) => `tollgate.config.yaml:${line}`),
      );
    });

  it('refuses an unusable proxy in the environment, instead of connecting directly', async () => {
    const lines = await problemLines(provider('apiKey: k'), { env: { HTTPS_PROXY: 'socks5://u:secret-word@host' } });
    expect(lines).to.have.length(1);
    expect(lines.join()).to.include('HTTPS_PROXY, which is a SOCKS proxy').and.not.include('secret-word');
  });

  it('accepts these options only if a plugin connects to a URL in its options', async () => {
    expect(await problemLines('auth:\n  door:\n    issuer: https://idp.example\n    proxy: http://p:1')).to.deep.equal(
      [],
    );
    expect((await problemLines('auth:\n  api-key:\n    proxy: http://p:1')).join()).to.include('unknown key');
  });

  it('warns of a certificate that the server refuses', async () => {
    const config: GatewayConfig = await checkText(provider('tls: { cert: expired.crt, key: expired.key }'), { files });
    const [warning] = egressWarnings(config.instances);
    expect(warning).to.include({ pointer: '/providers/acme/tls/cert' });
    expect(warning?.message).to.match(/expired on \d{4}-\d\d-\d\d; servers reject it/);
    expect(egressWarnings(config.instances, Date.now() - 100 * 86_400_000)[0]?.message).to.include('not valid before');
  });
});
