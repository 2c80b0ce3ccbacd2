/**
 * Mistakes of plugin authors, and the gateway's messages. `authors-mistakes.test.ts` makes each mistake in its own
 * gateway, and the table of `docs/plugins/mistakes.md` lists them.
 */
export interface Mistake {
  /** The author's mistake. */
  readonly what: string;
  /** Kind of the plugin. Default: `policy`. */
  readonly kind?: string;
  /** Body of `setup(api, config)`. */
  readonly setup?: string;
  /** Further members of the definition, such as `requires: ['x'],`. */
  readonly more?: string;
  /** Complete file, if `setup` and `more` are not enough. */
  readonly file?: string;
  /** Other files in the folder of the configuration. */
  readonly files?: Readonly<Record<string, string>>;
  /** Options of the instance, and the file that it names. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Call to a gateway that starts. The log then has the message, with plugin and hook. */
  readonly call?: Call;
  /** Exact message up to the line of the file; `''` if the plugin is valid. */
  readonly says: string;
}

interface Call {
  readonly path?: string;
  readonly stream?: true;
  readonly method?: 'GET';
}

const CALL: Call = {};
const STREAM: Call = { stream: true };
const DEFINITION = `name: 'probe', kind: 'policy', apiVersion: 1, setup() {}`;
const define = (members: string): string => `export default { ${members} };`;
const options = (properties: string, more = ''): string =>
  `configSchema: { type: 'object', additionalProperties: false, properties: { ${properties} }, ${more} },`;
const route = (members: string): string =>
  `api.route({ method: 'GET', path: '/x', summary: 'What it is', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = 'x'; }, ${members} });`;
const PROVIDER = `vendor: 'probe', baseUrl: 'http://127.0.0.1:9', specVersion: 1, chat: { request: () => ({ path: '/x', body: {} }), response: (body) => body, stream: () => ({ push: () => [], end: () => ({ chunks: [], complete: true }) }) }, error: () => ({ class: 'upstream_error', message: 'x' }), models: []`;

