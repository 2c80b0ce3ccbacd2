import { checkConfig, type KnownPlugins } from '../../config/check.ts';
import type { GatewayConfig } from '../../config/core-schema.ts';
import { ConfigError, formatProblem } from '../../config/problems.ts';
import { readRawConfig } from '../../config/read.ts';
import { PROVIDER_OPTIONS } from '../../plugins/formats/kit/options.ts';
import { makeFolder } from '../support/folders.ts';

/** Schema of a store on a server. */
const serverStore = (example: string) => ({
  type: 'object',
  examples: [example],
  properties: { url: { type: 'string', secret: true }, cluster: { type: 'boolean' } },
});

/** Plugins for the configuration: names and schemas without code. */
export const PLUGINS: KnownPlugins = {
  builtins: [
    { kind: 'policy', name: 'gate' },
    { kind: 'policy', name: 'meter' },
    { kind: 'provider', name: 'acme' },
    { kind: 'provider', name: 'local' },
    { kind: 'auth', name: 'api-key' },
    { kind: 'auth', name: 'door' },
    { kind: 'store', name: 'memory' },
    { kind: 'store', name: 'sqlite' },
    { kind: 'store', name: 'redis' },
    { kind: 'store', name: 'postgres' },
    { kind: 'store', name: 'keyv' },
  ],
  schemas: [
    { kind: 'provider', name: 'acme', schema: { type: 'object', properties: PROVIDER_OPTIONS } },
    {
      kind: 'provider',
      name: 'local',
      schema: { type: 'object', required: ['baseUrl'], properties: PROVIDER_OPTIONS },
    },
    {
      kind: 'auth',
      name: 'api-key',
      schema: { type: 'object', properties: { bootstrap: { type: 'boolean', default: false } } },
    },
    {
      kind: 'auth',
      name: 'door',
      schema: {
        type: 'object',
        required: ['issuer'],
        properties: {
          issuer: { type: 'string', format: 'url', description: 'Who signs the tokens.' },
          secret: { type: 'string', minLength: 32, secret: true },
          claims: { type: 'object', properties: { user: { type: 'string' }, plan: { type: 'string' } } },
        },
      },
    },
    {
      kind: 'policy',
      name: 'gate',
      schema: {
        type: 'object',
        properties: {
          floor: { type: ['string', 'number'], format: 'money', default: '0' },
          open: { anyOf: [{ type: 'boolean' }, { type: 'object', properties: { at: { type: 'string' } } }] },
        },
      },
    },
    { kind: 'store', name: 'memory', schema: { type: 'object', examples: ['memory:'], properties: {} } },
    {
      kind: 'store',
      name: 'sqlite',
      schema: {
        type: 'object',
        examples: ['sqlite:./data'],
        properties: {
          folder: { type: 'string', format: 'path', default: 'data' },
          durability: { type: 'string', enum: ['normal', 'full'] },
        },
      },
    },
    { kind: 'store', name: 'redis', schema: serverStore('redis://host:6379') },
    { kind: 'store', name: 'postgres', schema: serverStore('postgres://user@host/database') },
    {
      kind: 'store',
      name: 'keyv',
      schema: { type: 'object', required: ['adapter'], properties: { adapter: { type: 'string' }, options: {} } },
    },
  ],
};

export interface TextInput {
  /** File name of the configuration. Default: YAML. */
  readonly name?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

/** Reads and checks the text of a configuration. */
export async function checkText(text: string, input: TextInput = {}): Promise<GatewayConfig> {
  const cwd = makeFolder({ [input.name ?? 'tollgate.config.yaml']: text, ...input.files });
  return checkConfig(await readRawConfig({ cwd, env: input.env ?? {} }), PLUGINS);
}

/** Problem lines of a configuration's text, as printed; empty if it is valid. */
export async function problemLines(text: string, input: TextInput = {}): Promise<readonly string[]> {
  try {
    await checkText(text, input);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
}
