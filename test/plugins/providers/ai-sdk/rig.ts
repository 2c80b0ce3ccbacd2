import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { FailureClass, FieldTable } from '../../../../contract/index.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../../../support/gateways/gateway.ts';
import type { PackageWire } from '../../../support/vendors/package-wires.ts';
import { type ScriptedUpstream, startScriptedUpstream } from '../../../support/vendors/scripted-upstream.ts';

export { respondAs } from '../../../support/vendors/package-wires.ts';

const require = createRequire(import.meta.url);

/** File of an installed package, since the gateway of a test has a folder of its own. */
export const fileOf = (name: string): string => path.dirname(require.resolve(`${name}/package.json`));

export interface Packaged {
  readonly wire: PackageWire | 'replicate';
  readonly options: Readonly<Record<string, unknown>>;
  /** Options of its factory that other operations need. */
  readonly operationOptions?: Readonly<Record<string, unknown>>;
  /** The operator's options of every call. */
  readonly providerOptions?: Readonly<Record<string, object>>;
  /** Path that the package adds to the address. */
  readonly base: string;
  /** Header in which its key arrives. */
  readonly key: readonly [header: string, prefix: string];
  /** Parts of requests that it refuses: the caller gets 404, and the next target is tried. */
  readonly refuses?: readonly ('schema' | 'tool results')[];
  /** Fields that it ignores, which the caller learns. */
  readonly ignores?: readonly string[];
  /** Formats of sound that it refuses. */
  readonly formats?: readonly string[];
  /** What a vendor wants back with the results of tools: signatures, encrypted thoughts. */
  readonly mark?: string;
  /** Parts of a vendor's response that it does not pass on, with the reason. */
  readonly lacks?: NonNullable<FieldTable['lacks']>;
  /** Folder of `test/fixtures` with errors of its vendor. */
  readonly folder: string;
  /** Classes of these errors, by name, that differ from those of the vendor's own provider. */
  readonly classes?: Readonly<Record<string, FailureClass>>;
}

const BEARER = ['authorization', 'Bearer '] as const;
const OF_OPENAI = { wire: 'openai', options: {}, base: '/v1', key: BEARER, folder: 'openai-compatible' } as const;
const NO_REASONED = { 'reasoning tokens': 'the vendor does not count them' };

/** Packages by their short name; Replicate's has no language model. */
const VENDORS: Readonly<Record<string, Packaged>> = Object.freeze({
  'amazon-bedrock': {
    ...{ wire: 'bedrock', options: { region: 'us-east-1' }, base: '', key: BEARER, folder: 'bedrock' },
    ...{ mark: '"signature":"c2lnbmVk"', lacks: NO_REASONED },
  },
  anthropic: {
    ...{ wire: 'anthropic', options: {}, base: '/v1', key: ['x-api-key', ''], folder: 'anthropic' },
    ...{ mark: '"thinking":"Let me look.","signature":"c2lnbmVk"', lacks: NO_REASONED },
  },
  baseten: { ...OF_OPENAI, operationOptions: { modelURL: 'http://vendor.example/sync/v1' } },
  cohere: {
    ...{ wire: 'cohere', options: {}, base: '/v2', key: BEARER, folder: 'cohere' },
    lacks: { ...NO_REASONED, 'cached tokens': 'the package does not read them' },
  },
  deepinfra: OF_OPENAI,
  google: {
    ...{ wire: 'gemini', options: {}, base: '/v1beta', key: ['x-goog-api-key', ''], folder: 'gemini' },
    mark: '"thoughtSignature":"Y2FsbGVk"',
  },
  groq: { ...OF_OPENAI, wire: 'groq', folder: 'groq' },
  huggingface: { ...OF_OPENAI, wire: 'huggingface', refuses: ['tool results'], ignores: ['stop'] },
  mistral: {
    ...{ ...OF_OPENAI, wire: 'mistral', folder: 'mistral', lacks: NO_REASONED },
    formats: ['aac'],
    classes: { 'a used-up quota (or a bad key: the bytes are the same)': 'authentication' },
  },
  openai: {
    ...{ ...OF_OPENAI, wire: 'responses', folder: 'openai', ignores: ['stop'] },
    mark: '"encrypted_content":"c2VhbGVk"',
    providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } },
  },
  'openai-compatible': { ...OF_OPENAI, options: { name: 'acme', supportsStructuredOutputs: true } },
  replicate: { ...OF_OPENAI, wire: 'replicate' },
});

/** Differences of one release. */
const DIFFERENCES: Readonly<Record<string, Partial<Packaged>>> = Object.freeze({
  '@ai-sdk/deepinfra': { refuses: ['schema'] },
});

/**
 * Installed packages by the name of their folder: the newest release for Node 20, and the newest of all, whose folder
 * ends in `-latest`.
 */
export const ALL_PACKAGES: Readonly<Record<string, Packaged>> = Object.freeze(
  Object.fromEntries(
    Object.entries(VENDORS).flatMap(([name, packaged]) =>
      [`@ai-sdk/${name}`, `@ai-sdk/${name}-latest`]
        .filter(isInstalled)
        .map((folder) => [folder, { ...packaged, ...DIFFERENCES[folder] }]),
    ),
  ),
);

/** Those with a language model. */
export const PACKAGES: Readonly<Record<string, Packaged & { readonly wire: PackageWire }>> = Object.freeze(
  Object.fromEntries(Object.entries(ALL_PACKAGES).filter(isLanguage)),
);

type Entry = [string, Packaged];

function isLanguage(entry: Entry): entry is [string, Packaged & { readonly wire: PackageWire }] {
  return entry[1].wire !== 'replicate';
}

function isInstalled(name: string): boolean {
  return existsSync(new URL(`../../../../node_modules/${name}`, import.meta.url));
}

export const KEY = 'sk-operator-0123456789';

export interface AiRig {
  readonly vendor: ScriptedUpstream;
  readonly gateway: TestGateway;
  /** Body of the last request at the vendor. */
  sent(): Record<string, unknown>;
  stop(): Promise<void>;
}

/** Gateway with the provider `acme` by a package, before a scripted vendor. */
export async function startAi(
  name: string,
  more: Readonly<Record<string, unknown>> = {},
  { config = {}, ...options }: TestGatewayOptions & { readonly config?: Record<string, unknown> } = {},
): Promise<AiRig> {
  const vendor = await startScriptedUpstream();
  const known = PACKAGES[name];
  const acme = {
    plugin: 'ai-sdk',
    package: known ? fileOf(name) : name,
    ...(known && { options: known.options, providerOptions: known.providerOptions }),
    ...{ baseUrl: vendor.url + (known?.base ?? ''), apiKey: KEY, models: ['m-1'] },
    prices: { '*': { input: 1, output: 2, cached_input: 0.5 } },
    ...more,
  };
  const { providers = {}, ...rest } = config as { providers?: object };
  const gateway = await startGateway({ ...rest, providers: { acme, ...providers } }, options).catch(
    async (error: unknown) => {
      await vendor.close();
      throw error;
    },
  );
  return {
    vendor,
    gateway,
    sent: () => vendor.requests.at(-1)?.json() as Record<string, unknown>,
    async stop() {
      await gateway.stop();
      await vendor.close();
    },
  };
}
