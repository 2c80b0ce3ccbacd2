import { readFile } from 'node:fs/promises';
import path from 'node:path';
import {
  definePlugin,
  isObject,
  type JsonObject,
  OptionError,
  type PluginConfig,
  parseJson,
  problemsOf,
  readString,
  type Secret,
  type SecretsContext,
} from '../../contract/index.ts';
import { fieldOf, REFRESH_OPTION, readRefresh, splitReference } from './kit/reference.ts';

const TEXT = { type: 'string', minLength: 1 } as const;

const CONFIG_SCHEMA = {
  type: 'object',
  required: ['address'],
  additionalProperties: false,
  properties: {
    address: { ...TEXT, format: 'url', description: 'URL of Vault, such as `https://vault.example:8200`.' },
    namespace: { ...TEXT, description: 'Namespace (Vault Enterprise).' },
    token: { ...TEXT, secret: true, description: 'Token. One of `token`, `appRole` and `kubernetes` is required.' },
    appRole: {
      type: 'object',
      additionalProperties: false,
      required: ['roleId', 'secretId'],
      description: 'Signs in by AppRole.',
      properties: {
        roleId: { ...TEXT, description: 'Role id.' },
        secretId: { ...TEXT, secret: true, description: 'Secret id of the role.' },
        mount: { ...TEXT, default: 'approle', description: 'Mount path of the auth method.' },
      },
    },
    kubernetes: {
      type: 'object',
      additionalProperties: false,
      required: ['role'],
      description: 'Signs in with the service account token of a pod.',
      properties: {
        role: { ...TEXT, description: 'Role in Vault.' },
        tokenFile: {
          ...TEXT,
          format: 'path',
          default: '/var/run/secrets/kubernetes.io/serviceaccount/token',
          description: 'File of the token, read for each sign-in.',
        },
        mount: { ...TEXT, default: 'kubernetes', description: 'Mount path of the auth method.' },
      },
    },
    refresh: REFRESH_OPTION,
  },
} as const;

type VaultConfig = PluginConfig<typeof CONFIG_SCHEMA>;

/**
 * Secrets of HashiCorp Vault and OpenBao: `vault:secret/data/openai#key` is a field at that API path, for both
 * versions of the KV engine and for engines that generate credentials. Sources:
 * https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2,
 * https://developer.hashicorp.com/vault/api-docs/auth/approle,
 * https://developer.hashicorp.com/vault/api-docs/auth/kubernetes
 */
export default definePlugin({
  name: 'vault',
  kind: 'secrets',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA,
  check: (config) => problemsOf(() => assertOneWay(config)),
  setup() {},

  secrets(config, context) {
    assertOneWay(config);
    const refreshMs = readRefresh(config.refresh);
    let login: Promise<Login> | undefined;
    const read = new Map<string, Promise<Found>>();
    const find = async (at: string): Promise<Found> => {
      login ??= signIn(config, context);
      const { token, forMs } = await login;
      const body = await request(config, context, { path: at, token });
      return readFound(body, refreshMs, forMs);
    };
    return {
      async read(name): Promise<Secret> {
        const { path: at, field } = splitReference(name.replace(/^\/+/, ''));
        if (field === undefined || field === '') throw new Error('the reference has no field; use path#field');
        if (!/^[\w.~@+-]+(\/[\w.~@+-]+)+$/.test(at) || at.split('/').some((part) => /^\.+$/.test(part)))
          throw new Error('the reference has an invalid path');
        // Fields of generated credentials belong together, so they are read once.
        const known = read.get(at) ?? find(at);
        read.set(at, known);
        const { fields, againMs } = await known;
        return { text: fieldOf(fields, field), againMs };
      },
    };
  },
});