/** Mistakes in the plugin's file: it cannot be loaded, or is not a plugin. */
export const FILES: readonly Mistake[] = [
  {
    what: 'names a file that is not there',
    options: { plugin: './prob.mjs' },
    says: 'policies.probe: the plugin file ./prob.mjs does not exist. Check the path. Relative paths start at the configuration file.',
  },
  {
    what: 'names a package that is not installed',
    options: { plugin: 'tollgate-plugin-nope' },
    says: 'policies.probe: the package "tollgate-plugin-nope" is not installed. Run: npm install tollgate-plugin-nope',
  },
  {
    what: 'names a package by a plain word',
    options: { plugin: 'acme-guard' },
    says: 'policies.probe: the built-in policy plugin "acme-guard" does not exist. Built-in plugins: access-log, accounts, admin, alias-parameters, cache, feature-hints, limits, metrics, mirror, model-refresh, notices, otel, overload, reconcile, usage, http-guardrail, http-hook, injection, max-cost, pii, schema, topics, words, console. For others, set "plugin:" to a package tollgate-plugin-… (with its scope) or a path.',
  },
  {
    what: 'exports nothing',
    file: 'export const a = 1;',
    says: 'policies.probe: "./probe.mjs" is not a plugin: its default export is missing or not an object. Export default definePlugin({ … }).',
  },
  {
    what: 'exports a plugin by a name',
    file: `export const plugin = { ${DEFINITION} };`,
    says: 'policies.probe: "./probe.mjs" is not a plugin: its default export is missing or not an object. Export default definePlugin({ … }).',
  },
  {
    what: 'exports a function that makes the plugin',
    file: `export default () => ({ ${DEFINITION} });`,
    says: 'policies.probe: "./probe.mjs" is not a plugin: its default export is a function. Export default definePlugin({ … }). Call it there.',
  },
  { what: 'exports a promise', file: `export default Promise.resolve({ ${DEFINITION} });`, says: '' },
  {
    what: 'exports a list',
    file: `export default [{ ${DEFINITION} }];`,
    says: 'policies.probe: "./probe.mjs" is not a plugin: its default export is missing or not an object. Export default definePlugin({ … }).',
  },
  {
    what: 'has a syntax error',
    file: `export default {\n  name: 'probe',,\n};`,
    says: 'policies.probe: the plugin "./probe.mjs" cannot be loaded: Unexpected token \',\' (probe.mjs:',
  },
  {
    what: 'imports a package that is not there',
    file: `import x from 'not-there-at-all';\nexport default { ${DEFINITION} };`,
    says: 'policies.probe: the plugin "./probe.mjs" cannot be loaded: Cannot find package \'not-there-at-all\'',
  },
  {
    what: 'imports a file that is not there',
    file: `import x from './not-there.mjs';\nexport default { ${DEFINITION} };`,
    says: 'policies.probe: the plugin "./probe.mjs" cannot be loaded: Cannot find module',
  },
  {
    what: 'imports a name that tollgate does not have',
    file: `import { definePlugins } from 'tollgate';\nexport default definePlugins({ ${DEFINITION} });`,
    says: "policies.probe: the plugin \"./probe.mjs\" cannot be loaded: The requested module 'tollgate' does not provide an export named 'definePlugins' (probe.mjs:",
  },
  {
    what: 'throws while it is imported',
    file: `const table = undefined;\nexport default { ${DEFINITION}, hosts: table.hosts };`,
    says: 'policies.probe: the plugin "./probe.mjs" cannot be loaded: Cannot read properties of undefined (reading \'hosts\') (probe.mjs:',
  },
  {
    what: 'has no name',
    file: define(DEFINITION.replace(`name: 'probe',`, '')),
    says: 'policies.probe: "./probe.mjs" is not a plugin: it has no "name". Write name: \'my-plugin\'.',
  },
  {
    what: 'has a name that is no name',
    file: define(DEFINITION.replace(`'probe'`, `'My Guard'`)),
    says: 'policies.probe: "./probe.mjs" has the invalid name "My Guard". Use kebab-case: at most 40 of a to z, 0 to 9 and "-".',
  },
  {
    what: 'has no kind',
    file: define(DEFINITION.replace(`kind: 'policy',`, '')),
    says: 'policies.probe: "./probe.mjs" is of the unknown kind "undefined". Kinds are provider, auth, agent, tts, operation, dialect, store, policy, secrets.',
  },
  {
    what: 'misspells its kind',
    file: define(DEFINITION.replace(`'policy'`, `'polcy'`)),
    says: 'policies.probe: "./probe.mjs" is of the unknown kind "polcy". Did you mean "policy"? Kinds are provider, auth, agent, tts, operation, dialect, store, policy, secrets.',
  },
  {
    what: 'stands in the section of another kind',
    kind: 'policy',
    file: define(DEFINITION.replace(`'policy'`, `'provider'`)),
    says: 'policies.probe: "./probe.mjs" is a provider plugin, not a policy plugin. Add it under "providers".',
  },
  {
    what: 'has no apiVersion',
    file: define(DEFINITION.replace('apiVersion: 1,', '')),
    says: 'policies.probe: "./probe.mjs" has no "apiVersion". Write apiVersion: 1, a number.',
  },
  {
    what: 'is of an apiVersion before',
    file: define(DEFINITION.replace('apiVersion: 1', 'apiVersion: 0')),
    says: 'policies.probe: "./probe.mjs" uses plugin API 0, but this gateway supports 1. Install a version of the plugin or of Tollgate with a matching API version.',
  },
  {
    what: 'writes apiVersion as a text',
    file: define(DEFINITION.replace('apiVersion: 1', `apiVersion: '1'`)),
    says: 'policies.probe: "./probe.mjs" has a wrong "apiVersion". Write apiVersion: 1, a number.',
  },
  {
    what: 'has no setup',
    file: define(DEFINITION.replace(', setup() {}', '')),
    says: 'policies.probe: "./probe.mjs" is not a plugin: it has no "setup" function. Write setup(api, config) { … }.',
  },
  {
    what: 'has a setup that is no function',
    file: define(DEFINITION.replace('setup() {}', 'setup: {}')),
    says: 'policies.probe: "./probe.mjs" is not a plugin: it has no "setup" function. Write setup(api, config) { … }.',
  },
  {
    what: 'misspells a member',
    file: define(`${DEFINITION}, configShema: { type: 'object' }`),
    says: 'policies.probe: "./probe.mjs" has the unknown member "configShema". Did you mean "configSchema"? Members are: name, kind, apiVersion, configSchema, hosts, permissions, provides, requires, processes, section, check, secrets, credentials, isCredential, commands, setup.',
  },
  {
    what: 'has a configSchema that is a text',
    more: `configSchema: 'object',`,
    says: 'policies.probe: "./probe.mjs" has an invalid "configSchema" "object", which must be a JSON schema of an object. Write configSchema: { type: \'object\', properties: { … } }.',
  },
  {
    what: 'has a configSchema of a list',
    more: `configSchema: { type: 'array' },`,
    says: 'policies.probe: "./probe.mjs" has an invalid "configSchema", which must be a JSON schema of an object. Write configSchema: { type: \'object\', properties: { … } }.',
  },
  {
    what: 'misspells a keyword of its configSchema',
    more: `configSchema: { type: 'object', propertys: {} },`,
    says: 'policies.probe: has the plugin "./probe.mjs", whose configSchema is invalid: strict mode: unknown keyword: "propertys". Correct it in the plugin. It must be JSON Schema 2020-12, with "secret" and the formats of docs/plugins.md.',
  },
  {
    what: 'gives a keyword of its configSchema a wrong value',
    more: options(`port: { type: 'integer', minimum: '1' }`),
    says: 'policies.probe: has the plugin "./probe.mjs", whose configSchema is invalid: minimum value must be ["number"]. Correct it in the plugin. It must be JSON Schema 2020-12, with "secret" and the formats of docs/plugins.md.',
  },
  {
    what: 'uses a format that there is not (E40)',
    more: options(`to: { type: 'string', format: 'e-mail' }`),
    says: 'policies.probe: has the plugin "./probe.mjs", whose configSchema is invalid: unknown format "e-mail"; formats are date, date-time, email, hostname, ipv4, ipv6, regex, uri, uri-reference, uuid, duration, money, url, size, host, base-path, origin, model, header-value, path. Correct it in the plugin. It must be JSON Schema 2020-12, with "secret" and the formats of docs/plugins.md.',
  },
  {
    what: 'refers to a schema that there is not',
    more: options(`to: { $ref: '#/$defs/person' }`),
    says: 'policies.probe: has the plugin "./probe.mjs", whose configSchema is invalid: can\'t resolve reference #/$defs/person from id #. Correct it in the plugin. It must be JSON Schema 2020-12, with "secret" and the formats of docs/plugins.md.',
  },
  {
    what: 'has a default that its own option does not take',
    more: options(`port: { type: 'integer', default: 'eighty' }`),
    says: 'policies.probe.port: has the plugin "./probe.mjs", whose default does not match its configSchema: must be a whole number, not the text "eighty". Correct the default in the plugin.',
  },
  {
    what: 'has hosts that are no list',
    more: `hosts: 'api.example.com',`,
    says: 'policies.probe: "./probe.mjs" has an invalid "hosts" "api.example.com", which must be a list of hosts without scheme and path. Write hosts: [\'api.example.com\', \'localhost:8080\'].',
  },
  {
    what: 'writes a host as a URL',
    more: `hosts: ['https://api.example.com/v1'],`,
    says: 'policies.probe: "./probe.mjs" has an invalid "hosts" ["https://api.example.com/v1"], which must be a list of hosts without scheme and path. Write hosts: [\'api.example.com\', \'localhost:8080\'].',
  },
  {
    what: 'has requires that is no list',
    more: `requires: 'usage',`,
    says: 'policies.probe: "./probe.mjs" has an invalid "requires" "usage", which must be a list of names of plugins. Write requires: [\'accounts\'].',
  },
  {
    what: 'requires a plugin that is not configured',
    more: `requires: ['medical'],`,
    says: 'policies.probe: needs "medical", which no configured plugin provides. Add that plugin to the configuration.',
  },
  {
    what: 'declares a permission that there is not',
    more: `permissions: ['money'],`,
    says: 'policies.probe: "./probe.mjs" has an invalid "permissions" ["money"], which must be a list of permissions (ledger, records, operators, credentials, hosts). Write permissions: [\'ledger\'].',
  },
  {
    what: 'has commands that are no list',
    more: `commands: 'greet',`,
    says: 'policies.probe: "./probe.mjs" has an invalid "commands" "greet", which must be a list of commands with name and summary. Write commands: [{ name: \'greet\', summary: \'Greets\' }].',
  },
  {
    what: 'has a command without a summary',
    more: `commands: [{ name: 'greet' }],`,
    says: 'policies.probe: "./probe.mjs" has an invalid "commands" [{"name":"greet"}], which must be a list of commands with name and summary. Write commands: [{ name: \'greet\', summary: \'Greets\' }].',
  },
  {
    what: 'knows credentials of a kind that there is not',
    kind: 'auth',
    more: `credentials: ['cookie'],`,
    setup: `api.hook('authenticate', () => undefined);`,
    says: 'auth.probe: "./probe.mjs" has an invalid "credentials" ["cookie"], which must be a list of kinds of credentials (key, token, session). Write credentials: [\'token\'].',
  },
  {
    what: 'has an isCredential that is no function',
    kind: 'auth',
    more: `isCredential: /^team-/,`,
    setup: `api.hook('authenticate', () => undefined);`,
    says: 'auth.probe: "./probe.mjs" has an invalid "isCredential", which must be a function. Write isCredential: (text) => text.startsWith(\'team-\').',
  },
  {
    what: 'has a check that is no function',
    more: `check: true,`,
    says: 'policies.probe: "./probe.mjs" has an invalid "check", which must be a function. Write check: (config, context) => [].',
  },
  {
    what: 'has a check that throws',
    more: `check() { throw new Error('no such folder'); },`,
    says: 'policies.probe: has a plugin whose check failed: no such folder. Correct its check(), which must return a list of { path, message, hint }.',
  },
  {
    what: 'has a check that gives no list',
    more: `check: () => 'all is well',`,
    says: 'policies.probe: has a plugin whose check does not return a list of problems. Correct its check(), which must return a list of { path, message, hint }.',
  },
  {
    what: 'has a check whose problems have no message',
    more: `check: () => [{ path: '/a' }],`,
    says: 'policies.probe: has a plugin whose check does not return a list of problems. Correct its check(), which must return a list of { path, message, hint }.',
  },
  {
    what: 'says nothing that is known of processes',
    kind: 'policy',
    more: `processes: 'two',`,
    says: 'policies.probe: "./probe.mjs" has an invalid "processes" "two", which must be a number of processes. Write processes: \'one\', or \'many\'.',
  },
  {
    what: 'has a section that is no name',
    more: `section: 7,`,
    says: 'policies.probe: "./probe.mjs" has an invalid "section", which must be a name of a section. Write section: \'limits\'.',
  },
  {
    what: 'takes a section of core',
    more: `section: 'server',`,
    says: 'policies.probe: plugin_conflict: has its options under "server", which belongs to core.',
  },
  {
    what: 'comes in a package for another Tollgate',
    options: { plugin: 'tollgate-plugin-acme' },
    files: {
      'node_modules/tollgate-plugin-acme/package.json': `{ "type": "module", "exports": "./index.mjs", "peerDependencies": { "tollgate": "^9.0.0" } }`,
      'node_modules/tollgate-plugin-acme/index.mjs': define(DEFINITION),
    },
    says: 'policies.probe: the plugin "tollgate-plugin-acme" requires Tollgate ^9.0.0, but this is 0.2.0. Install a plugin version for Tollgate 0.2.0, or the Tollgate version that it requires.',
  },
  {
    what: 'comes in a package for another Node.js',
    options: { plugin: 'tollgate-plugin-acme' },
    files: {
      'node_modules/tollgate-plugin-acme/package.json': `{ "type": "module", "exports": "./index.mjs", "engines": { "node": ">=99" } }`,
      'node_modules/tollgate-plugin-acme/index.mjs': define(DEFINITION),
    },
    says: 'policies.probe: the plugin "tollgate-plugin-acme" requires Node.js >=99, but this is',
  },
  {
    what: 'comes in a package without a file to import',
    options: { plugin: 'tollgate-plugin-acme' },
    files: { 'node_modules/tollgate-plugin-acme/package.json': `{ "type": "module", "exports": "./dist/index.js" }` },
    says: 'policies.probe: the package "tollgate-plugin-acme" is installed, but the file in "exports" of its package.json is missing. Build the package, or correct its "exports".',
  },
];

