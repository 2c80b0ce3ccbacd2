// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { expect } from 'chai';
import { removeFolders } from '../support/folders.ts';
import { checkText } from './config-plugins.ts';

describe('references in a configuration', () => {
  afterEach(removeFolders);

  it('become numbers and booleans if the schema requires them', async () => {
    const text =
      'server: { port: "${PORT}", workers: "${N:-3}", trustProxy: "${TRUST}" }\nauth: { api-key: { bootstrap: "${B}" } }\n';
    const { server, instances } = await checkText(text, { env: { PORT: '9000', TRUST: 'false', B: 'true' } });
    expect(server).to.include({ port: 9000, workers: 3, trustProxy: 0 });
    expect(instances.at(-1)?.config).to.deep.equal({ bootstrap: true });
  });

  it('stay texts if the schema requires texts', async () => {
    const text = "providers: { acme: { apiKey: '${KEY}', models: ['${MODEL}'] } }\n";
    const { instances } = await checkText(text, { env: { KEY: '0123', MODEL: '42' } });
    expect(instances.at(-1)?.config).to.deep.equal({ apiKey: '0123', models: ['42'] });
  });

  it('omit a secret whose variable is missing or empty', async () => {
    const text = "providers:\n  acme: { apiKey: '${UNSET}' }\n  more: { plugin: acme, apiKey: '${EMPTY}' }\n";
    const { instances } = await checkText(text, { env: { EMPTY: '' } });
    expect(instances.slice(-2).map(({ config }) => config)).to.deep.equal([{}, {}]);
  });

  it('read files relative to the configuration, trimmed', async () => {
    const text = "providers: { acme: { apiKey: '${file:secrets/key}' } }\n";
    const { instances } = await checkText(text, { files: { 'secrets/key': ' sk-1\n' } });
    expect(instances.at(-1)?.config).to.deep.equal({ apiKey: 'sk-1' });
  });

  it('see .env, and the real environment over it', async () => {
    const text = "server: { host: '${HOST_A}', port: '${PORT_A}' }\n";
    const { server } = await checkText(text, { files: { '.env': 'HOST_A=::1\nPORT_A=1\n' }, env: { PORT_A: '2' } });
    expect(server).to.include({ host: '::1', port: 2 });
  });

  it('are not resolved inside their own values', async () => {
    const { models } = await checkText("providers: { acme: {} }\nmodels: { a: '${A}' }\n", { env: { A: 'acme/${B}' } });
    expect(models['a']).to.deep.equal(['acme/${B}']);
  });

  it('report the sources of values', async () => {
    const text = "server: { host: '${A}' }\nproviders: { acme: { apiKey: '${file:key}' } }\n";
    const { sources, file } = await checkText(text, { env: { A: '::1' }, files: { key: 'sk-1' } });
    expect(Object.fromEntries(sources)).to.deep.include({
      '/server': `${file}:1`,
      '/server/host': 'env A',
      '/providers/acme': `${file}:2`,
      '/providers/acme/apiKey': 'file key',
    });
    // Defaults have no source, and neither has a section that the file inherits.
    for (const pointer of ['/server/port', '/store', '/auth']) expect(sources.has(pointer), pointer).to.equal(false);
  });

  it('report the line of a value, also of one repeated by a YAML alias', async () => {
    const text = 'providers: { acme: { apiKey: k } }\nmodels:\n  a: &both\n    - acme/m\n  b: *both\n';
    const { sources, file } = await checkText(text, {});
    expect([sources.get('/models/a/0'), sources.get('/models/b/0')]).to.deep.equal([`${file}:4`, `${file}:5`]);
  });
});

describe('the output of config print', () => {
  afterEach(removeFolders);

  it('is the effective configuration, without secrets', async () => {
    const text = [
      'store: redis://user:hunter2@db:6379',
      'providers:',
      "  acme: { apiKey: '${KEY}', baseUrl: https://a.example, headers: { authorization: Basic hunter2, x-title: T } }",
      "  more: { plugin: acme, headers: { x-odd: '${file:odd}' } }",
      'policies: { gate: false, meter: false }',
    ].join('\n');
    const config = await checkText(text, { env: { KEY: 'hunter2' }, files: { odd: 'hunter2' } });
    const printable = config.printable();
    expect(JSON.stringify(printable)).not.to.include('hunter2');
    expect(printable).to.deep.include({ store: 'redis://****@db:6379', billing: 'track' });
    expect(printable['providers']).to.deep.equal({
      acme: { apiKey: '****', baseUrl: 'https://a.example', headers: { authorization: '****', 'x-title': '****' } },
      more: { plugin: 'acme', headers: { 'x-odd': '****' } },
    });
  });
});
