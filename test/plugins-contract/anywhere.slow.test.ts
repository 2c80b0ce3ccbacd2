import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { startCli } from '../support/processes/cli.ts';

/** Codec plugin; `typed` is syntax that only TypeScript supports. */
const codec = (typed: string): string => `
import { definePlugin, GatewayError, isGatewayError } from 'tollgate';
import { PROVIDER_OPTIONS, readProviderOptions, failureOfStatus } from 'tollgate/codec';
const NAME${typed} = 'acme';
export default definePlugin({
  name: NAME, kind: 'provider', apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...PROVIDER_OPTIONS } },
  setup(api, config) {
    if (!isGatewayError(new GatewayError('conflict', 'x')) || typeof failureOfStatus !== 'function') throw new Error('wrong copy');
    const codec = {
      request: (input${typed && ': any'}) => ({ path: '/chat', body: input }),
      response: () => ({ id: 'x', object: 'chat.completion', created: 1, model: 'a', choices: [{ index: 0, message: { role: 'assistant', content: 'from acme' }, finish_reason: 'stop' }] }),
      stream: () => ({ push: () => [], end: () => ({ chunks: [], complete: true }) }),
    };
    const transport = async () => ({ status: 200, headers: { 'content-type': 'application/json' }, body: (async function* () { yield Buffer.from('{}'); })() });
    api.provider({ specVersion: 1, vendor: 'acme', ...readProviderOptions(config, { baseUrl: 'https://acme.example', keyRequired: false, models: [{ id: 'a' }] }), transport, error: () => ({ class: 'upstream_error', message: '' }), chat: codec${typed && ' as any'} });
  },
});
`;

describe('a plugin file outside of any npm project (D42)', () => {
  const folder = useTempFolder('anywhere');

  for (const [title, file, text] of [
    ['JavaScript', 'acme.mjs', codec('')],
    ['JavaScript in a .js file of a folder of its own', 'acme-plugin/index.js', codec('')],
    ['TypeScript', 'acme.ts', codec(': string')],
  ] as const)
    it(`in ${title} finds tollgate and tollgate/codec`, async () => {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      if (file.endsWith('.js'))
        writeFileSync(path.join(folder, path.dirname(file), 'package.json'), '{"type":"module"}');
      writeFileSync(path.join(folder, file), text);
      const config = {
        ...{
          store: 'memory:',
          server: { port: 0, drainTimeout: '1s', drainDelay: '0s' },
          auth: { 'api-key': { bootstrap: true } },
        },
        providers: { acme: { plugin: `./${file}` } },
        policies: { overload: false },
      };
      writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify(config));
      const running = startCli(['start'], folder);
      const [, url = ''] = await running.seen(/listens on (http:\S+)/);
      const key = /tg_\w+/.exec(running.stderr())?.[0] ?? '';
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'acme/a', messages: [{ role: 'user', content: 'x' }] }),
      });
      expect(await response.text()).to.include('from acme');
      running.child.kill('SIGTERM');
      expect((await running.finished).code).to.equal(0);
    });

  it('with its own installed tollgate gets that one', async () => {
    const own = path.join(folder, 'node_modules', 'tollgate');
    mkdirSync(own, { recursive: true });
    writeFileSync(
      path.join(own, 'package.json'),
      '{"name":"tollgate","version":"0.0.0","type":"module","exports":"./index.js"}',
    );
    writeFileSync(path.join(own, 'index.js'), 'export const mark = "its own";');
    writeFileSync(
      path.join(folder, 'own.mjs'),
      `import { mark } from 'tollgate'; export default { name: 'own', kind: 'policy', apiVersion: 1, check: () => [{ message: 'has ' + mark }], setup() {} };`,
    );
    const config = { store: 'memory:', providers: { echo: {} }, policies: { own: { plugin: './own.mjs' } } };
    writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify(config));
    const { stderr } = await startCli(['check'], folder).finished;
    expect(stderr).to.include('has its own');
  });
});
