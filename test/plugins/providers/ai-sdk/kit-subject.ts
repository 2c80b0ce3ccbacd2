import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type ApiOfKind,
  type ChatRequest,
  type HttpRequest,
  isObject,
  type JsonObject,
  type Offer,
  type Plugin,
  type Provider,
  parseJson,
  readArray,
  readObject,
  type TransportResponse,
} from '../../../../contract/index.ts';
import aiSdk from '../../../../plugins/providers/ai-sdk/index.ts';
import { openPackage } from '../../../../plugins/providers/ai-sdk/package.ts';
import type { ProviderKit } from '../../../conformance/index.ts';
import type { ErrorCase } from '../../../conformance/provider-errors.ts';
import { streamOf, streamType, wholeOf } from '../../../support/vendors/package-wires.ts';
import type { ScriptedOutput } from '../../../support/vendors/vendor-wires.ts';
import { ALL_PACKAGES, fileOf, KEY, type Packaged } from './rig.ts';

/** Response of a vendor without a network. */
export interface VendorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

export interface Exchange {
  readonly status: number;
  readonly headers: TransportResponse['headers'];
  readonly text: string;
  /** Fields that the package ignored. */
  readonly dropped: readonly string[];
  /** Requests at the vendor. */
  readonly sent: readonly HttpRequest[];
}

/** Package behind the plugin, with a scripted vendor in place of the network. */
export interface PackageSubject {
  readonly name: string;
  readonly packaged: Packaged;
  readonly config: Readonly<Record<string, unknown>>;
  readonly provider: Provider;
  readonly offers: ReadonlyMap<string, Offer>;
  /** Kinds of models that the package makes, and their specification. */
  readonly kinds: readonly string[];
  readonly specification: string;
  exchange(request: HttpRequest, vendor: (request: HttpRequest) => VendorResponse): Promise<Exchange>;
}

const KINDS = ['chat', 'embeddings', 'images', 'speech', 'transcription'] as const;

/** Opens an installed package as a gateway does. */
export async function openSubject(name: string): Promise<PackageSubject> {
  const packaged = ALL_PACKAGES[name];
  if (!packaged) throw new Error(`${name} is not in the table of packages`);
  const { options, operationOptions, base, providerOptions = {} } = packaged;
  const config = { package: fileOf(name), options, providerOptions };
  const common = { ...config, apiKey: KEY, baseUrl: `http://vendor.example${base}`, models: ['m-1'] };
  const { provider, client, offers } = await setUp(common);
  const others = operationOptions && (await setUp({ ...common, options: { ...options, ...operationOptions } }));
  const settings = { ...options, ...operationOptions, apiKey: 'key', apiToken: 'key', baseURL: common.baseUrl };
  const opened = await openPackage({ package: fileOf(name), settings, baseDir: process.cwd() });
  const made = KINDS.flatMap((kind) => {
    try {
      return [{ kind, version: opened.model(kind, 'm-1').specificationVersion }];
    } catch {
      return [];
    }
  });
  return {
    ...{ name, packaged, config, provider, offers },
    kinds: made.map(({ kind }) => kind),
    specification: [...new Set(made.map(({ version }) => version))].join(', '),
    async exchange(request, vendor) {
      const sent: HttpRequest[] = [];
      const own = request.path === '/chat/completions' ? client : (others?.client ?? client);
      const response = await own(request, new AbortController().signal, async (_origin, one) => {
        sent.push(one);
        const { body, ...rest } = vendor(one);
        return { ...rest, body: bytesOf(body) };
      });
      let text = '';
      for await (const piece of response.body) text += Buffer.from(piece).toString();
      const { dropped } = readObject(parseJson(text));
      const names = [...(response.dropped ?? []), ...readArray(dropped), ...streamedDrops(text)].map(String);
      return { status: response.status, headers: response.headers, text, dropped: [...new Set(names)], sent };
    },
  };
}

/** Sets the plugin up as a gateway does. */
async function setUp(config: object): Promise<{
  readonly provider: Provider;
  readonly client: NonNullable<Provider['client']>;
  readonly offers: ReadonlyMap<string, Offer>;
}> {
  const offers = new Map<string, Offer>();
  const providers: Provider[] = [];
  const api = {
    ...{ instance: 'acme', settings: { baseDir: process.cwd() } },
    provider: (provider: Provider) => void providers.push(provider),
    offer: (operation: string, offer: Offer) => void offers.set(operation, offer),
  };
  await aiSdk.setup(api as unknown as ApiOfKind['provider'], config as never);
  const [provider] = providers;
  if (!provider?.client) throw new Error('the plugin has no client');
  return { provider, client: provider.client, offers };
}