function assertOneWay({ token, appRole, kubernetes }: VaultConfig): void {
  const given = Object.entries({ token, appRole, kubernetes }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (given.length === 1) return;
  throw new OptionError(
    '',
    given.length === 0 ? 'needs one of `token`, `appRole` and `kubernetes`' : `has ${given.join(' and ')}`,
    given.length === 0 ? 'A reference to an unset variable counts as missing.' : 'Keep only one of them.',
  );
}

interface Login {
  readonly token: string;
  /** Lifetime of the token in milliseconds, if it expires: credentials that it created expire with it. */
  readonly forMs?: number;
}

async function signIn(config: VaultConfig, context: SecretsContext): Promise<Login> {
  const { token, appRole, kubernetes } = config;
  if (token !== undefined) return { token };
  const [mount, json] = appRole
    ? [appRole.mount, { role_id: appRole.roleId, secret_id: appRole.secretId }]
    : [kubernetes?.mount ?? '', { role: kubernetes?.role, jwt: await readToken(kubernetes?.tokenFile ?? '', context) }];
  const { auth } = await request(config, context, { path: `auth/${mount}/login`, json });
  const { client_token: made, lease_duration: seconds } = isObject(auth) ? auth : {};
  const text = readString(made);
  if (text === undefined) throw new Error('Vault accepted the sign-in but returned no token');
  return { token: text, ...(Number(seconds) > 0 && { forMs: Number(seconds) * 1000 }) };
}

async function readToken(file: string, { baseDir }: SecretsContext): Promise<string> {
  const text = await readFile(path.resolve(baseDir, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file of kubernetes.tokenFile cannot be read (${error.code ?? 'unknown'})`);
  });
  return text.trim();
}

interface Found {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly againMs: number;
}

/**
 * Expiring credentials are renewed after two thirds of their lifetime, and of the lifetime of the token that created
 * them.
 */
const SHARE = 2 / 3;

function readFound(body: JsonObject, refreshMs: number, loginMs = Number.POSITIVE_INFINITY): Found {
  const { data, lease_id: lease, lease_duration: seconds } = body;
  if (!isObject(data)) throw new Error('Vault returned no data');
  // Version 2 of the KV engine nests the fields one level down, next to the metadata of their version.
  const isVersioned = isObject(data['data']) && isObject(data['metadata']);
  if (data['data'] === null && isObject(data['metadata'])) throw new Error('its latest version was deleted');
  const fields = isVersioned && isObject(data['data']) ? data['data'] : data;
  const endsMs = lease ? Math.min(Number(seconds) * 1000, loginMs) : Number.POSITIVE_INFINITY;
  return { fields, againMs: Number.isFinite(endsMs) ? Math.max(endsMs * SHARE, 1000) : refreshMs };
}

interface Question {
  readonly path: string;
  readonly token?: string;
  readonly json?: object;
}

const TIMEOUT_MS = 10_000;
const MAX_WORDS = 300;

async function request(
  { address, namespace }: VaultConfig,
  context: SecretsContext,
  question: Question,
): Promise<JsonObject> {
  const { path: at, token, json } = question;
  const client = await context.http();
  const { statusCode, body } = await client(`${address.replace(/\/+$/, '')}/v1/${at}`, {
    method: json ? 'POST' : 'GET',
    headers: {
      // Prevents an agent in between from answering requests of web pages.
      'x-vault-request': 'true',
      ...(token !== undefined && { 'x-vault-token': token }),
      ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
    },
    ...(json && { json: json as Record<string, unknown> }),
    responseType: 'text',
    throwHttpErrors: false,
    timeout: { request: TIMEOUT_MS },
  }).catch((cause: unknown) => {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw new Error(`Vault cannot be reached (${code})`);
  });
  const value: unknown = parseJson(body);
  if (statusCode === 200 && isObject(value)) return value;
  const { errors, warnings } = isObject(value) ? value : {};
  const words = [errors, warnings].flatMap((list) =>
    Array.isArray(list) ? list.filter((each) => typeof each === 'string') : [],
  );
  throw new Error(
    `Vault returned status ${statusCode}${words.length === 0 ? '' : `: ${words.join('; ').slice(0, MAX_WORDS)}`}`,
  );
}
