// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import type { TextInput } from './config-plugins.ts';

/** Invalid configuration with its messages. */
export interface ProblemCase {
  readonly title: string;
  readonly text: string;
  readonly input?: TextInput;
  /** Exact problem lines, without the file's name. A line that begins with `*` is a part of the first line. */
  readonly problems: readonly string[];
}

const SERVER_KEYS =
  'host, port, basePath, bodyLimit, requestTimeout, drainTimeout, drainDelay, keepAlive, sseKeepAlive, maxConnections, failedCredentials, cors, idempotency, workers, watch, trustProxy, console, tls';

/** Every kind of problem, checked with the plugins of `config-plugins.ts`. */
export const PROBLEM_CASES: readonly ProblemCase[] = [
  {
    title: 'an unknown top-level key',
    text: 'providerz: {}\n',
    problems: ['1:1 providerz: unknown key. Did you mean "providers"?'],
  },
  {
    title: 'an unknown key that resembles none',
    text: 'server:\n  banana: 1\n',
    problems: [`2:3 server.banana: unknown key. Keys of server: ${SERVER_KEYS}.`],
  },
  {
    title: 'an unknown key of a plugin',
    text: 'providers:\n  acme:\n    api_key: x\n',
    problems: ['3:5 providers.acme.api_key: unknown key. Did you mean "apiKey" or "apiKeys"?'],
  },
  {
    title: 'an unknown key deep in a plugin whose schema leaves its objects open',
    text: 'auth:\n  door:\n    issuer: https://a.example\n    claims: { uzer: sub }\n',
    problems: ['4:15 auth.door.claims.uzer: unknown key. Did you mean "user"?'],
  },
  {
    title: 'several problems at once, in the order of the file',
    text: 'server:\n  prot: 1\n  port: ninety\nbilling: sometimes\n',
    problems: [
      '2:3 server.prot: unknown key. Did you mean "port"?',
      '3:9 server.port: must be a whole number, not the text "ninety".',
      '4:10 billing: must be off, track or enforce, not the text "sometimes".',
    ],
  },
  {
    title: 'a number outside its range',
    text: 'server: { port: 70000 }\n',
    problems: ['1:17 server.port: must be at most 65535, not 70000.'],
  },
  {
    title: 'a list where a map belongs',
    text: 'providers: [acme]\n',
    problems: ['1:12 providers: must be a map, not a list.'],
  },
  {
    title: 'a text where options belong',
    text: 'providers:\n  acme: sk-123\n',
    problems: ['2:9 providers.acme: must be a map of options, true or false.'],
  },
  {
    title: 'a duration without a unit',
    text: 'server: { drainTimeout: 25, requestTimeout: "60", keepAlive: 5 s }\n',
    problems: [
      '1:25 server.drainTimeout: must be a duration with a unit, not 25. Write "25s" for seconds or "25ms" for milliseconds.',
      '1:45 server.requestTimeout: must be a duration with a unit, not the text "60". Write "60s" for seconds or "60ms" for milliseconds.',
      '1:62 server.keepAlive: must be a duration, not the text "5 s". Write 500ms, 30s, 2m, 1h or 30d.',
    ],
  },
  {
    title: 'an amount of money with ten decimals, as text and as number',
    text: 'policies:\n  gate: { floor: "0.1234567891" }\n',
    problems: [
      '2:18 policies.gate.floor: must be an amount of US dollars, not the text "0.1234567891". Write 25, 0.50 or "12.345678": up to nine decimals and 9000000.',
    ],
  },
  {
    title: 'an amount of money as a number with too many decimals',
    text: 'policies:\n  gate: { floor: 0.1234567891 }\n',
    problems: [
      '2:18 policies.gate.floor: must be an amount of US dollars, not 0.1234567891. Write 25, 0.50 or "12.345678": up to nine decimals and 9000000.',
    ],
  },
  {
    title: 'a base URL without a scheme',
    text: 'providers:\n  acme: { baseUrl: api.example/v1 }\n',
    problems: [
      '2:20 providers.acme.baseUrl: must be an http or https URL, not the text "api.example/v1". Use the whole URL, such as https://api.example/v1.',
    ],
  },
  {
    title: 'a base URL of another protocol, which is not shown since it may hold a password',
    text: 'providers:\n  acme: { baseUrl: "ftp://u:p@a.example" }\n',
    problems: [
      '2:20 providers.acme.baseUrl: must be an http or https URL, not this text. Use the whole URL, such as https://api.example/v1.',
    ],
  },
  {
    title: 'an invalid size',
    text: 'server: { bodyLimit: 20 megs }\n',
    problems: [
      '1:22 server.bodyLimit: must be a size, not the text "20 megs". Write 20mb, 512kb or a number of bytes.',
    ],
  },
  {
    title: 'a value that none of two forms takes',
    text: 'server: { workers: many }\n',
    problems: ['1:20 server.workers: must be a whole number or "auto", not the text "many".'],
  },
  {
    title: 'a value of one of two forms, by that form alone',
    text: 'policies:\n  gate: { open: { at: 9 } }\n',
    problems: ['2:23 policies.gate.open.at: must be text, not 9.'],
  },
  {
    title: 'a required option, at the instance that lacks it',
    text: 'auth:\n  api-key: {}\n  door: {}\n',
    problems: ['3:3 auth.door: needs "issuer". Who signs the tokens.'],
  },
  {
    title: 'a secret that is too short, without showing it',
    text: 'auth:\n  door: { issuer: https://a.example, secret: hunter2 }\n',
    problems: ['2:46 auth.door.secret: must have at least 32 characters.'],
  },
  {
    title: 'a secret of the wrong type, without showing it',
    text: 'providers:\n  acme: { apiKey: 12345 }\n',
    problems: ['2:19 providers.acme.apiKey: must be text.'],
  },
  {
    title: 'a variable that is not set',
    text: 'server:\n  host: ${HOST_NAME}\n',
    problems: [
      '2:9 server.host: needs the environment variable HOST_NAME, which is not set (looked in the environment, .env.local and .env). Set HOST_NAME, or use ${HOST_NAME:-default}.',
    ],
  },
  {
    title: 'a required variable that is not set, also for a secret',
    text: "providers:\n  acme: { apiKey: '${KEY:?ask Ada for one.}' }\n",
    problems: [
      '2:19 providers.acme.apiKey: needs the environment variable KEY, which is not set: ask Ada for one. Set KEY in the environment or in .env.',
    ],
  },
  {
    title: 'a secret file that is missing',
    text: "providers:\n  acme: { apiKey: '${file:./key}' }\n",
    problems: [
      '2:19 providers.acme.apiKey: needs the file ./key, which does not exist. Create it, or correct the path. Relative paths start at the configuration file.',
    ],
  },
  {
    title: 'a malformed reference',
    text: 'server:\n  host: ${HOST NAME}\n',
    problems: [
      '2:9 server.host: has a "${" without a valid reference. Use ${NAME}, ${NAME:-default}, ${NAME:?message}, ${file:/path} or ${manager:secret}. For a literal "${", write "$${".',
    ],
  },
  {
    title: 'the text of a variable of the wrong type, without showing it',
    text: 'server:\n  port: ${PORT}\n',
    input: { env: { PORT: 'hunter2' } },
    problems: ['2:9 server.port: must be a whole number.'],
  },
  {
    title: 'an alias of a provider that is not configured',
    text: 'providers: { acme: {} }\nmodels:\n  fast: acne/big\n',
    problems: ['3:9 models.fast: refers to the provider "acne", which is not configured. Did you mean "acme"?'],
  },
  {
    title: 'an alias of a provider that is switched off',
    text: 'providers: { acme: false }\nmodels:\n  fast: acme/big\n',
    problems: ['3:9 models.fast: refers to the provider "acme", which is not configured. None are configured.'],
  },
  {
    title: 'a fallback list with a bad entry',
    text: 'providers: { acme: {} }\nmodels:\n  fast: [acme/big, big]\n',
    problems: ['3:20 models.fast[1]: must be "provider/model". Use the provider’s name, a slash and the model.'],
  },
  {
    title: 'an alias of an alias',
    text: 'providers: { acme: {} }\nmodels: { a: acme/big, b: a }\n',
    problems: ['2:27 models.b: must be "provider/model". Use models, since an alias cannot refer to another alias.'],
  },
  {
    title: 'an alias that would hide a provider’s model',
    text: 'providers: { acme: {} }\nmodels: { acme/big: acme/small }\n',
    problems: [
      '2:11 models["acme/big"]: hides a model of the provider "acme". Use an alias name that does not begin with a provider name.',
    ],
  },
  {
    title: 'an empty alias list',
    text: 'models: { a: [] }\n',
    problems: ['1:14 models.a: must have at least 1 item.'],
  },
  {
    title: 'limits of a provider that is not configured',
    text: 'providers: { acme: {} }\nplans:\n  free: { rpm: 5, providers: { acmee: { rpm: 1 } } }\n',
    problems: ['3:32 plans.free.providers.acmee: is not a configured provider. Did you mean "acme"?'],
  },
  {
    title: 'an unknown default plan',
    text: 'plans: { free: {} }\ndefaultPlan: fre\n',
    problems: ['2:14 defaultPlan: refers to the plan "fre", which is not in "plans". Did you mean "free"?'],
  },
  {
    title: 'a negative and a fractional limit',
    text: 'plans:\n  free: { rpm: -1, tpm: 1.5 }\n',
    problems: [
      '2:16 plans.free.rpm: must be at least 0, not -1.',
      '2:25 plans.free.tpm: must be a whole number, not 1.5.',
    ],
  },
  {
    title: 'an invalid store, without showing it',
    text: 'store: mysql://root:hunter2@db/x\n',
    problems: [
      '1:8 store: is not a known store URL. Write memory:, sqlite:./data, redis://host:6379, postgres://user@host/database or { adapter, options }.',
    ],
  },
  {
    title: 'an option that the store does not have',
    text: 'store: { url: "sqlite:./data", durabilty: full }\n',
    problems: ['1:32 store.durabilty: unknown key. Did you mean "durability"?'],
  },
  {
    title: 'an instance whose name cannot be part of a URL',
    text: 'providers:\n  My Models: { plugin: acme }\n',
    problems: ['2:3 providers["My Models"]: is not a valid provider name. Use 1 to 63 of a-z, 0-9, ".", "_" and "-".'],
  },
  {
    title: 'a path as the name of an instance',
    text: 'policies:\n  ./guard.mjs: {}\n',
    problems: [
      '2:3 policies["./guard.mjs"]: is not a valid policy name. Use 1 to 63 of a-z, 0-9, ".", "_" and "-", and set the package or path as "plugin:".',
    ],
  },
  {
    title: 'a plugin name that is no text',
    text: 'providers:\n  mine: { plugin: 5 }\n',
    problems: ['2:19 providers.mine.plugin: must be text: the name of a built-in plugin, an npm package or a path.'],
  },
];
