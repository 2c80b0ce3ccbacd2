// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.

/** Configuration that passes the schemas of single values and that no gateway can start with. */
export interface WrongSettings {
  readonly title: string;
  readonly text: string;
  /** Additional files in the folder of the configuration. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Beginning of the problem, after the file's name. */
  readonly says: string;
}

const STRONG = 'x7Qe0vTn4LrPz2Ws9KdYb6HcUf1MgJa8';
const ISSUER = 'issuer: https://idp.example, audience: gate';
const agents = (text: string): string => `providers: { echo: {} }\nmodels: { fast: echo/echo }\nagents:\n  ${text}\n`;
const team = (text: string): string => agents(`team: { model: fast, agents: { ${text} } }`);
const jwt = (text: string): string => `auth:\n  jwt: { ${text} }\n`;
const CLIENT = 'issuer: https://idp.example, clientId: gate';
const openid = (text: string): string => `auth:\n  openid: { ${text} }\n`;

/** Problems that only plugins detect. */
export const WRONG_SETTINGS: readonly WrongSettings[] = [
  {
    title: 'a pepper that is short',
    text: 'auth:\n  api-key: { pepper: abc }\n',
    says: '2:22 auth.api-key.pepper: has 3 bytes',
  },
  {
    title: 'a pepper out of an example',
    text: `auth:\n  api-key: { pepper: change-me-${STRONG} }\n`,
    says: '2:22 auth.api-key.pepper: looks like a placeholder',
  },
  {
    title: 'an old pepper that repeats itself',
    text: `auth:\n  api-key: { pepper: ${STRONG}, previousPeppers: [${'ab'.repeat(20)}] }\n`,
    says: '2:74 auth.api-key.previousPeppers[0]: ',
  },
  {
    title: 'a file of the pepper that is damaged',
    text: 'store: sqlite:./data\nauth:\n  api-key: {}\n',
    files: { 'data/pepper': 'short' },
    says: '3:3 auth.api-key: has an invalid file',
  },
  { title: 'a short shared secret', text: jwt(`${ISSUER}, secret: abc`), says: '2:63 auth.jwt.secret: has 3 bytes' },
  {
    title: 'a secret that is too short for its algorithm',
    text: jwt(`${ISSUER}, secret: ${STRONG}, algorithms: [HS512]`),
    says: '2:63 auth.jwt.secret: has 32 bytes, and HS512 needs 64',
  },
  {
    title: 'an algorithm of public keys for a shared secret',
    text: jwt(`${ISSUER}, secret: ${STRONG}, algorithms: [RS256]`),
    says: '2:109 auth.jwt.algorithms: has RS256',
  },
  {
    title: 'an algorithm of shared secrets for public keys',
    text: jwt(`${ISSUER}, algorithms: [HS256]`),
    says: '2:67 auth.jwt.algorithms: has HS256',
  },
  {
    title: 'an OpenID provider over plain http',
    text: openid('issuer: http://idp.example, clientId: gate, publicUrl: https://gate.example'),
    says: '2:21 auth.openid.issuer: must be an https URL',
  },
  {
    title: 'a public URL over plain http',
    text: openid(`${CLIENT}, publicUrl: http://gate.example`),
    says: '2:69 auth.openid.publicUrl: must be an https URL',
  },
  {
    title: 'a public URL with a path',
    text: openid(`${CLIENT}, publicUrl: https://gate.example/llm`),
    says: '2:69 auth.openid.publicUrl: must be an https URL',
  },
  {
    title: 'a scope of two words',
    text: openid(`${CLIENT}, publicUrl: https://gate.example, scopes: ['a b']`),
    says: '2:100 auth.openid.scopes[0]: is not a scope',
  },
  {
    title: 'a session that never ends',
    text: openid(`${CLIENT}, publicUrl: https://gate.example, sessionFor: 400d`),
    says: '2:103 auth.openid.sessionFor: must be from 1m to 30d, but is 400d',
  },
  {
    title: 'a session that is over at once',
    text: openid(`${CLIENT}, publicUrl: https://gate.example, idleFor: 10s`),
    says: '2:100 auth.openid.idleFor: must be from 1m to 30d, but is 10s',
  },
  {
    title: 'two ways to verify tokens',
    text: jwt(`${ISSUER}, jwksFile: ./keys.json, jwksUri: https://idp.example/keys`),
    says: '2:87 auth.jwt.jwksUri: cannot be combined with jwksFile',
  },
  {
    title: 'a file of keys that is missing',
    text: jwt(`${ISSUER}, jwksFile: ./keys.json`),
    says: '2:65 auth.jwt.jwksFile: cannot be read from ',
  },
  {
    title: 'a file of keys that is no JSON',
    text: jwt(`${ISSUER}, jwksFile: ./keys.json`),
    files: { 'keys.json': '{' },
    says: '2:65 auth.jwt.jwksFile: is invalid',
  },
  {
    title: 'a file of keys without a key that can verify',
    text: jwt(`${ISSUER}, jwksFile: ./keys.json`),
    files: { 'keys.json': '{"keys":[{"kty":"oct","k":"eA"}]}' },
    says: '2:65 auth.jwt.jwksFile: is invalid: the file contains no key',
  },
  {
    title: 'keys that would be fetched without TLS',
    text: jwt(`${ISSUER}, jwksUri: http://idp.example/keys`),
    says: '2:64 auth.jwt.jwksUri: must be an https URL',
  },
  {
    title: 'an issuer that is only a name',
    text: jwt('issuer: acme, audience: gate'),
    says: '2:18 auth.jwt.issuer: must be an https URL',
  },
  {
    title: 'a clock tolerance of minutes',
    text: jwt(`${ISSUER}, clockTolerance: 5m`),
    says: '2:71 auth.jwt.clockTolerance: must be at most 60s, but is 5m',
  },
  {
    title: 'an enforced balance that need not be known',
    text: 'billing: enforce\npolicies:\n  accounts: { onStoreFailure: open }\n',
    says: '3:31 policies.accounts.onStoreFailure: is open',
  },
  {
    title: 'Azure without an address',
    text: 'providers:\n  azure: { apiKey: k }\n',
    says: '2:3 providers.azure: needs `resource` or `baseUrl`',
  },
  {
    title: 'a second Azure without an address',
    text: 'providers:\n  mine: { plugin: azure, apiKey: k }\n',
    says: '2:3 providers.mine: needs `resource` or `baseUrl`',
  },
  {
    title: 'any OpenAI-compatible server without an address',
    text: 'providers:\n  local: { plugin: openai-compatible }\n',
    says: '2:3 providers.local: needs "baseUrl"',
  },
  {
    title: 'an invalid header name',
    text: 'providers:\n  openai: { headers: { "x y": a } }\n',
    says: '2:24 providers.openai.headers["x y"]: is not an allowed name',
  },
  {
    title: 'a header that would be two',
    text: 'providers:\n  openai: { headers: { x-a: "b\\r\\nhost: c" } }\n',
    says: '2:29 providers.openai.headers.x-a: must be the value of a header',
  },
  {
    title: 'a team on a model that is no alias',
    text: agents('team: { model: fats }'),
    says: '4:18 agents.team.model: refers to the model "fats", which is not an alias',
  },
  {
    title: 'a team on a provider that is not there',
    text: agents('team: { model: openia/gpt-5 }'),
    says: '4:18 agents.team.model: refers to the provider "openia"',
  },
  {
    title: 'an agent on a model that is no alias',
    text: team('law: { when: law, instructions: be brief, model: smart }'),
    says: '4:83 agents.team.agents.law.model: refers to the model "smart"',
  },
  {
    title: 'a router on a provider that is not there',
    text: agents('team: { model: fast, router: { model: opnai/gpt-5 } }'),
    says: '4:41 agents.team.router.model: refers to the provider "opnai"',
  },
  {
    title: 'the medical agents on a model that is no alias',
    text: agents('medical: { model: clever }'),
    says: '4:21 agents.medical.model: refers to the model "clever"',
  },
  {
    title: 'a reviewer on a model that is no alias',
    text: agents('medical: { model: fast, reviewModel: echo }'),
    says: '4:40 agents.medical.reviewModel: refers to the model "echo"',
  },
  {
    title: 'an agent without a line for the router',
    text: team('law: { instructions: be brief }'),
    says: '4:39 agents.team.agents.law: needs "when"',
  },
  {
    title: 'an agent without instructions',
    text: team('law: { when: law }'),
    says: '4:39 agents.team.agents.law: needs "instructions"',
  },
  {
    title: 'an agent with a name of the team’s own',
    text: team('writer: { when: always, instructions: write }'),
    says: '4:42 agents.team.agents.writer: has a reserved name',
  },
  {
    title: 'a tool that no plugin has',
    text: team('law: { when: law, instructions: be brief, tools: [rga] }'),
    says: '4:84 agents.team.agents.law.tools[0]: refers to "rga"',
  },
  {
    title: 'a knowledge base without its folder',
    text: agents('rag: { folder: ./knowledge }'),
    says: '4:18 agents.rag.folder: is not a folder',
  },
  {
    title: 'a knowledge base that is a file',
    text: agents('rag: { folder: ./a.md }'),
    files: { 'a.md': 'a' },
    says: '4:18 agents.rag.folder: is not a folder',
  },
  {
    title: 'a knowledge base that holds the configuration',
    text: agents('rag: { folder: . }'),
    says: '4:18 agents.rag.folder: contains the gateway’s configuration',
  },
  {
    title: 'a rule for a folder that is written otherwise',
    text: agents('rag: { folder: ./k, access: { HR: { users: [a] } } }'),
    files: { 'k/hr/a.md': 'a' },
    says: '4:37 agents.rag.access.HR: is not a folder of the knowledge base',
  },
  {
    title: 'a rule that names everybody and some',
    text: agents('rag: { folder: ./k, access: { hr: { everybody: true, users: [a] } } }'),
    files: { 'k/hr/a.md': 'a' },
    says: '4:37 agents.rag.access.hr: combines everybody with users',
  },
  {
    title: 'a rule for a plan that is not there',
    text: agents('rag: { folder: ./k, access: { hr: { plans: [pro] } } }'),
    files: { 'k/hr/a.md': 'a' },
    says: '4:47 agents.rag.access.hr.plans[0]: refers to the plan "pro"',
  },
  {
    title: 'a rule that holds a whole key',
    text: agents(`rag: { folder: ./k, access: { hr: { keys: [tg_${'a'.repeat(12)}_${'b'.repeat(49)}] } } }`),
    files: { 'k/hr/a.md': 'a' },
    says: '4:46 agents.rag.access.hr.keys[0]: contains a whole API key',
  },
  {
    title: 'a knowledge base with an unknown model of embeddings',
    text: agents('rag: { folder: ./k, embeddings: openai/text-embedding-3-small }'),
    files: { 'k/a.md': 'a' },
    says: '4:35 agents.rag.embeddings: refers to the provider "openai"',
  },
  {
    title: 'an origin without a scheme',
    text: 'server:\n  cors: { origins: [chat.example] }\n',
    says: '2:21 server.cors.origins[0]: must be the origin of a web page',
  },
  {
    title: 'an origin with a path',
    text: 'server:\n  cors: { origins: ["https://chat.example/"] }\n',
    says: '2:21 server.cors.origins[0]: must be the origin of a web page',
  },
  {
    title: 'an address with a port',
    text: 'server:\n  host: localhost:80\n',
    says: '2:9 server.host: must be an IP address',
  },
  {
    title: 'several workers on a store of one process',
    text: 'store: "memory:"\nserver: { workers: 2 }\n',
    says: 'server.workers is 2',
  },
  {
    title: 'two plugins with one route',
    text: 'plugins: [./a.mjs, ./b.mjs]\n',
    files: { 'a.mjs': plugin('a'), 'b.mjs': plugin('b') },
    says: 'plugin "./b.mjs": plugin_conflict',
  },
  {
    title: 'a plugin that refuses its options at set-up',
    text: 'plugins: [./a.mjs]\n',
    files: {
      'a.mjs': "export default { name: 'a', kind: 'policy', apiVersion: 1, setup() { throw new Error('no licence') } }",
    },
    says: 'plugin "./a.mjs": setup failed: no licence',
  },
  {
    title: 'a provider plugin that registers none',
    text: 'providers:\n  a: { plugin: ./a.mjs }\n',
    files: { 'a.mjs': "export default { name: 'a', kind: 'provider', apiVersion: 1, setup() {} }" },
    says: 'plugin "a": is of kind "provider" and registers no',
  },
  {
    title: 'a hook of an unknown operation',
    text: 'plugins: [./a.mjs]\n',
    files: {
      'a.mjs':
        "export default { name: 'a', kind: 'policy', apiVersion: 1, setup(api) { api.hook('admit', { operations: ['chatt'], handler() {} }) } }",
    },
    says: 'plugin "./a.mjs": ',
  },
  {
    title: 'a route whose schema does not compile',
    text: 'plugins: [./a.mjs]\n',
    files: {
      'a.mjs':
        "export default { name: 'a', kind: 'policy', apiVersion: 1, setup(api) { api.route({ method: 'POST', path: '/x', summary: 'x', auth: 'none', body: { type: 'objekt' }, responses: { 200: 'ok' }, handler() {} }) } }",
    },
    says: 'plugin "./a.mjs": ',
  },
];

/** Plugin with the route `/same`. */
function plugin(name: string): string {
  return `export default { name: '${name}', kind: 'policy', apiVersion: 1, setup(api) {
    api.route({ method: 'GET', path: '/same', summary: 's', auth: 'none', responses: { 200: 'ok' }, handler() {} }) } }`;
}
