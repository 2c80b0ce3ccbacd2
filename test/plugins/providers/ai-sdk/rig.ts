import { createRequire } from 'node:module';
import path from 'node:path';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../../../support/gateways/gateway.ts';
import {
  type RecordedRequest,
  respondWith,
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';
import { type ScriptedOutput, streamText, type Wire, wholeBody } from '../../../support/vendors/vendor-wires.ts';

const require = createRequire(import.meta.url);

/** File of an installed package, since the gateway of a test has a folder of its own. */
export const fileOf = (name: string): string => path.dirname(require.resolve(`${name}/package.json`));

/** Groq's is OpenAI's with differences. */
type PackageWire = Wire | 'groq';

interface Packaged {
  readonly wire: PackageWire;
  readonly options: Readonly<Record<string, unknown>>;
  /** Path that the package adds to the address. */
  readonly base: string;
  /** Header in which its key arrives. */
  readonly key: readonly [header: string, prefix: string];
  /** False if it ignores a schema. */
  readonly schema?: false;
}

/** Installed packages, one for each specification and more. */
export const PACKAGES: Readonly<Record<string, Packaged>> = Object.freeze({
  '@ai-sdk/openai-compatible': {
    ...{ wire: 'openai', options: { name: 'acme', supportsStructuredOutputs: true }, base: '/v1' },
    key: ['authorization', 'Bearer '],
  },
  '@ai-sdk/deepinfra': { wire: 'openai', options: {}, base: '/v1', key: ['authorization', 'Bearer '], schema: false },
  '@ai-sdk/groq': { wire: 'groq', options: {}, base: '/v1', key: ['authorization', 'Bearer '] },
  '@ai-sdk/mistral': { wire: 'mistral', options: {}, base: '/v1', key: ['authorization', 'Bearer '] },
  '@ai-sdk/baseten': { wire: 'openai', options: {}, base: '/v1', key: ['authorization', 'Bearer '] },
  '@ai-sdk/anthropic': { wire: 'anthropic', options: {}, base: '/v1', key: ['x-api-key', ''] },
  '@ai-sdk/google': { wire: 'gemini', options: {}, base: '/v1beta', key: ['x-goog-api-key', ''] },
});

export const KEY = 'sk-operator-0123456789';

export function isStreamed({ path: sent, body }: RecordedRequest): boolean {
  return sent.includes('stream') || (JSON.parse(body.toString() || '{}') as { stream?: unknown }).stream === true;
}

/** Answers in the wire's format, whole or streamed as asked. */
export const respondAs =
  (wire: PackageWire, said: ScriptedOutput): Script =>
  ({ request, send }) => {
    const spoken = wire === 'groq' ? 'openai' : wire;
    const isEvents = isStreamed(request);
    const written = isEvents ? streamText(spoken, said) : JSON.stringify(wholeBody(spoken, said));
    return send(
      respondWith(200, wire === 'groq' ? asGroq(written) : written, {
        'content-type': isEvents ? 'text/event-stream' : 'application/json',
      }),
    );
  };

/** Groq names thoughts otherwise, and its streams have the usage in a place of their own. */
function asGroq(text: string): string {
  return text
    .replaceAll('"reasoning_content"', '"reasoning"')
    .replace(/"choices":\[\],"usage":(.*)\}\n/, '"choices":[],"x_groq":{"usage":$1}}\n');
}

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
    ...(known && { options: known.options }),
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
