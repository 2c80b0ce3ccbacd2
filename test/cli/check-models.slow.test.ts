import { expect } from 'chai';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { runCli } from '../support/processes/cli.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a configuration holds
const KEY = 'baseUrl: http://127.0.0.1:9/v1\napiKey: ${LOCAL_KEY}';

/** Warnings of `tollgate check` for a configuration. */
async function warningsOf(text: string, env: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const folder = makeFolder({ 'tollgate.config.yaml': text });
  const { code, stdout, stderr } = await runCli(['check', '--json'], folder, { env });
  expect(code, stderr).to.equal(0);
  return (JSON.parse(stdout) as { readonly data: { readonly warnings: readonly string[] } }).data.warnings;
}

const local = (more: string, rest = ''): string =>
  `providers:\n  local:\n    plugin: openai-compatible\n${more
    .split('\n')
    .map((line) => `    ${line}\n`)
    .join('')}${rest}`;

describe('G41: tollgate check warns of models that can never be called', () => {
  afterEach(removeFolders);

  const cases: readonly (readonly [
    title: string,
    text: string,
    says: RegExp,
    env?: Readonly<Record<string, string>>,
  ])[] = [
    [
      'a model without a price where money is limited',
      local('baseUrl: http://127.0.0.1:9/v1\nmodels: [mine]', 'billing: enforce\n'),
      /yaml:5:\d+ providers\.local\.models\[0\]: names "local\/mine", which has no known price, and billing is "enforce", so its calls return 403\. Set providers\.local\.prices/,
    ],
    [
      'an alias to a model that its provider does not list',
      local('baseUrl: http://127.0.0.1:9/v1\nmodels: [mine]', 'models: { best: local/other }\n'),
      /yaml:6:\d+ models\.best: names "local\/other", which is not in the list of models of the provider "local", so calls return 404\. Add it/,
    ],
    [
      'a base URL that has the path of a call',
      local('baseUrl: http://127.0.0.1:9/v1/chat/completions'),
      /yaml:4:\d+ providers\.local\.baseUrl: ends with "\/chat\/completions".* Write http:\/\/127\.0\.0\.1:9\/v1\./,
    ],
    [
      'a base URL without the version',
      local('baseUrl: http://127.0.0.1:9'),
      /yaml:4:\d+ providers\.local\.baseUrl: has no path.* Write http:\/\/127\.0\.0\.1:9\/v1,/,
    ],
    [
      'a key in quotes',
      local(KEY),
      /yaml:5:\d+ providers\.local\.apiKey: has quotes around it.* Remove them/,
      { LOCAL_KEY: '"sk-secret"' },
    ],
    [
      'a key with a line end within',
      local(KEY),
      /providers\.local\.apiKey: has line ends/,
      { LOCAL_KEY: 'sk-sec\r\nret' },
    ],
    [
      'a price by the token',
      local('baseUrl: http://127.0.0.1:9/v1\nmodels: [mine]\nprices: { mine: { input: 0.0000025, output: 10 } }'),
      /yaml:6:\d+ providers\.local\.prices\.mine\.input: is (?:0\.0000025|2\.5e-6) .*far too low.* write 2\.5\./,
    ],
    [
      'a price a million times too large',
      local('baseUrl: http://127.0.0.1:9/v1\nmodels: [mine]\nprices: { mine: { input: 1, output: 10000000 } }'),
      /providers\.local\.prices\.mine\.output: is 10000000 .*far too high.* write 10\./,
    ],
  ];
  for (const [title, text, says, env] of cases)
    it(title, async () => {
      const warnings = (await warningsOf(text, env)).filter((each) => !each.includes('server.host'));
      expect(warnings.join('\n')).to.match(says);
      expect(warnings.join('\n')).not.to.include('sk-sec');
    });

  it('and has no warning if all models can be called', async () => {
    const text = local(
      'baseUrl: http://127.0.0.1:9/v1\napiKey: sk-plain\nmodels: [mine]\nprices: { mine: { input: 0.01, output: 75 } }',
      'billing: enforce\nmodels: { best: local/mine }\n',
    );
    expect(await warningsOf(text)).to.deep.equal([]);
  });
});
