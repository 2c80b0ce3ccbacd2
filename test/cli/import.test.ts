import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { runImport } from '../../cli/import/index.ts';
import { CliError } from '../../cli/io.ts';
import { parseYaml } from '../../config/sources.ts';
import { readObject } from '../../contract/index.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';
import { respondWith, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const FIXTURES = path.join(import.meta.dirname, '..', 'fixtures', 'import');
const OK = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'facebook/opt-125m',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1_000_000, completion_tokens: 100_000, total_tokens: 1_100_000 },
};

interface Finding {
  readonly at: string;
  readonly kind: string;
  readonly note: string;
}

describe('the import from another gateway', () => {
  const folder = useTempFolder('import');

  async function importFrom(what: string, source: string, options: Record<string, string | boolean> = {}) {
    const out = path.join(folder, what);
    const { terminal, out: stdout, err } = captureTerminal();
    const given = { out, force: true, ...options };
    await runImport({ terminal, globals: { json: true }, args: [what, source], options: given });
    const { data } = JSON.parse(stdout()) as { data: { findings: Finding[]; counts: Record<string, number> } };
    const text = await readFile(path.join(out, 'tollgate.config.yaml'), 'utf8');
    return { out, text, config: parseYaml(text).value as Record<string, Record<string, unknown>>, ...data, err: err() };
  }

  const refusal = async (run: Promise<unknown>): Promise<CliError> => {
    const error = await run.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(CliError);
    return error as CliError;
  };

  const write = async (name: string, text: string): Promise<string> => {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  };

  it('converts aliases, providers, prices and fallbacks of LiteLLM, with a finding for each field', async () => {
    const { config, findings, counts, err } = await importFrom('litellm', path.join(FIXTURES, 'litellm.yaml'));
    expect(config['server']).to.deep.equal({ port: 4000 });
    expect(config['providers']).to.deep.include({
      azure: {
        resource: 'my-endpoint-europe',
        apiVersion: '2024-10-21',
        deployments: { 'gpt-4o-eu': 'gpt-4o' },
        apiKey: `\${AZURE_API_KEY_EU}`,
      },
      'azure-2': { plugin: 'azure', resource: 'my-endpoint-canada', apiKey: `\${AZURE_API_KEY_CA}` },
    });
    expect(config['models']).to.deep.include({
      claude: {
        strategy: 'least-latency',
        timeouts: { total: '10s' },
        targets: [
          'anthropic/claude-sonnet-5',
          { to: 'azure/gpt-4o-eu', order: 2 },
          { to: 'azure-2/gpt-4o-ca', order: 2 },
        ],
      },
    });
    expect(config['models']?.['gpt-4o']).to.deep.include({ onOverflow: 'anthropic/claude-sonnet-5' });
    expect(config['models']?.['gpt-4']).to.deep.include({ targets: ['azure/gpt-4o-eu', 'azure-2/gpt-4o-ca'] });
    expect(config['policies']).to.deep.include({ 'alias-parameters': { models: { claude: { temperature: 0.2 } } } });
    expect(config['responseCache']).to.deep.equal({ ttl: '600s' });
    const of = (at: string) => findings.filter((each) => each.at === at).map(({ kind }) => kind);
    expect(of('litellm_settings.drop_params')).to.deep.equal(['kept']);
    expect(of('litellm_settings.callbacks')).to.deep.equal(['kept', 'emulated', 'impossible']);
    expect(of('litellm_settings.nonsense')).to.deep.equal(['impossible']);
    expect(of('general_settings.master_key')).to.deep.equal(['emulated']);
    expect(of('guardrails[0]')).to.deep.equal(['emulated']);
    expect(counts['impossible']).to.be.greaterThan(3);
    expect(err).to.include('tollgate start').and.not.include('Before the start');
  });

  it('assigns the named credentials to deployments, and reports each omitted secret of an unknown kind', async () => {
    const source = path.join(FIXTURES, 'litellm-docs', 'credentials.yaml');
    const { config, text, out, findings } = await importFrom('litellm', source);
    expect(config['providers']).to.deep.include({
      azure: { baseUrl: `\${AZURE_API_BASE}/openai`, apiVersion: '2024-10-21', apiKey: `\${AZURE_API_KEY}` },
      // A deployment without a key uses the one in the environment, as LiteLLM does.
      openai: { apiKey: `\${OPENAI_API_KEY}`, models: ['*'] },
    });
    expect(config['models']).to.deep.include({ small: 'openai-compatible/small', 'gpt-4o': 'azure/gpt-4o' });
    const said = (at: string) => findings.filter((each) => each.at === at).map(({ note }) => note);
    for (const at of [
      'model_list[4].litellm_params.watsonx_zen_api_key',
      'model_list[4].litellm_params.oci_signer',
      'general_settings.ui_password',
    ])
      expect(said(at).join(), at).to.include('unknown kind of secret, skipped');
    expect(said('model_list[2].litellm_params.litellm_credential_name').join()).to.include('has no entry of this name');
    expect(said('model_list[3].litellm_params.organization').join()).to.include('a provider for each');
    const written = text + (await readFile(path.join(out, '.env'), 'utf8')) + JSON.stringify(findings);
    for (const secret of ['zen-literal', 'oci-literal', 'ui-literal']) expect(written).not.to.include(secret);
  });

  it('omits an invalid header, an expiring token, and an unknown fallback', async () => {
    const quick = await importFrom('litellm', path.join(FIXTURES, 'litellm-docs', 'quick-start.yaml'));
    expect(quick.config['providers']?.['openai']).to.have.deep.property('headers', {
      'openai-organization': 'org-acme',
    });
    expect(quick.text).not.to.include('eyJ0eXAi');
    expect(quick.config['models']).to.have.property('*', 'openai-2/*');
    const file = await write(
      'no-fallback.yaml',
      'model_list: [{ model_name: a, litellm_params: { model: groq/b } }]\nlitellm_settings: { fallbacks: [{ a: [gone] }] }\n',
    );
    expect((await importFrom('litellm', file)).findings).to.deep.include({
      ...{ at: 'fallbacks: gone', kind: 'impossible' },
      note: 'model_list has no supported model of this name',
    });
  });

  it('signs for Bedrock and Vertex as in the file', async () => {
    const file = await write(
      'clouds.yaml',
      `model_list:
  - { model_name: a, litellm_params: { model: bedrock/converse/amazon.nova-2-lite-v1:0, aws_region_name: us-east-1 } }
  - { model_name: b, litellm_params: { model: bedrock/amazon.nova-2-lite-v1:0, aws_region_name: eu-west-1, aws_access_key_id: os.environ/ID, aws_secret_access_key: very-secret } }
  - { model_name: c, litellm_params: { model: vertex_ai/gemini-3.8-flash, vertex_project: acme, vertex_location: europe-west1, vertex_credentials: keys/acme.json } }
  - { model_name: d, litellm_params: { model: bedrock/amazon.nova-2-lite-v1:0, aws_region_name: eu-west-1, aws_profile_name: work, aws_bedrock_runtime_endpoint: "https://bedrock.acme.example/" } }
  - { model_name: e, litellm_params: { model: azure/gpt-4o, api_base: "https://acme.openai.azure.com", tenant_id: os.environ/TENANT, client_id: app, client_secret: entra-word } }
`,
    );
    const { config, text } = await importFrom('litellm', file);
    expect(config['models']).to.deep.include({ a: 'bedrock/amazon.nova-2-lite-v1:0' });
    expect(config['providers']?.['bedrock']).to.deep.include({
      aws: {
        region: 'us-east-1',
        accessKeyId: `\${AWS_ACCESS_KEY_ID}`,
        secretAccessKey: `\${AWS_SECRET_ACCESS_KEY}`,
      },
    });
    expect(config['providers']?.['bedrock-2']).to.deep.include({
      aws: { region: 'eu-west-1', accessKeyId: `\${ID}`, secretAccessKey: `\${IMPORTED_AWS_SECRET_ACCESS_KEY}` },
    });
    expect(config['providers']?.['vertex']).to.deep.include({
      project: 'acme',
      location: 'europe-west1',
      google: { serviceAccount: `\${file:keys/acme.json}` },
    });
    expect(config['providers']?.['bedrock-3']).to.deep.include({
      ...{ aws: { region: 'eu-west-1', profile: 'work' }, baseUrl: 'https://bedrock.acme.example' },
    });
    expect(config['providers']?.['azure']).to.deep.equal({
      resource: 'acme',
      entra: { tenant: `\${TENANT}`, clientId: 'app', clientSecret: `\${IMPORTED_ENTRA_SECRET}` },
    });
    expect(text).not.to.include('very-secret').and.not.include('entra-word');
  });

  it('moves secrets of the file to .env, which only its owner can read, and nowhere else', async () => {
    const { out, text, findings, err } = await importFrom('litellm', path.join(FIXTURES, 'litellm.yaml'));
    const env = path.join(out, '.env');
    expect(await readFile(env, 'utf8')).to.include('IMPORTED_ANTHROPIC_API_KEY="sk-ant-123456789"');
    expect((await stat(env)).mode & 0o777).to.equal(0o600);
    const said = text + JSON.stringify(findings) + err;
    for (const secret of ['sk-ant-123456789', 'sk-1234', 'u:secret']) expect(said).not.to.include(secret);
    // A key of the environment with the usual name remains separate.
    expect(text).to.include(`\${ANTHROPIC_API_KEY}`).and.include(`\${IMPORTED_ANTHROPIC_API_KEY}`);
  });

  it('runs: a caller of LiteLLM’s model gets a response of its vendor, at LiteLLM’s price', async () => {
    const upstream = await startScriptedUpstream();
    const file = await write(
      'live.yaml',
      (await readFile(path.join(FIXTURES, 'litellm.yaml'), 'utf8')).replace('http://vendor.example', upstream.url),
    );
    const { config, out } = await importFrom('litellm', file);
    const { server: _, auth: __, ...rest } = config;
    const gateway = await startGateway(rest, { files: { '.env': await readFile(path.join(out, '.env'), 'utf8') } });
    try {
      upstream.script(respondWith(200, OK));
      const body = { model: 'vllm-models', messages: [{ role: 'user', content: 'Hi' }] };
      const response = await gateway.post('/v1/chat/completions', body);
      expect(await response.json()).to.have.nested.property('choices[0].message.content', 'hello');
      expect(upstream.requests[0]?.headers['authorization']).to.equal('Bearer none');
      expect(response.headers.get('x-tollgate-cost-usd')).to.match(/^3\.50*$/);
    } finally {
      await gateway.stop();
      await upstream.close();
    }
  });

  it('converts a Portkey config to an alias, and its virtual keys to providers with the same names', async () => {
    const { config, findings } = await importFrom('portkey', path.join(FIXTURES, 'portkey.json'));
    expect(config['providers']).to.have.all.keys('openai-virtual-key-1', 'azure', 'anthropic');
    expect(config['providers']?.['openai-virtual-key-1']).to.deep.include({
      plugin: 'openai',
      apiKey: `\${OPENAI_VIRTUAL_KEY_1_KEY}`,
    });
    expect(config['models']).to.deep.equal({
      portkey: {
        strategy: 'weighted',
        targets: [
          { to: 'openai-virtual-key-1/gpt-5-mini', weight: 0.7 },
          { to: 'azure/d1', weight: 0.3 },
          { to: 'anthropic/claude-sonnet-5', order: 2 },
        ],
      },
    });
    expect(findings).to.deep.include({
      at: 'targets[0].targets[0].virtual_key',
      kind: 'emulated',
      note: 'Portkey stores the vendor’s key; set the variable OPENAI_VIRTUAL_KEY_1_KEY to it',
    });
  });

  it('runs: clients of Portkey name its virtual keys, its catalog and its configs, and change only the base URL', async () => {
    const upstream = await startScriptedUpstream(({ send }) => send(respondWith(200, OK)));
    const own = { virtual_key: 'openai-mine', custom_host: `${upstream.url}/v1`, override_params: { model: 'gpt-4o' } };
    const { config } = await importFrom('portkey', await write('pc-chat.json', JSON.stringify(own)));
    const { server: _, auth: __, ...rest } = config;
    const gateway = await startGateway(rest, { env: { OPENAI_MINE_KEY: 'key-of-openai' } });
    const sendRequest = async (model: string, headers: Record<string, string>) => {
      const response = await fetch(`${gateway.url}/portkey/v1/chat/completions`, {
        method: 'POST',
        headers: { 'x-portkey-api-key': gateway.key, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
      });
      expect(response.status, await response.text()).to.equal(200);
      return [
        upstream.requests.at(-1)?.headers['authorization'],
        readObject(upstream.requests.at(-1)?.json())['model'],
      ];
    };
    try {
      expect(await sendRequest('gpt-4o', { 'x-portkey-virtual-key': 'openai-mine' })).to.deep.equal([
        'Bearer key-of-openai',
        'gpt-4o',
      ]);
      expect(await sendRequest('gpt-4o-mini', { 'x-portkey-provider': '@openai-mine' })).to.include('gpt-4o-mini');
      expect(await sendRequest('@openai-mine/gpt-4o-mini', {})).to.include('gpt-4o-mini');
      expect(await sendRequest('any', { 'x-portkey-config': 'pc-chat' })).to.include('gpt-4o');
    } finally {
      await gateway.stop();
      await upstream.close();
    }
  });

  it('converts each target of Portkey’s conditions to an alias: by its model if they require one', async () => {
    const source = path.join(FIXTURES, 'portkey-docs', 'conditional.json');
    const { config, findings } = await importFrom('portkey', source);
    expect(config['models']).to.deep.equal({
      conditional: 'openai-compatible/small',
      'conditional-finetuned': 'openai-virtual-key/gpt-4o',
      smartest: 'openai-virtual-key/gpt-4o',
      'conditional-base': 'openai-compatible/small',
    });
    expect(findings.find(({ at }) => at === 'strategy.conditions[0]')).to.deep.include({
      kind: 'emulated',
      note: 'callers’ metadata does not select targets; these callers must use the model "conditional-finetuned"',
    });
  });

  it('reads models of Portkey’s catalog, keys of AWS, and the age of a cache in seconds', async () => {
    const catalog = {
      cache: { mode: 'simple', max_age: 120 },
      strategy: { mode: 'fallback' },
      targets: [
        { override_params: { model: '@openai-prod/gpt-4o' } },
        {
          ...{
            provider: 'bedrock',
            aws_region: 'eu-west-1',
            aws_access_key_id: 'AKID',
            aws_secret_access_key: 'aws-word',
          },
          override_params: { model: 'amazon.nova-2-lite-v1:0' },
        },
      ],
    };
    const { config, text } = await importFrom('portkey', await write('catalog.json', JSON.stringify(catalog)));
    expect(config['responseCache']).to.deep.equal({ ttl: '120s' });
    expect(config['models']?.['catalog']).to.deep.equal({
      targets: ['openai-prod/gpt-4o', { to: 'bedrock/amazon.nova-2-lite-v1:0', order: 2 }],
    });
    expect(config['providers']?.['bedrock']).to.have.nested.property(
      'aws.secretAccessKey',
      `\${IMPORTED_AWS_SECRET_ACCESS_KEY}`,
    );
    expect(text).not.to.include('aws-word');
  });

  it('converts each file to an alias in a folder of Portkey’s', async () => {
    await write('configs/cheap.json', '{"provider":"openai","override_params":{"model":"gpt-5-mini"}}');
    await write('configs/any.json', '{"provider":"groq"}');
    await write('configs/notes.txt', 'not a config');
    const { config } = await importFrom('portkey', path.join(folder, 'configs'));
    expect(config['models']).to.deep.equal({ cheap: 'openai/gpt-5-mini', 'any/*': 'groq/*' });
  });

  it('combines Bifrost keys that differ only by weight in one provider', async () => {
    const keys = [
      { name: 'a', value: 'env.OPENAI_A', models: ['*'], weight: 0.7 },
      { name: 'b', value: 'env.OPENAI_B', models: ['*'], weight: 0.3 },
    ];
    const { config } = await importFrom(
      'bifrost',
      await write('pool.json', JSON.stringify({ providers: { openai: { keys } } })),
    );
    expect(config['providers']).to.deep.equal({
      openai: {
        apiKeys: [
          { name: 'key-1', key: `\${OPENAI_A}`, weight: 0.7 },
          { name: 'key-2', key: `\${OPENAI_B}`, weight: 0.3 },
        ],
        models: ['*'],
      },
    });
    expect(config['models']).to.equal(undefined);
  });

  it('converts each Bifrost key with other models to a provider, and lists the required variables', async () => {
    const { config, err } = await importFrom('bifrost', path.join(FIXTURES, 'bifrost.json'));
    expect(config['server']).to.deep.equal({ port: 8080, cors: { origins: ['*'] }, bodyLimit: '100mb' });
    expect(config['models']).to.deep.equal({
      'gpt-5': {
        strategy: 'weighted',
        targets: [
          { to: 'openai/gpt-5', weight: 0.7 },
          { to: 'openai-2/gpt-5', weight: 0.3 },
        ],
      },
    });
    expect(err).to.include('Before the start').and.include('AZ_ENDPOINT');
  });

  it('refuses an unreadable file, and writes nothing', async () => {
    const empty = await write('empty.yaml', 'model_list: []\n');
    const broken = await write('broken.yaml', 'a: [1\nb: }');
    const list = await write('list.yaml', '- 1\n');
    const cases: [string[], RegExp][] = [
      [['litellm', path.join(folder, 'gone.yaml')], /does not exist/],
      [['litellm'], /the file of LiteLLM is missing/],
      [['helicone', 'x.yaml'], /import from "helicone" is not supported/],
      [['litellm', empty], /has no vendor/],
      [['litellm', broken], /broken\.yaml:\d+:\d+ /],
      [['bifrost', list], /map of settings/],
      [['bifrost', FIXTURES], /has no configuration of Bifrost/],
    ];
    const out = path.join(folder, 'never');
    for (const [args, words] of cases) {
      const { terminal } = captureTerminal();
      const error = await refusal(runImport({ terminal, globals: {}, args, options: { out } }));
      expect(error.message, args.join(' ')).to.match(words);
    }
    expect(await stat(out).catch(() => undefined)).to.equal(undefined);
  });

  it('replaces nothing without --force', async () => {
    const source = path.join(FIXTURES, 'bifrost.json');
    const { out } = await importFrom('bifrost', source);
    const { terminal } = captureTerminal();
    const again = runImport({ terminal, globals: {}, args: ['bifrost', source], options: { out } });
    expect((await refusal(again)).message).to.match(/tollgate\.config\.yaml already exist/);
  });

  it('treats names that look like code or another field as plain names', async () => {
    const odd = await write(
      'odd.yaml',
      `model_list:
  - model_name: "\${HOME}"
    litellm_params: { model: "openai/a", api_base: "https://own.example/\${HOME}", api_key: "x" }
  - { model_name: x }
  - nonsense
environment_variables: { "A B": 1, __proto__: y }
`,
    );
    const { text, findings } = await importFrom('litellm', odd);
    expect(text).to.include(`https://own.example/$\${HOME}`);
    expect(
      findings.filter(({ at }) => at.startsWith('model_list[')).map(({ at, kind }) => [at, kind]),
    ).to.deep.include.members([
      ['model_list[1]', 'impossible'],
      ['model_list[2]', 'impossible'],
    ]);
  });
});