/** Mistakes in the operator's options. */
export const OPTIONS: readonly Mistake[] = [
  {
    what: 'has an option that is misspelt',
    more: options(`words: { type: 'array', items: { type: 'string' } }`),
    options: { word: ['x'] },
    says: 'policies.probe.word: unknown key. Did you mean "words"?',
  },
  {
    what: 'misses an option that it needs',
    more: options(`url: { type: 'string', format: 'url', description: 'Where the service is.' }`, `required: ['url']`),
    says: 'policies.probe: needs "url". Where the service is.',
  },
  {
    what: 'has a text for a number',
    more: options(`port: { type: 'integer' }`),
    options: { port: 'eighty' },
    says: 'policies.probe.port: must be a whole number, not the text "eighty".',
  },
  {
    what: 'has what is no email (E40)',
    more: options(`it: { type: 'string', format: 'email' }`),
    options: { it: 'ann at example.com' },
    says: 'policies.probe.it: must be an email address, not the text "ann at example.com". Write name@host.example.',
  },
  {
    what: 'has what is no hostname (E40)',
    more: options(`it: { type: 'string', format: 'hostname' }`),
    options: { it: 'a b' },
    says: 'policies.probe.it: must be a host name, not the text "a b". Write api.example, without a scheme and a port.',
  },
  {
    what: 'has what is no date (E40)',
    more: options(`it: { type: 'string', format: 'date' }`),
    options: { it: '2026-13-40' },
    says: 'policies.probe.it: must be a date, not the text "2026-13-40". Write 2026-01-31.',
  },
  {
    what: 'has what is no uuid (E40)',
    more: options(`it: { type: 'string', format: 'uuid' }`),
    options: { it: '1234' },
    says: 'policies.probe.it: must be a UUID, not the text "1234". Write 123e4567-e89b-12d3-a456-426614174000.',
  },
  {
    what: 'has what is no ipv4 (E40)',
    more: options(`it: { type: 'string', format: 'ipv4' }`),
    options: { it: '1.2.3' },
    says: 'policies.probe.it: must be an IPv4 address, not the text "1.2.3". Write 192.0.2.1.',
  },
  {
    what: 'has what is no regex (E40)',
    more: options(`it: { type: 'string', format: 'regex' }`),
    options: { it: '(' },
    says: 'policies.probe.it: must be a regular expression, not the text "(". Write it as in JavaScript: ^[a-z]+$.',
  },
  {
    what: 'has what is no url (E40)',
    more: options(`it: { type: 'string', format: 'url' }`),
    options: { it: 'example.com' },
    says: 'policies.probe.it: must be an http or https URL, not the text "example.com". Use the whole URL, such as https://api.example/v1.',
  },
  {
    what: 'has what is no duration (E40)',
    more: options(`it: { type: 'string', format: 'duration' }`),
    options: { it: '5 minutes' },
    says: 'policies.probe.it: must be a duration, not the text "5 minutes". Write 500ms, 30s, 2m, 1h or 30d.',
  },
  {
    what: 'has what is no money (E40)',
    more: options(`it: { type: 'string', format: 'money' }`),
    options: { it: 'five' },
    says: 'policies.probe.it: must be an amount of US dollars, not the text "five". Write 25, 0.50 or "12.345678": up to nine decimals and 9000000.',
  },
  {
    what: 'has what is no size (E40)',
    more: options(`it: { type: 'string', format: 'size' }`),
    options: { it: 'big' },
    says: 'policies.probe.it: must be a size, not the text "big". Write 20mb, 512kb or a number of bytes.',
  },
  {
    what: 'has a problem that its own check finds',
    more: `${options(`port: { type: 'integer' }`)} check: () => [{ path: '/port', message: 'is taken', hint: 'Choose another.' }],`,
    options: { port: 9 },
    says: 'policies.probe.port: is taken. Choose another.',
  },
];

