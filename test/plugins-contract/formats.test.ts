import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { ConfigError } from '../../config/problems.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile, startError } from '../support/plugins/plugin-file.ts';

/** Every format that a schema may use, with valid and invalid values. JSON Schema's own formats ignore numbers. */
const FORMATS: readonly (readonly [
  format: string,
  fits: readonly (string | number)[],
  others: readonly (string | number)[],
])[] = [
  ['date', ['2024-02-29'], ['2023-02-29', '2024-2-9', 'today', '2024-13-01', '']],
  [
    'date-time',
    ['2024-02-29T23:59:59Z', '2024-01-01T00:00:00.123+02:00'],
    ['2023-02-29T00:00:00Z', '2024-01-01', '2024-01-01T25:00:00Z', '2024-01-01 00:00:00Z'],
  ],
  ['email', ['a@b.example'], ['a', 'a@', '@b', 'a b@c']],
  [
    'hostname',
    ['localhost', 'api.v1.example', 'xn--nxasmq6b', 'a'.repeat(63)],
    [
      '-a.example',
      'a..b',
      'a_b',
      'a.example:80',
      'https://a',
      '.',
      `${'a'.repeat(64)}.example`,
      `${'a.'.repeat(127)}a`,
    ],
  ],
  ['ipv4', ['192.0.2.1', 5], ['192.0.2', '192.0.2.256', '::1', 'localhost']],
  ['ipv6', ['::1', '2001:db8::1'], ['192.0.2.1', '2001:db8', 'fe80::1%eth0']],
  ['regex', ['^[a-z]+$', String.raw`\p{L}`], ['(', '[', 'a{2,1}', String.raw`\q`]],
  [
    'uri',
    ['https://a.example/b?c=d#e', 'mailto:a@b.example', 'urn:isbn:1'],
    ['a.example', '/b', 'https://', '1:x', 'https://a.example/b c', 'https://a.example/<b>'],
  ],
  ['uri-reference', ['/b?c=d', '#e', '../a', 'https://a.example'], ['https://', '/b c', String.raw`\b`, '/<b>']],
  ['uuid', ['123e4567-e89b-12d3-a456-426614174000'], ['123e4567', '123e4567-e89b-12d3-a456-42661417400g']],
  ['duration', ['500ms', '30d'], ['30', 'x']],
  ['money', ['0.50', '25', 0.25, '0.0000001', 0.000000001], ['0.0000000001', 'x', 0.0000000125, 9_000_001]],
  ['size', ['20mb', '512kb', 1024], ['-1', 'x', -1]],
  ['url', ['https://a.example'], ['ftp://a.example', 'a.example']],
  ['path', ['a/b'], ['a\0b']],
  ['host', ['127.0.0.1', 'localhost'], ['http://localhost', '']],
  ['origin', ['https://a.example', '*'], ['https://a.example/', 'a.example']],
  ['header-value', ['a b'], ['a\nb', 'ā']],
];

const schemaOf = (format: string) => ({ type: 'array', items: { type: ['string', 'number'], format } });
const SCHEMA = {
  type: 'object',
  properties: Object.fromEntries(FORMATS.map(([format]) => [format, schemaOf(format)])),
};

const phone = `{ type: 'object', properties: { number: { type: 'string', format: 'phone' } } }`;

describe('formats in a plugin’s schema', () => {
  let gateway: TestGateway;
  const probe = pluginFile({
    more: `configSchema: ${JSON.stringify(SCHEMA)},`,
    setup: `api.route({ method: 'POST', path: '/x', summary: 'x', auth: 'none', responses: { 200: 'x' }, body: ${JSON.stringify(SCHEMA)}, handler(ctx) { ctx.body = 'fits'; } });`,
  });
  before(async () => {
    gateway = await startGateway({ policies: { probe: { plugin: './probe.mjs' } } }, { files: { 'probe.mjs': probe } });
  });
  after(async () => {
    await gateway.stop();
    removeFolders();
  });

  for (const [format, fits, others] of FORMATS) {
    it(`E40: "${format}" is checked in a configSchema`, async () => {
      const config = JSON.stringify({ policies: { probe: { plugin: './probe.mjs', [format]: [...fits, ...others] } } });
      const cwd = makeFolder({ 'tollgate.config.json': config, 'probe.mjs': probe });
      const error = await loadConfig({ cwd, env: {} }).catch((thrown: unknown) => thrown);
      if (!(error instanceof ConfigError)) throw new Error('all of them are taken');
      expect(error.problems.map(({ path }) => path)).to.deep.equal(
        others.map((_, at) => `policies.probe.${format}[${fits.length + at}]`),
      );
      for (const { message } of error.problems) expect(message).to.match(/^must be (?:an?|the) \w/);
    });

    it(`E40: "${format}" is checked in the body of a route`, async () => {
      expect((await gateway.post('/x', { [format]: fits })).status).to.equal(200);
      for (const text of others) {
        const response = await gateway.post('/x', { [format]: [text] });
        expect(response.status, String(text)).to.equal(400);
        expect(await response.json()).to.have.nested.include({
          'error.param': `${format}[0]`,
          'error.message': `"${format}[0]" must match format "${format}".`,
        });
      }
    });
  }

  const UNKNOWN: readonly (readonly [where: string, kind: string, section: string, plugin: object, message: RegExp])[] =
    [
      [
        'a configSchema',
        'policy',
        'policies',
        { more: `configSchema: ${phone},`, setup: '' },
        /policies\.probe: has the plugin "\.\/acme\.mjs", whose configSchema is invalid: unknown format "phone"; formats are date, /,
      ],
      [
        'the body of a route',
        'policy',
        'policies',
        {
          setup: `api.route({ method: 'POST', path: '/x', summary: 'x', auth: 'none', responses: { 200: 'x' }, body: ${phone}, handler() {} });`,
        },
        /^plugin "probe": the body schema of POST \/x does not compile: unknown format "phone"/,
      ],
      [
        'a shared schema',
        'policy',
        'policies',
        { setup: `api.schema({ $id: 'x', ...${phone} });` },
        /^plugin "probe": the schema "x" does not compile: unknown format "phone"/,
      ],
      [
        'an operation',
        'operation',
        'operations',
        { setup: `api.operation({ name: 'x', request: ${phone}, estimate() {}, attempt() {}, isResponse() {} });` },
        /^plugin "probe": the request of "x" does not compile: unknown format "phone"/,
      ],
      [
        'a dialect',
        'dialect',
        'dialects',
        {
          setup: `const none = () => ''; api.dialect({ name: 'x', request: ${phone}, response: { type: 'object' }, routes: [{ path: '/plain', summary: 'x' }], keepAlive: '', read: none, write: none, stream: none, error: none });`,
        },
        /^plugin "probe": the body schema of POST \/plain does not compile: unknown format "phone"/,
      ],
    ];
  for (const [where, kind, section, plugin, message] of UNKNOWN)
    it(`E40: a format that does not exist stops the start in ${where}, and the message names the plugin and the format`, async () => {
      const file = pluginFile({ setup: '', ...plugin, kind });
      const config = { [section]: { probe: { plugin: './acme.mjs' } } };
      expect(await startError(startGateway(config, { files: { 'acme.mjs': file } }))).to.match(message);
    });

  it('E40: a format is not a property that every object inherits', async () => {
    const file = pluginFile({ setup: '', more: `configSchema: ${phone.replace('phone', 'constructor')},` });
    const config = { policies: { probe: { plugin: './acme.mjs' } } };
    expect(await startError(startGateway(config, { files: { 'acme.mjs': file } }))).to.include(
      'unknown format "constructor"',
    );
  });
});
