import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createEventReader } from '../../contract/event-reader.ts';
import type {
  ApiOfKind,
  ChatChunk,
  ChatCodec,
  ChatRequest,
  CodecCall,
  HttpRequest,
  Offer,
  Plugin,
  Provider,
  StreamProgress,
} from '../../contract/index.ts';
import type { EmbeddingCodec, EmbeddingOffer } from '../../plugins/providers/kit/index.ts';
import type { WithRunner } from './runner.ts';

/** Options of {@link testProvider}. */
export interface ProviderKit extends WithRunner {
  readonly plugin: Plugin<object, 'provider'>;
  /** Options that the plugin needs in addition to its key. */
  readonly config?: Readonly<Record<string, unknown>>;
  /**
   * Folder of the vendor's own bytes. `chat*.json` are responses, `stream*.sse` are streams. Together they show every
   * feature that the provider's data does not list in `lacks`. A provider with embeddings or a model list also needs
   * `embeddings*.json` or `models*.json`.
   *
   * Optional files are `failure*.json` and `failure*.sse` (failures with status 200) and `errors.json`, a list of `{
   * name, status, headers?, body, class, retryAfterMs?, param? }`.
   *
   * The file `<file>.expected.json` next to each fixture has the expected result; for objects only the named fields are
   * compared. A fixture without one fails a test.
   */
  readonly fixtures: URL;
  /** Part of `chat.request` that does not wait, for a codec that returns a promise. The kit compares both. */
  readonly request?: (input: ChatRequest, call: CodecCall) => HttpRequest;
  /** Error event of the vendor's stream. Default: OpenAI's. */
  readonly errorEvent?: string;
  /** Name of a possible future model of the vendor. Default: a made-up name. */
  readonly unknownModel?: string;
  /** Checks the results in addition to the kit's own checks, for example against a schema. */
  readonly validate?: {
    readonly response?: (value: unknown) => void;
    readonly chunk?: (value: unknown) => void;
    readonly embeddings?: (value: unknown) => void;
  };
}

export interface Fixture {
  readonly name: string;
  readonly text: string;
  /** Content of `<name>.expected.json`. */
  readonly expected: Readonly<Record<string, unknown>> | undefined;
}

/** Provider, its operations other than chat, and its codec of embeddings if it offers them. */
export type SubjectProvider = Omit<Provider, 'chat'> & {
  readonly operations: readonly string[];
  readonly embed?: EmbeddingCodec;
  readonly chat?: SubjectCodec;
};

/** Codec whose requests the kit reads at once. */
type SubjectCodec = Omit<ChatCodec, 'request'> & { request(...args: Parameters<ChatCodec['request']>): HttpRequest };

/** Provider that a plugin registers, and its fixtures. */
export interface ProviderSubject {
  readonly name: string;
  readonly provider: SubjectProvider;
  readonly kit: ProviderKit;
  fixtures(prefix: string, extension: string): readonly Fixture[];
}

/** Key that no output may contain. */
export const SECRET = 'sk-conformance-0123456789abcdefghij';

export const CALL: CodecCall = Object.freeze({
  model: 'conformance-model',
  stream: false,
  created: 1_750_000_000,
  id: 'chatcmpl-conformance',
});

/** Sets the plugin up in isolation and returns what it registers. Throws unless that is exactly one provider. */
export function registerProvider(
  plugin: Plugin,
  config: Readonly<Record<string, unknown>>,
): { readonly provider: Provider; readonly offers: ReadonlyMap<string, Offer> } {
  const registered: Provider[] = [];
  const offers = new Map<string, Offer>();
  const api = {
    instance: plugin.name,
    settings: { baseDir: process.cwd() } as ApiOfKind['provider']['settings'],
    provider: (provider: Provider) => void registered.push(provider),
    offer: (operation: string, offer: Offer) => void offers.set(operation, offer),
  } as Partial<ApiOfKind['provider']>;
  void plugin.setup(api as ApiOfKind['provider'], config);
  const [provider, ...more] = registered;
  if (!provider || more.length > 0)
    throw new Error(
      `${plugin.name} registers ${registered.length} providers: its \`setup\` has to call \`api.provider\` once, before it returns`,
    );
  return { provider, offers };
}