async function* bytesOf(body: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(body);
}

function streamedDrops(text: string): readonly unknown[] {
  return [...text.matchAll(/^event: tollgate\.dropped\ndata: (.*)$/gm)].flatMap(([, data = '[]']) =>
    readArray(parseJson(data)),
  );
}

/** The vendor's response in the wire of the package, whole or streamed as the request says. */
export const sayAs =
  ({ wire }: Packaged, said: ScriptedOutput) =>
  ({ path: sent, body }: HttpRequest): VendorResponse => {
    if (wire === 'replicate') throw new Error('Replicate has no language model');
    const given = isObject(body) ? body : readObject(parseJson(Buffer.from((body ?? '') as never).toString()));
    const isStream = given['stream'] === true || sent.includes('stream');
    if (isStream) return { status: 200, headers: { 'content-type': streamType(wire) }, body: streamOf(wire, said) };
    const headers = { 'content-type': 'application/json' };
    return { status: 200, headers, body: JSON.stringify(wholeOf(wire, said)) };
  };

export const CALL = Object.freeze({ model: 'm-1', stream: false, created: 1_750_000_000, id: 'chatcmpl-1' });

/** Request of the gateway at the package for a caller's request. */
export async function requestOf({ provider }: PackageSubject, fields: object, stream = false): Promise<HttpRequest> {
  const request = { model: 'm-1', messages: [{ role: 'user', content: 'Hello' }], ...fields, stream };
  const written = await provider.chat?.request(request as unknown as ChatRequest, { ...CALL, stream });
  if (!written) throw new Error('the provider has no chat');
  return written;
}

const USAGE = { prompt: 100, completion: 40, cached: 60, reasoned: 10 };
const OUTPUTS: Readonly<Record<string, ScriptedOutput>> = {
  '': { pieces: [{ reasoning: 'A greeting.', signature: 'c2lnbmVk' }, { text: 'Hello there' }], usage: USAGE },
  '-tools': {
    pieces: [
      { call: 'look', id: 'call_0', arguments: '{"at":"x"}' },
      { call: 'look', id: 'call_1', arguments: '{"at":"y"}' },
    ],
    usage: USAGE,
  },
};
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];

function usageOf({ lacks = {} }: Packaged): JsonObject {
  return {
    ...{ prompt_tokens: 100, completion_tokens: 40, total_tokens: 140 },
    ...(!lacks['cached tokens'] && { prompt_tokens_details: { cached_tokens: 60 } }),
    ...(!lacks['reasoning tokens'] && { completion_tokens_details: { reasoning_tokens: 10 } }),
  };
}

/**
 * Writes what a package makes of its vendor's responses, streams, errors and embeddings as the fixtures of the
 * conformance kit, with what the vendor meant as their expectation.
 */
export async function recordFixtures(subject: PackageSubject): Promise<URL> {
  const { packaged } = subject;
  const folder = mkdtempSync(path.join(tmpdir(), 'ai-sdk-kit-'));
  const write = (file: string, text: string, expected?: object): void => {
    writeFileSync(path.join(folder, file), text);
    if (expected) writeFileSync(path.join(folder, `${file}.expected.json`), JSON.stringify(expected));
  };
  for (const [name, said] of subject.kinds.includes('chat') ? Object.entries(OUTPUTS) : []) {
    const isCall = name === '-tools';
    const finish_reason = isCall ? 'tool_calls' : 'stop';
    const texts = isCall ? {} : { content: 'Hello there', reasoning_content: 'A greeting.' };
    const calls = ['x', 'y'].map((at) => ({ name: 'look', arguments: JSON.stringify({ at }) }));
    const usage = usageOf(packaged);
    const fields = isCall ? { tools: TOOLS } : {};
    const whole = await subject.exchange(await requestOf(subject, fields), sayAs(packaged, said));
    const message = isCall ? { tool_calls: calls.map((call) => ({ type: 'function', function: call })) } : texts;
    write(`chat${name}.json`, whole.text, { choices: [{ message, finish_reason }], usage });
    const streamed = await subject.exchange(await requestOf(subject, fields, true), sayAs(packaged, said));
    const choice = isCall ? { tool_calls: calls, finish_reason } : { ...texts, finish_reason };
    write(`stream${name}.sse`, streamed.text, { choices: [choice], usage });
  }
  if (subject.kinds.includes('chat')) write('errors.json', JSON.stringify(await recordErrors(subject)));
  if (subject.kinds.includes('embeddings')) await recordEmbeddings(subject, write);
  return pathToFileURL(`${folder}/`);
}

