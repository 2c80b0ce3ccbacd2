import { readdirSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';
import type { Plugin } from '../../../contract/index.ts';
import { type SubjectProvider, setUpProvider } from '../../conformance/provider-subject.ts';

const FOLDER = new URL('../../../plugins/providers/', import.meta.url);

/** Options that a provider needs for its set-up. */
const CONFIG: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'ai-sdk': {
    package: path.join(PACKAGE_ROOT, 'node_modules/@ai-sdk/openai-compatible'),
    options: { name: 'acme', supportsStructuredOutputs: true },
  },
  azure: { resource: 'acme' },
  bedrock: { region: 'us-east-1' },
  vertex: { project: 'acme-1', location: 'europe-west4' },
  'openai-compatible': { baseUrl: 'http://127.0.0.1:8000/v1' },
};

export interface BuiltInProvider {
  readonly name: string;
  readonly plugin: Plugin<object, 'provider'>;
  readonly provider: SubjectProvider;
  /** Options that it was set up with. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** All providers in the folder, by name; new ones are detected automatically. */
export async function loadProviders(): Promise<readonly BuiltInProvider[]> {
  const names = readdirSync(FOLDER, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isFile() && entry.name.endsWith('.ts')) return [entry.name];
    const isPlugin =
      entry.isDirectory() && entry.name !== 'kit' && readdirSync(new URL(entry.name, FOLDER)).includes('index.ts');
    return isPlugin ? [`${entry.name}/index.ts`] : [];
  });
  return Promise.all(
    names.sort().map(async (name) => {
      const { default: plugin } = (await import(new URL(name, FOLDER).href)) as {
        readonly default: Plugin<object, 'provider'>;
      };
      const config = CONFIG[plugin.name] ?? {};
      return { name: plugin.name, plugin, provider: setUpProvider(plugin, config), config };
    }),
  );
}

/** Providers whose codecs write the requests for the network. */
export async function loadNetworkProviders(): Promise<readonly BuiltInProvider[]> {
  return (await loadProviders()).filter(({ provider }) => !provider.transport && !provider.client);
}