/** Sets the plugin up in isolation and returns its provider for the tests. */
export function setUpProvider(
  plugin: Plugin,
  config: Readonly<Record<string, unknown>>,
  request?: ProviderKit['request'],
): SubjectProvider {
  const { provider, offers } = registerProvider(plugin, config);
  const embeddings = offers.get('embeddings') as EmbeddingOffer | undefined;
  const { chat, ...rest } = provider;
  return {
    ...rest,
    ...(chat && { chat: atOnce(chat, request) }),
    operations: [...offers.keys()].sort(),
    ...(embeddings && { embed: embeddings.codec }),
  };
}

/** Codec with the given `request` in place of its own, which must not return a promise. */
function atOnce(codec: ChatCodec, request: ProviderKit['request']): SubjectCodec {
  const own = (...args: Parameters<ChatCodec['request']>): HttpRequest => {
    const sent = codec.request(...args);
    if (!('then' in sent)) return sent;
    void sent.catch(() => undefined);
    throw new Error('chat.request() returns a promise: give the kit `request`, the part of it that does not wait');
  };
  return Object.create(codec, { request: { value: request ?? own } }) as SubjectCodec;
}

export function createSubject(kit: ProviderKit): ProviderSubject {
  const folder = kit.fixtures;
  return {
    name: kit.plugin.name,
    provider: setUpProvider(kit.plugin, { apiKey: SECRET, ...kit.config }, kit.request),
    kit,
    fixtures(prefix, extension) {
      if (!existsSync(folder)) return [];
      const names = readdirSync(folder).filter(
        (name) => name.startsWith(prefix) && name.endsWith(extension) && !name.endsWith('.expected.json'),
      );
      return names.sort().map((name) => {
        const expected = `${name}.expected.json`;
        const text = readFileSync(new URL(name, folder), 'utf8');
        if (name.endsWith('.json')) readJson(text, name);
        return {
          name,
          text,
          expected: existsSync(new URL(expected, folder))
            ? (readJson(readFileSync(new URL(expected, folder), 'utf8'), expected) as Fixture['expected'])
            : undefined,
        };
      });
    },
  };
}

/** Parses a fixture. Throws with the name of its file. */
export function readJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`the fixture ${name} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

export interface Decoded {
  readonly chunks: readonly ChatChunk[];
  readonly complete: boolean;
}

/** Runs a stream's bytes, in the given pieces, through the gateway's event reader and the provider's decoder. */
export function decodeStream(
  provider: Provider,
  pieces: readonly Uint8Array[],
  call: CodecCall = streamCall(),
): Decoded {
  const decoder = provider.chat?.stream(call);
  if (!decoder) throw new Error('the provider has no chat');
  const reader = createEventReader();
  const chunks: ChatChunk[] = [];
  for (const piece of pieces) for (const event of reader.push(piece)) chunks.push(...decoder.push(event));
  for (const event of reader.end()) chunks.push(...decoder.push(event));
  const end = decoder.end();
  return { chunks: [...chunks, ...end.chunks], complete: end.complete };
}

/**
 * Runs a stream's bytes up to the end declared by the decoder; the progress is undefined if the decoder declares none.
 */
export function decodeDeclared(
  provider: Provider,
  bytes: Uint8Array,
): { readonly chunks: readonly ChatChunk[]; readonly progress: StreamProgress | undefined } {
  const decoder = provider.chat?.stream(streamCall());
  if (!decoder) throw new Error('the provider has no chat');
  const reader = createEventReader();
  const chunks: ChatChunk[] = [];
  for (const event of [...reader.push(bytes), ...reader.end()]) {
    if (decoder.progress?.() === 'complete') break;
    chunks.push(...decoder.push(event));
  }
  const progress = decoder.progress?.();
  return { chunks: [...chunks, ...decoder.end().chunks], progress };
}

export function streamCall(): CodecCall {
  return { ...CALL, stream: true };
}