/** Mistakes in setup. */
export const SET_UPS: readonly Mistake[] = [
  {
    what: 'throws in setup',
    setup: `\n  throw new Error('no licence file');`,
    says: 'plugin "probe": setup failed: no licence file (probe.mjs:',
  },
  {
    what: 'throws a text in setup',
    setup: `throw 'no licence file';`,
    says: 'plugin "probe": setup failed: no licence file',
  },
  {
    what: 'throws nothing in setup',
    setup: `throw undefined;`,
    says: 'plugin "probe": setup failed: undefined was thrown: throw an Error that says why',
  },
  {
    what: 'reads an option that there is not',
    setup: `config.words.map((word) => word);`,
    says: 'plugin "probe": setup failed: Cannot read properties of undefined (reading \'map\') (probe.mjs:',
  },
  {
    what: 'changes its options',
    setup: `config.words = [];`,
    says: 'plugin "probe": setup failed: Cannot add property words, object is not extensible: what a plugin is given is frozen, return a changed copy (probe.mjs:',
  },
  {
    what: 'calls a method that there is not',
    setup: `api.hooks('admit', () => {});`,
    says: 'plugin "probe": setup failed: api.hooks is not a function (probe.mjs:',
  },
  {
    what: 'names an error code that there is not',
    setup: `throw new GatewayError('teapot', 'x');`,
    says: 'plugin "probe": setup failed: the error code "teapot" does not exist; docs/http.md lists all codes (probe.mjs:',
  },
  {
    what: 'misspells a hook',
    setup: `api.hook('admitt', () => {});`,
    says: 'plugin "probe": there is no hook "admitt". Did you mean "admit"? Hooks are: authenticate, arrive, admit, prepare, answer, route, reserve, send, attempt, receive, stream, error, finish.',
  },
  {
    what: 'registers the hook "chunk" of the contract before',
    setup: `api.hook('chunk', (_call, chunk) => chunk);`,
    says: 'plugin "probe": there is no hook "chunk".',
  },
  {
    what: 'calls api.speech of the contract before',
    setup: `api.speech({});`,
    says: 'plugin "probe": setup failed: api.speech is not a function (probe.mjs:',
  },
  {
    what: 'registers a hook without a function',
    setup: `api.hook('admit');`,
    says: 'plugin "probe": hook "admit" has no function: api.hook(\'admit\', (…) => { … })',
  },
  {
    what: 'registers a hook of an unknown order',
    setup: `api.hook('admit', { order: 'first', handler() {} });`,
    says: 'plugin "probe": hook "admit" has the invalid order "first"; use "pre", "post" or none',
  },
  {
    what: 'registers a hook for an unknown operation',
    setup: `api.hook('admit', { operations: ['chatt'], handler() {} });`,
    says: 'plugin "probe": hook "admit" is for the operation "chatt", which is not registered. Did you mean "chat"?',
  },
  {
    what: 'registers a hook for operations that are no list',
    setup: `api.hook('admit', { operations: 'chat', handler() {} });`,
    says: 'plugin "probe": hook "admit" has invalid operations; use a list of names, such as operations: [\'chat\']',
  },
  {
    what: 'misspells the role of a route',
    setup: `api.route({ method: 'GET', path: '/probe', summary: 'x', auth: ['key'], role: 'owner', responses: { 200: 'OK.' }, handler() {} });`,
    says: 'plugin "probe": route "GET /probe" has the invalid value "owner" for "role". Allowed is: "admin".',
  },
  {
    what: 'writes the role of a route with a capital',
    setup: `api.route({ method: 'GET', path: '/probe', summary: 'x', auth: ['key'], role: 'Admin', responses: { 200: 'OK.' }, handler() {} });`,
    says: 'plugin "probe": route "GET /probe" has the invalid value "Admin" for "role". Did you mean "admin"? Allowed is: "admin".',
  },
  {
    what: 'misspells the member role',
    setup: `api.route({ method: 'GET', path: '/probe', summary: 'x', auth: ['key'], roles: 'admin', responses: { 200: 'OK.' }, handler() {} });`,
    says: 'plugin "probe": route "GET /probe" has the unknown member "roles". Did you mean "role"? Members are: method, path, summary, description, auth, isFallback, isIdempotent, isProbe, isEndless, permission, role, scope, body, bodyOptional, maxBodyBytes, form, query, responses, errorNote, handler.',
  },
  {
    what: 'has a member of its own in a route',
    setup: `api.route({ method: 'GET', path: '/probe', summary: 'x', auth: ['key'], tags: [], responses: { 200: 'OK.' }, handler() {} });`,
    says: 'plugin "probe": route "GET /probe" has the unknown member "tags". Members are: method, path, summary, description, auth, isFallback, isIdempotent, isProbe, isEndless, permission, role, scope, body, bodyOptional, maxBodyBytes, form, query, responses, errorNote, handler.',
  },
  {
    what: 'gives a route a scope and no role',
    setup: `api.route({ method: 'GET', path: '/probe', summary: 'x', auth: ['key'], scope: 'usage:read', responses: { 200: 'OK.' }, handler() {} });`,
    says: `plugin "probe": route "GET /probe" has a scope without role: 'admin', so every key could call it`,
  },
  {
    what: 'gives a route a role that needs no credential',
    setup: `api.route({ method: 'GET', path: '/probe', summary: 'x', auth: 'none', role: 'admin', responses: { 200: 'OK.' }, handler() {} });`,
    says: `plugin "probe": route "GET /probe" has a role, but auth: 'none' allows every caller`,
  },
  {
    what: 'misspells a member of a hook',
    setup: `api.hook('admit', { handler() {}, ordr: 'pre' });`,
    says: 'plugin "probe": hook "admit" has the unknown member "ordr". Did you mean "order"? Members are: handler, order, operations.',
  },
  {
    what: 'calls a model in setup',
    setup: `await api.chat({ model: 'echo/echo', messages: [] }, {});`,
    says: 'plugin "probe": calls a model before the gateway has started; do that in a route, a hook or onReady',
  },
  {
    what: 'reads the catalogue in setup',
    setup: `api.models.catalog.find('x');`,
    says: 'plugin "probe": calls a model before the gateway has started; do that in a route, a hook or onReady',
  },
  {
    what: 'takes the ledger without the permission',
    setup: `await api.books.ledger.balance('ann');`,
    says: 'plugin "probe": uses api.books.ledger, which its definition does not declare: permissions: [\'ledger\']',
  },
  {
    what: 'has a route without a slash',
    setup: route(`path: 'x'`),
    says: 'plugin "probe": route "GET x" needs a path that begins with /',
  },
  {
    what: 'has a route of a method that there is not',
    setup: route(`method: 'GRAB'`),
    says: 'plugin "probe": route "GRAB /x" has no method of GET, POST, PUT, PATCH, DELETE',
  },
  {
    what: 'writes a method in small letters',
    setup: route(`method: 'get'`),
    says: 'plugin "probe": route "get /x" has no method of GET, POST, PUT, PATCH, DELETE',
  },
  {
    what: 'has a route that says nothing of auth',
    setup: route('auth: undefined'),
    says: "plugin \"probe\": route \"GET /x\" has no auth: use auth: 'none', or a list of 'key' and 'token'",
  },
  {
    what: 'has a route for a credential that there is not',
    setup: route(`auth: ['cookie']`),
    says: "plugin \"probe\": route \"GET /x\" has no auth: use auth: 'none', or a list of 'key' and 'token'",
  },
  {
    what: 'has a route without responses',
    setup: route('responses: undefined'),
    says: 'plugin "probe": route "GET /x" has no responses: { 200: \'What it is.\' }',
  },
  {
    what: 'has a route without a handler',
    setup: route('handler: undefined'),
    says: 'plugin "probe": route "GET /x" has no handler function: handler(ctx) { … }',
  },
  {
    what: 'has a route without a summary',
    setup: route('summary: undefined'),
    says: 'plugin "probe": route "GET /x" has no summary: add one line about its purpose',
  },
  {
    what: 'has a route whose path does not parse',
    setup: route(`path: '/x/:'`),
    says: 'plugin "probe": route "GET /x/:" has an invalid path: parameters are :name, other signs need a \\ before them',
  },
  {
    what: 'has a route with a body schema that is a text',
    setup: route(`method: 'POST', body: 'object'`),
    says: 'plugin "probe": route "POST /x" has a body schema that is not an object: body: { type: \'object\', … }',
  },
  {
    what: 'has a route whose body schema has a typing error',
    setup: route(`method: 'POST', body: { type: 'object', propertys: {} }`),
    says: 'plugin "probe": the body schema of POST /x does not compile: strict mode: unknown keyword: "propertys"',
  },
  {
    what: 'has two routes of one path',
    setup: route('') + route(''),
    says: 'plugin "probe": plugin_conflict: route "GET /x" is already registered by plugin "probe". Remove one of the two, or give one another instance name.',
  },
  {
    what: 'has a route that core has',
    setup: route(`path: '/livez'`),
    says: 'plugin "probe": plugin_conflict: route "GET /livez" belongs to core',
  },
  {
    what: 'gives api.use no function',
    setup: `api.use({});`,
    says: 'plugin "probe": api.use() takes a Koa middleware function',
  },
  {
    what: 'gives api.upgrade no path',
    setup: `api.upgrade('x', () => {});`,
    says: 'plugin "probe": api.upgrade() takes a path that begins with /, and a function',
  },
  {
    what: 'has a schema without a name',
    setup: `api.schema({ type: 'object' });`,
    says: 'plugin "probe": registers a schema $id without a name',
  },
  {
    what: 'has a schema that does not compile',
    setup: `api.schema({ $id: 'x', type: 'text' });`,
    says: 'plugin "probe": the schema "x" does not compile: schema is invalid: data/type must be equal to one of the allowed values, data/type must be array, data/type must match a schema in anyOf',
  },
  {
    what: 'publishes a gauge with an invalid name',
    more: `permissions: ['operators'],`,
    setup: `api.operators.gauge({ name: 'Words Seen', help: 'x', read: () => 1 });`,
    says: 'plugin "probe": invalid gauge name "Words Seen": it must match ^[a-z][a-z0-9_]{2,60}$',
  },
  {
    what: 'has a command that its definition does not list',
    setup: `api.command({ name: 'greet', summary: 'x', run() {} });`,
    says: 'plugin "probe": registers the command "greet", which its definition does not list: commands: [{ name: \'greet\', summary: \'…\' }]',
  },
  {
    what: 'has a command without run',
    more: `commands: [{ name: 'greet', summary: 'Greets' }],`,
    setup: `api.command({ name: 'greet', summary: 'Greets' });`,
    says: 'plugin "probe": has the command "greet" without the required function run()',
  },
  {
    what: 'has two agents of one name',
    setup: `for (const when of ['a', 'b']) api.agent({ name: 'tides', when, instructions: 'x' });`,
    says: 'plugin "probe": plugin_conflict: agent "tides" is already registered by plugin "probe". Remove one of the two, or give one another instance name.',
  },
  {
    what: 'has an agent without a name',
    setup: `api.agent({ when: 'x', instructions: 'x' });`,
    says: 'plugin "probe": registers an agent without a name',
  },
  {
    what: 'registers a provider in a policy',
    setup: `api.provider({ ${PROVIDER} });`,
    says: 'plugin "probe": is of kind "policy" and registers a provider, which only plugins of kind provider may do',
  },
  {
    what: 'gives onReady no function',
    setup: `api.onReady();`,
    says: 'plugin "probe": api.onReady() takes a function',
  },
  {
    what: 'throws in onReady',
    setup: `api.onReady(() => { throw new Error('the model is not there'); });`,
    says: 'plugin "probe": onReady failed: the model is not there (probe.mjs:',
  },
  {
    what: 'has options of hooks without a hook',
    setup: '',
    options: { timeout: '1s' },
    says: 'policies.probe.timeout: has no effect: this plugin registers no hook. Remove it.',
  },
  {
    what: 'registers no provider',
    kind: 'provider',
    setup: '',
    says: 'plugin "probe": is of kind "provider" and registers no provider: it calls neither api.provider() nor api.offer()',
  },
  {
    what: 'registers a provider that is nothing',
    kind: 'provider',
    setup: `api.provider();`,
    says: 'plugin "probe": gives undefined for a provider',
  },
  {
    what: 'registers a provider that is empty',
    kind: 'provider',
    setup: `api.provider({});`,
    says: 'plugin "probe": has a provider without the required function error()',
  },
  {
    what: 'has a provider with an invalid base URL',
    kind: 'provider',
    setup: `api.provider({ ${PROVIDER}, baseUrl: 'api.example.com' });`,
    says: 'plugin "probe": has a provider with the base URL "api.example.com": write https://api.example.com/v1',
  },
  {
    what: 'has a provider without error()',
    kind: 'provider',
    setup: `api.provider({ ${PROVIDER}, error: undefined });`,
    says: 'plugin "probe": has a provider without the required function error()',
  },
  {
    what: 'has a provider without a codec for streams',
    kind: 'provider',
    setup: `api.provider({ ${PROVIDER}, chat: { request: () => ({ path: '/' }), response: (body) => body } });`,
    says: 'plugin "probe": has a provider without the required function stream()',
  },
  {
    what: 'registers two providers',
    kind: 'provider',
    setup: `api.provider({ ${PROVIDER} }); api.provider({ ${PROVIDER} });`,
    says: 'plugin "probe": plugin_conflict: offer for chat "probe" is already registered by plugin "probe". Remove one of the two, or give one another instance name.',
  },
  {
    what: 'has no check',
    kind: 'auth',
    setup: '',
    says: 'plugin "probe": is of kind "auth" and registers no way to check a caller: it has no "authenticate" hook',
  },
  {
    what: 'registers no operation',
    kind: 'operation',
    setup: '',
    says: 'plugin "probe": is of kind "operation" and registers no operation: it does not call api.operation()',
  },
  {
    what: 'registers the operation of core',
    kind: 'operation',
    setup: `api.operation({ name: 'chat', request: { type: 'object' }, estimate() {}, attempt() {}, isResponse() {} });`,
    says: 'plugin "probe": registers the operation "chat", which belongs to core',
  },
  {
    what: 'registers an operation without maximum usage',
    kind: 'operation',
    setup: `api.operation({ name: 'words', request: { type: 'object' } });`,
    says: 'plugin "probe": has the operation "words" without the required function maxUsage()',
  },
  {
    what: 'registers an operation with a form without a body',
    kind: 'operation',
    setup: `api.operation({ name: 'words', request: { type: 'object' }, maxUsage: () => ({}), routes: [{ path: 'words', summary: 's', files: { file: { maxBytes: 9 } } }] });`,
    says: 'plugin "probe": has the route "words" with files and without a `body`; write the schema of the form’s text fields (the operation "words")',
  },
  {
    what: 'registers an operation whose request is no schema',
    kind: 'operation',
    setup: `api.operation({ name: 'words', request: 'object', estimate() {}, attempt() {}, isResponse() {} });`,
    says: 'plugin "probe": the request of the operation "words" is not an object, so it is not a JSON schema',
  },
  {
    what: 'registers an operation whose schema does not compile',
    kind: 'operation',
    setup: `api.operation({ name: 'words', request: { type: 'text' }, estimate() {}, attempt() {}, isResponse() {} });`,
    says: 'plugin "probe": the request of "words" does not compile: schema is invalid: data/type must be equal to one of the allowed values, data/type must be array, data/type must match a schema in anyOf',
  },
  {
    what: 'registers no dialect',
    kind: 'dialect',
    setup: '',
    says: 'plugin "probe": is of kind "dialect" and registers no dialect: it does not call api.dialect()',
  },
  {
    what: 'registers a dialect without read()',
    kind: 'dialect',
    setup: `api.dialect({ name: 'small', request: { type: 'object' }, response: { type: 'object' }, routes: [{ path: '/small', summary: 'x' }], keepAlive: '\\n', write: (r) => r, stream: () => ({ push: () => '', end: () => '', fail: () => '' }), error: () => ({ body: {} }) });`,
    says: 'plugin "probe": has the dialect "small" without the required function read()',
  },
  {
    what: 'registers a dialect that has no routes',
    kind: 'dialect',
    setup: `api.dialect({ name: 'small', request: { type: 'object' } });`,
    says: 'plugin "probe": has the dialect "small" without the required function read()',
  },
  {
    what: 'registers no speech',
    kind: 'tts',
    setup: '',
    says: 'plugin "probe": is of kind "tts" and registers no speech: it does not call api.offer(\'speech\', …)',
  },
  {
    what: 'offers an unknown operation',
    kind: 'tts',
    setup: `api.offer('speach', { ${PROVIDER} });`,
    says: 'plugin "probe": has an offer for the operation "speach", which is not registered. Did you mean "speech"?',
  },
  {
    what: 'registers no store',
    kind: 'store',
    setup: '',
    says: 'plugin "./probe.mjs": is a store plugin but registers no store',
  },
  {
    what: 'opens an invalid store',
    kind: 'store',
    setup: `api.store(async () => ({}));`,
    says: 'plugin "./probe.mjs": has a store without the required function keyv()',
  },
  {
    what: 'opens a store that fails',
    kind: 'store',
    setup: `api.store(async () => { throw new Error('no such server'); });`,
    says: 'plugin "./probe.mjs": cannot open the store: no such server (probe.mjs:',
  },
];

