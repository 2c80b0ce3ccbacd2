import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { diffConfigs, formatChange } from '../../cli/config-diff.ts';
import { certificateWarnings, listenWarnings } from '../../cli/warnings.ts';
import { checkConfig } from '../../config/check.ts';
import type { GatewayConfig } from '../../config/core-schema.ts';
import { readRawConfig } from '../../config/read.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { checkText, PLUGINS, problemLines } from './config-plugins.ts';

const [own, other, encrypted, expired] = [
  createSelfSigned(),
  createSelfSigned(),
  createSelfSigned({ passphrase: 'open sesame' }),
  createSelfSigned({ expired: true }),
];
const files = {
  'own.crt': own.cert,
  'own.key': own.key,
  'chain.crt': `${own.cert}${other.cert}`,
  'wrong-way.crt': `${other.cert}${own.cert}`,
  'other.key': other.key,
  'encrypted.crt': encrypted.cert,
  'encrypted.key': encrypted.key,
  'expired.crt': expired.cert,
  'expired.key': expired.key,
  'empty.pem': '',
  'text.pem': 'hello',
  'cut.crt': own.cert.slice(0, 300),
  'folder/x': '',
};
const tls = (...lines: readonly string[]): string =>
  ['server:', '  tls:', ...lines.map((line) => `    ${line}`)].join('\n');
const MISSING = 'Create it, or correct the path. Relative paths start at the configuration file.';