/** Errors of the vendor. */
export function errorsOf({ folder }: Packaged): readonly ErrorCase[] {
  const file = new URL(`../../../fixtures/${folder}/errors.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as readonly ErrorCase[];
}

/** Errors of the vendor, as the package passes them on. */
async function recordErrors(subject: PackageSubject): Promise<readonly object[]> {
  const rows: object[] = [];
  const { packaged } = subject;
  for (const { body, headers = {}, ...row } of errorsOf(packaged)) {
    const type = typeof body === 'string' ? 'text/html' : 'application/json';
    const vendor = (): VendorResponse => ({
      ...{ status: row.status, headers: { 'content-type': type, ...headers } },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const found = await subject.exchange(await requestOf(subject, {}), vendor);
    const expected = packaged.classes?.[row.name] ?? row.class;
    rows.push({
      ...row,
      class: expected,
      status: found.status,
      headers: found.headers,
      body: parseJson(found.text) ?? found.text,
    });
  }
  return rows;
}

async function recordEmbeddings(
  subject: PackageSubject,
  write: (file: string, text: string, expected: object) => void,
): Promise<void> {
  const body = { model: 'm-1', input: ['one', 'three'] };
  const found = await subject.exchange({ path: '/embeddings', body }, embedAs(subject.packaged));
  const data = [0, 1].map((index) => ({ index }));
  write('embeddings.json', found.text, { object: 'list', model: 'm-1', data });
}

/** Vectors in the form of the vendor. */
const embedAs =
  ({ wire }: Packaged) =>
  ({ body }: HttpRequest): VendorResponse => {
    const given = isObject(body) ? body : {};
    const texts = readArray(given['input'] ?? given['texts'] ?? given['requests'] ?? [given['inputText']]);
    const vectors = texts.map((_, at) => [0.25 + at, -0.5]);
    const forms: Readonly<Record<string, object>> = {
      cohere: { id: 'e', embeddings: { float: vectors }, meta: { billed_units: { input_tokens: 7 } } },
      bedrock: { embedding: vectors[0], inputTextTokenCount: 7 },
      gemini:
        texts.length > 1
          ? { embeddings: vectors.map((values) => ({ values })) }
          : { embedding: { values: vectors[0] } },
    };
    const openai = {
      ...{ object: 'list', model: 'm', usage: { prompt_tokens: 7, total_tokens: 7 } },
      data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    };
    return {
      ...{ status: 200, headers: { 'content-type': 'application/json' } },
      body: JSON.stringify(forms[wire] ?? openai),
    };
  };

/** The plugin with what is special about a package: its name, what its responses lack, the operations that it has. */
export function pluginOf({ name, packaged, kinds }: PackageSubject): ProviderKit['plugin'] {
  const plugin: Plugin<object, 'provider'> = aiSdk as never;
  return {
    ...plugin,
    name: name.replace('@ai-sdk/', 'ai-sdk-'),
    setup: (api, config) =>
      plugin.setup(
        {
          ...api,
          settings: { ...api.settings, baseDir: process.cwd() },
          provider({ fields, chat, ...rest }: Provider) {
            const lacks = { ...fields?.lacks, ...packaged.lacks };
            api.provider?.({
              ...rest,
              ...(chat && kinds.includes('chat') && { chat }),
              ...(fields && { fields: { ...fields, lacks } }),
            });
          },
          offer(operation: string, offer: Offer) {
            if (!kinds.includes(operation)) return;
            const { formats = [] } = offer as { readonly formats?: readonly string[] };
            const spoken = formats.filter((format) => !packaged.formats?.includes(format));
            api.offer(operation as never, { ...offer, ...(spoken.length > 0 && { formats: spoken }) } as never);
          },
        } as ApiOfKind['provider'],
        config,
      ),
  };
}