/** Mistakes during calls. Callers see one fixed sentence; the log has this message. */
export const CALLS: readonly Mistake[] = [
  {
    what: 'throws in a hook',
    setup: `api.hook('prepare', () => {\n  throw new TypeError('x is undefined');\n});`,
    call: CALL,
    says: 'plugin "probe", hook "prepare": x is undefined (probe.mjs:',
  },
  {
    what: 'registers a hook when setup is over',
    setup: `api.hook('admit', () => { api.hook('prepare', () => undefined); });`,
    call: CALL,
    says: 'plugin "probe", hook "admit": plugin "probe": registers hook "prepare" after setup(), when registration has ended (probe.mjs:',
  },
  {
    what: 'registers a route when setup is over',
    setup: `api.hook('admit', () => { ${route('')} });`,
    call: CALL,
    says: 'plugin "probe", hook "admit": plugin "probe": registers route after setup(), when registration has ended (probe.mjs:',
  },
  {
    what: 'throws a text in a hook',
    setup: `api.hook('prepare', () => { throw 'no'; });`,
    call: CALL,
    says: 'plugin "probe", hook "prepare": no',
  },
  {
    what: 'names an error code that there is not, in a hook',
    setup: `api.hook('admit', () => { throw new GatewayError('teapot', 'x'); });`,
    call: CALL,
    says: 'plugin "probe", hook "admit": the error code "teapot" does not exist; docs/http.md lists all codes (probe.mjs:',
  },
  {
    what: 'changes the request that it is given',
    setup: `api.hook('prepare', (_call, request) => { request.temperature = 0; });`,
    call: CALL,
    says: 'plugin "probe", hook "prepare": Cannot add property temperature, object is not extensible: what a plugin is given is frozen, return a changed copy (probe.mjs:',
  },
  {
    what: 'changes a message that it is given',
    setup: `api.hook('prepare', (_call, request) => { request.messages[0].content = 'x'; });`,
    call: CALL,
    says: 'plugin "probe", hook "prepare": Cannot assign to read only property \'content\' of object \'#<Object>\': what a plugin is given is frozen, return a changed copy (probe.mjs:',
  },
  {
    what: 'gives a request without messages',
    setup: `api.hook('prepare', () => ({ model: 'echo/echo' }));`,
    call: CALL,
    says: 'plugin "probe", hook "prepare": returned an object with model; expected a valid request of "chat" with the same value of "stream", or undefined',
  },
  {
    what: 'gives a text as a request',
    setup: `api.hook('prepare', () => 'hello');`,
    call: CALL,
    says: 'plugin "probe", hook "prepare": returned a string; expected a valid request of "chat" with the same value of "stream", or undefined',
  },
  {
    what: 'gives a response without choices',
    setup: `api.hook('receive', (_call, { choices, ...rest }) => rest);`,
    call: CALL,
    says: 'plugin "probe", hook "receive": returned an object with id, object, created, model, usage; expected a response of the operation "chat", or undefined',
  },
  {
    what: 'gives false as a response',
    setup: `api.hook('receive', () => false);`,
    call: CALL,
    says: 'plugin "probe", hook "receive": returned a boolean; expected a response of the operation "chat", or undefined',
  },
  {
    what: 'answers with what is no response',
    setup: `api.hook('answer', () => ({ text: 'x' }));`,
    call: CALL,
    says: 'plugin "probe", hook "answer": returned an object with text; expected an object with a response of the operation "chat", whole nano-dollars as its cost and text headers, or undefined',
  },
  {
    what: 'sends a call to a target that there is not',
    setup: `api.hook('route', () => [{ provider: 'nope', model: 'x' }]);`,
    call: CALL,
    says: 'plugin "probe", hook "route": returned an array; expected a list of targets, each with a model and an existing provider, or undefined',
  },
  {
    what: 'sends a call nowhere',
    setup: `api.hook('route', () => []);`,
    call: CALL,
    says: 'plugin "probe", hook "route": returned an array; expected a list of targets, each with a model and an existing provider, or undefined',
  },
  {
    what: 'gives a text as a target',
    setup: `api.hook('route', () => ['echo/echo']);`,
    call: CALL,
    says: 'plugin "probe", hook "route": returned an array; expected a list of targets, each with a model and an existing provider, or undefined',
  },
  {
    what: 'gives a transform without push',
    setup: `api.hook('stream', () => ({ transform: (chunk) => chunk }));`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": returned an object with transform; expected an object with a push function, or undefined',
  },
  {
    what: 'gives a function as a transform',
    setup: `api.hook('stream', () => (chunk) => [chunk]);`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": returned a function; expected an object with a push function, or undefined',
  },
  {
    what: 'gives a chunk and no list of chunks',
    setup: `api.hook('stream', () => ({ push: (chunk) => chunk }));`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": returned an object with id, object, created, model, choices; expected a list of chunks, or undefined',
  },
  {
    what: 'gives a list of texts in a stream',
    setup: `api.hook('stream', () => ({ push: () => ['x'] }));`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": returned an array; expected a list of chunks, or undefined',
  },
  {
    what: 'throws on a chunk',
    setup: `api.hook('stream', () => ({ push() { throw new Error('third'); } }));`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": third (probe.mjs:',
  },
  {
    what: 'changes a chunk that it is given',
    setup: `api.hook('stream', () => ({ push(chunk) { chunk.choices[0].delta.content = 'x'; return [chunk]; } }));`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": Cannot assign to read only property \'content\' of object \'#<Object>\': what a plugin is given is frozen, return a changed copy (probe.mjs:',
  },
  {
    what: 'throws at the end of a stream',
    setup: `api.hook('stream', () => ({ push: (chunk) => [chunk], end() { throw new Error('no end'); } }));`,
    call: STREAM,
    says: 'plugin "probe", hook "stream": no end (probe.mjs:',
  },
  {
    what: 'throws when a call has ended',
    setup: `api.hook('finish', () => { throw new Error('the book is shut'); });`,
    call: CALL,
    says: 'plugin "probe", hook "finish": the book is shut (probe.mjs:',
  },
  {
    what: 'makes a success of an error',
    setup: `api.hook('admit', () => { throw new GatewayError('rate_limited', 'No.'); }); api.hook('error', () => ({ status: 200 }));`,
    call: CALL,
    says: 'plugin "probe", hook "error": returned an object with status; expected a GatewayError, or undefined',
  },
  {
    what: 'gives a text as a header',
    setup: `api.hook('send', () => 'x-a: b');`,
    call: CALL,
    says: 'plugin "probe", hook "send": returned a string; expected an HTTP request with a path and an unchanged body, or undefined: returned a string; expected an HTTP request with a path and an unchanged body, or undefined',
  },
  {
    what: 'hangs in a hook',
    setup: `api.hook('prepare', () => new Promise(() => {}));`,
    options: { timeout: '50ms' },
    call: CALL,
    says: 'plugin "probe", hook "prepare": did not finish within 50 ms',
  },
  {
    what: 'asks a host that it did not declare',
    setup: `api.hook('admit', async () => { await (await api.http()).get('http://127.0.0.1:9/x'); });`,
    call: CALL,
    says: 'plugin "probe", hook "admit": control-plane calls go to no host only, not to 127.0.0.1:9: a plugin declares its "hosts", or has an option of the format "url": control-plane calls go to no host only, not to 127.0.0.1:9: a plugin declares its "hosts", or has an option of the format "url": control-plane calls go to no host only, not to 127.0.0.1:9: a plugin declares its "hosts", or has an option of the format "url"',
  },
  {
    what: 'takes the ledger without the permission, in a hook',
    setup: `api.hook('admit', async () => { await api.books.ledger.balance('ann'); });`,
    call: CALL,
    says: 'plugin "probe", hook "admit": plugin "probe": uses api.books.ledger, which its definition does not declare: permissions: [\'ledger\'] (probe.mjs:',
  },
  {
    what: 'throws in a route',
    setup: route(`handler() { throw new Error('no table'); }`),
    call: { path: '/x', method: 'GET' },
    says: 'no table',
  },
  {
    what: 'answers a route with a circle',
    setup: route(`handler(ctx) { const a = {}; a.a = a; ctx.body = a; }`),
    call: { path: '/x', method: 'GET' },
    says: 'Converting circular structure to JSON',
  },
  { what: 'throws in middleware', setup: `api.use(() => { throw new Error('no way'); });`, call: CALL, says: 'no way' },
  {
    what: 'gives a principal without an account',
    kind: 'auth',
    setup: `api.hook('authenticate', () => ({ userId: 'ann' }));`,
    call: CALL,
    says: 'plugin "probe", hook "authenticate": returned an object with userId; expected a principal with credential, userId and account, or undefined',
  },
  {
    what: 'gives true as a principal',
    kind: 'auth',
    setup: `api.hook('authenticate', () => true);`,
    call: CALL,
    says: 'plugin "probe", hook "authenticate": returned a boolean; expected a principal with credential, userId and account, or undefined',
  },
  {
    what: 'has a codec that gives no path',
    kind: 'provider',
    setup: `api.provider({ ${PROVIDER.replace("({ path: '/x', body: {} })", '({})')}, models: [{ id: 'm' }] });`,
    call: CALL,
    says: 'provider "probe": a request path must begin with one slash and be percent-encoded, without dot segments',
  },
  {
    what: 'has a codec that throws',
    kind: 'provider',
    setup: `api.provider({ ${PROVIDER.replace("() => ({ path: '/x', body: {} })", "() => { throw new TypeError('no messages'); }")}, models: [{ id: 'm' }] });`,
    call: CALL,
    says: 'provider "probe": no messages (probe.mjs:',
  },
];