describe('server.tls of a configuration', () => {
  afterEach(removeFolders);

  for (const [title, text] of [
    ['a certificate and its key', tls('cert: own.crt', 'key: own.key')],
    ['a chain whose first certificate is that of the key', tls('cert: chain.crt', 'key: own.key')],
    [
      'an encrypted key and its passphrase',
      tls('cert: encrypted.crt', 'key: encrypted.key', 'passphrase: open sesame'),
    ],
    ['authorities of clients', tls('cert: own.crt', 'key: own.key', 'clientCa: chain.crt', 'clientAuth: optional')],
    ['an expired certificate, of which a warning tells', tls('cert: expired.crt', 'key: expired.key')],
  ] as const)
    it(`accepts ${title}`, async () => {
      expect(await problemLines(text, { files })).to.deep.equal([]);
    });

  for (const [title, lines, problems] of [
    [
      'a file that is not there',
      ['cert: nope.crt', 'key: own.key'],
      [`3:11 server.tls.cert: needs the file nope.crt, which does not exist. ${MISSING}`],
    ],
    [
      'a folder',
      ['cert: own.crt', 'key: folder'],
      [`4:10 server.tls.key: needs the file folder, which is a folder. ${MISSING}`],
    ],
    ['no key', ['cert: own.crt'], ['2:3 server.tls: needs "key". PEM file with its private key.']],
    [
      'the key of another certificate',
      ['cert: own.crt', 'key: other.key'],
      [
        '4:10 server.tls.key: does not belong to the certificate. Use the key of the certificate. The gateway’s own certificate must be first in its file.',
      ],
    ],
    [
      'a chain that begins with somebody else',
      ['cert: wrong-way.crt', 'key: own.key'],
      [
        '4:10 server.tls.key: does not belong to the certificate. Use the key of the certificate. The gateway’s own certificate must be first in its file.',
      ],
    ],
    [
      'an encrypted key without a passphrase',
      ['cert: encrypted.crt', 'key: encrypted.key'],
      ['4:10 server.tls.key: is an encrypted key. Set server.tls.passphrase.'],
    ],
    [
      'a wrong passphrase, which is not shown',
      ['cert: encrypted.crt', 'key: encrypted.key', 'passphrase: hunter2'],
      [
        '4:10 server.tls.key: is a file without a private key, or the passphrase is wrong. Correct the file or the passphrase.',
      ],
    ],
    [
      'files that hold something else, each reported',
      ['cert: text.pem', 'key: empty.pem', 'clientCa: text.pem'],
      [
        '3:11 server.tls.cert: is a file without a certificate. Use a PEM file that begins with “-----BEGIN CERTIFICATE-----”.',
        '4:10 server.tls.key: is a file without a private key. Use a PEM file that begins with “-----BEGIN PRIVATE KEY-----”.',
        '5:15 server.tls.clientCa: is a file without certificates. Use a PEM file with the certificates of the authority.',
      ],
    ],
    [
      'a certificate that was cut',
      ['cert: cut.crt', 'key: own.key'],
      [
        '3:11 server.tls.cert: is a file without a certificate. Use a PEM file that begins with “-----BEGIN CERTIFICATE-----”.',
      ],
    ],
    [
      'client certificates without a CA',
      ['cert: own.crt', 'key: own.key', 'clientAuth: required'],
      [
        '5:17 server.tls.clientAuth: asks clients for certificates, but no authority is set. Set server.tls.clientCa to the file of their authority, or remove clientAuth.',
      ],
    ],
    [
      'an old version',
      ['cert: own.crt', 'key: own.key', 'minVersion: TLSv1.1'],
      ['5:17 server.tls.minVersion: must be TLSv1.2 or TLSv1.3, not the text "TLSv1.1". Did you mean "TLSv1.2"?'],
    ],
  ] as const)
    it(`refuses ${title}, at its place`, async () => {
      const reported = await problemLines(tls(...lines), { files });
      const shown = reported.map((line) => line.replace('tollgate.config.yaml:', '').replace(/ \/\S+\//, ' '));
      expect(shown).to.deep.equal(problems);
    });

  it('never shows a key in place of its file’s name', async () => {
    const text = JSON.stringify({ server: { tls: { cert: 'own.crt', key: own.key } } });
    const [reported = '', ...more] = await problemLines(text, { files, name: 'tollgate.config.json' });
    expect(more).to.deep.equal([]);
    expect(reported).to.include('server.tls.key: is the text of a file, not its name').and.not.include('BEGIN');
  });

  it('is printed with the names of its files, and without the passphrase', async () => {
    const text = tls('cert: encrypted.crt', 'key: encrypted.key', 'passphrase: open sesame');
    const shown = (await checkText(text, { files })).printable();
    expect(JSON.stringify(shown)).to.not.include('sesame').and.not.include('BEGIN');
    expect(shown)
      .to.have.nested.property('server.tls.cert')
      .that.matches(/\/encrypted\.crt$/);
  });
});

describe('changes of server.tls by a reload', () => {
  afterEach(removeFolders);
  const pair = ['cert: own.crt', 'key: own.key'] as const;
  const changesOf = async (before: string, after: string, renewed = files): Promise<readonly string[]> => {
    const cwd = makeFolder(files);
    const read = async (text: string): Promise<GatewayConfig> => {
      writeFileSync(path.join(cwd, 'tollgate.config.yaml'), text);
      return checkConfig(await readRawConfig({ cwd, env: {} }), PLUGINS);
    };
    const old = await read(before);
    for (const [name, text] of Object.entries(renewed)) writeFileSync(path.join(cwd, name), text);
    return diffConfigs(old, await read(after)).map(formatChange);
  };

  it('include new contents of files with the same names, without the key', async () => {
    const reported = await changesOf(tls(...pair), tls(...pair), {
      ...files,
      'own.crt': other.cert,
      'own.key': other.key,
    });
    expect(reported).to.have.lengthOf(2);
    expect(reported[0]).to.match(
      /^~ server\.tls\.cert \(the file\): "number \w+, until \d{4}-\d\d-\d\d" → "number \w+, until [\d-]+"$/,
    );
    expect(reported[1]).to.equal('~ server.tls.key (the file): changed secret');
  });

  for (const [title, before, after, isFixed] of [
    ['TLS where there was none', 'billing: track', tls(...pair), true],
    ['no TLS where there was', tls(...pair), 'billing: track', true],
    ['certificates of clients where none were asked for', tls(...pair), tls(...pair, 'clientCa: own.crt'), true],
    ['none where they were', tls(...pair, 'clientCa: own.crt'), tls(...pair), true],
    [
      'that they are optional',
      tls(...pair, 'clientCa: own.crt'),
      tls(...pair, 'clientCa: own.crt', 'clientAuth: optional'),
      true,
    ],
    ['another authority', tls(...pair, 'clientCa: own.crt'), tls(...pair, 'clientCa: chain.crt'), false],
    ['another oldest version', tls(...pair), tls(...pair, 'minVersion: TLSv1.3'), false],
  ] as const)
    it(`${isFixed ? 'need a restart for' : 'apply immediately for'} ${title}`, async () => {
      const reported = await changesOf(before, after);
      expect(reported).to.not.deep.equal([]);
      for (const line of reported) expect(line.includes('(after a restart)'), line).to.equal(isFixed);
    });
});

describe('warnings about how a gateway listens', () => {
  const messages = (server: Partial<Parameters<typeof listenWarnings>[0]>): readonly string[] =>
    listenWarnings({ host: '0.0.0.0', trustProxy: 0, ...server }).map(({ message }) => message);
  const open = createSelfSigned();
  const withTls = { cert: open.cert, key: open.key, minVersion: 'TLSv1.2', clientAuth: 'required' } as const;

  for (const host of ['0.0.0.0', '::', '10.1.2.3', 'gateway.internal', '::ffff:10.0.0.1'])
    it(`report that ${host} is open to the network without TLS or a trusted proxy`, () => {
      expect(messages({ host }).join()).to.include(`listens on ${host} without TLS`);
      expect(messages({ host, trustProxy: 1 })).to.deep.equal([]);
    });

  for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost', '::ffff:127.0.0.1'])
    it(`do not report ${host}, which only this machine reaches`, () => {
      expect(messages({ host })).to.deep.equal([]);
    });

  it('report a certificate that has expired, expires within two weeks, or is not yet valid', () => {
    const day = 86_400_000;
    const at = (days: number): string | undefined =>
      certificateWarnings({ tls: withTls }, Date.now() + days * day)[0]?.message;
    expect(at(2)).to.include('expired on');
    expect(at(0)).to.include('expires on');
    expect(at(-5)).to.include('not valid before');
    expect(messages({ tls: withTls }).join()).to.include('expires on');
  });
});
