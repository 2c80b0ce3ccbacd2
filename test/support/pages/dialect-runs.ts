import { isDeepStrictEqual } from 'node:util';
import { isObject, type JsonObject, parseJson, readObject } from '../../../contract/index.ts';
import type { Cell } from '../../conformance/cells.ts';
import { OWN_SAMPLES } from '../../conformance/provider-published.ts';
import { SAMPLES } from '../../conformance/provider-samples.ts';
import { startGateway } from '../gateways/gateway.ts';
import type { BuiltInProvider } from '../plugins/all-providers.ts';
import { type RecordedRequest, respondWith, startScriptedUpstream } from '../vendors/scripted-upstream.ts';
import { DIALECT_FEATURES, type DialectFeature } from './dialect-features.ts';

/** Newest model of each vendor in the tables; for other vendors any name works. */
export const NEWEST: Readonly<Record<string, string>> = Object.freeze({
  anthropic: 'claude-opus-5-5',
  azure: 'gpt-6.1-sol',
  bedrock: 'global.amazon.nova-2-lite-v1:0',
  deepseek: 'deepseek-v4-pro',
  gemini: 'gemini-4-argon',
  mistral: 'mistral-large-4',
  openai: 'gpt-6.1-sol',
  vertex: 'gemini-4-argon',
  xai: 'grok-4.7',
});

/** Handling of one request feature by a provider. */
export type Passage = 'native' | 'translated' | 'emulated' | 'left out' | 'refused';

/** Result of one request, at the caller and at the vendor. */
interface Run {
  readonly status: number;
  readonly text: string;
  readonly lane: string | null;
  readonly dropped: ReadonlySet<string>;
  /** Body that the vendor received; undefined for a provider without a vendor. */
  readonly sent: string | undefined;
  /** Relevant headers that the vendor received. */
  readonly heads: string | undefined;
}

/** Form in which one field of a chat request reached a vendor, for its newest model. */
export interface Arrival {
  readonly is: 'as it is' | 'rewritten' | 'left out' | 'refused';
  /** Places in the vendor's body; empty if there are none. */
  readonly at: readonly string[];
  /** True if `x-tollgate-dropped` names it. */
  readonly isReported: boolean;
}

/** Cell of the matrix for a field, from its arrival. */
export function arrivedCell({ name, provider }: BuiltInProvider, field: string, arrival: Arrival | undefined): Cell {
  // Reported as dropped, and an approximation is sent all the same.
  const comesNear = arrival?.is === 'left out' && arrival.at.length > 0;
  const isEmulated = comesNear || (arrival?.is === 'rewritten' && provider.fields?.fields[field]?.rule === 'emulated');
  const says = isEmulated ? 'emulated' : SAYS[arrival?.is ?? 'refused'];
  return { provider: name, feature: `\`${field}\``, says, arrived: true };
}

const SAYS = {
  'as it is': 'verified',
  rewritten: 'verified',
  'left out': 'not offered',
  refused: 'refused',
} as const satisfies Record<Arrival['is'], Cell['says']>;

/** Model for which arrivals are measured. */
export function newestOf(provider: string): string {
  return provider === 'echo' ? 'echo' : (NEWEST[provider] ?? 'some-model');
}

export interface DialectRuns {
  /** Sends a request with the feature through a gateway, and inspects the request at the vendor. */
  cellOf(dialect: string, provider: BuiltInProvider, feature: DialectFeature): Promise<Passage>;
  /** Sends a chat with the field and inspects the request at the vendor; undefined for a field without a sample. */
  arrivalOf(provider: BuiltInProvider, field: string): Promise<Arrival | undefined>;
  close(): Promise<void>;
}

/** Response in the formats of all wires at once. */
const WORDS = 'Well.';
const RESPONSE = Object.freeze({
  ...{
    id: 'r',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    type: 'message',
    role: 'assistant',
    stop_reason: 'end_turn',
  },
  choices: [{ index: 0, message: { role: 'assistant', content: WORDS }, finish_reason: 'stop' }],
  content: [{ type: 'text', text: WORDS }],
  candidates: [{ content: { role: 'model', parts: [{ text: WORDS }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  output: { message: { role: 'assistant', content: [{ text: WORDS }] } },
  stopReason: 'end_turn',
  usage: {
    ...{ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, input_tokens: 3, output_tokens: 2 },
    ...{ inputTokens: 3, outputTokens: 2 },
  },
});
/** Response to a request with tools, which may require a call. */
const CALLING = Object.freeze({
  ...RESPONSE,
  stop_reason: 'tool_use',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: WORDS,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'now', arguments: '{}' } }],
      },
      finish_reason: 'tool_calls',
    },
  ],
  content: [...RESPONSE.content, { type: 'tool_use', id: 'call_1', name: 'now', input: {} }],
});
const ITEM = {
  id: 'i',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: WORDS, annotations: [] }],
};
const OF_RESPONSES = Object.freeze({
  ...RESPONSE,
  object: 'response',
  created_at: 1,
  status: 'completed',
  output: [ITEM],
  content: undefined,
});

const PATHS: Readonly<Record<string, (model: string) => string>> = Object.freeze({
  chat: () => '/v1/chat/completions',
  completions: () => '/v1/completions',
  gemini: (model) => `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
  interactions: () => '/v1beta/interactions',
  messages: () => '/v1/messages',
  ollama: () => '/api/chat',
  portkey: () => '/portkey/v1/chat/completions',
  responses: () => '/v1/responses',
});

/** Gateway in front of a vendor that accepts everything, with the name of every provider. */
export async function openDialectRuns(providers: readonly BuiltInProvider[]): Promise<DialectRuns> {
  const vendor = await startScriptedUpstream(async (wire) => {
    const { path, body } = wire.request;
    const plain = body.includes('"tools"') ? CALLING : RESPONSE;
    await wire.send(respondWith(200, path.includes('/responses') ? OF_RESPONSES : plain));
  });
  const serverTools = ['web_search', 'googleSearch'];
  const gateway = await startGateway({
    plans: { all: { serverTools } },
    defaultPlan: 'all',
    providers: Object.fromEntries(
      providers.map(({ name, config }) => [
        name,
        name === 'echo' ? {} : { ...config, apiKey: `key-of-${name}`, baseUrl: `${vendor.url}/${name}`, models: ['*'] },
      ]),
    ),
  });
  const plain = new Map<string, Run>();
  const others = new Map<string, Run>();
  let seen = 0;

  async function run(dialect: string, provider: string, extra: object): Promise<Run> {
    const model = `${provider}/${newestOf(provider)}`;
    const body = { ...(dialect === 'gemini' ? {} : { model }), ...DIALECT_FEATURES[dialect]?.plain, ...extra };
    const response = await gateway.post(PATHS[dialect]?.(model) ?? '', body);
    const text = await response.text();
    const got: RecordedRequest | undefined = vendor.requests[seen];
    seen = vendor.requests.length;
    return {
      ...{ status: response.status, text, lane: response.headers.get('x-tollgate-lane') },
      dropped: new Set(response.headers.get('x-tollgate-dropped')?.split(', ')),
      sent: got?.body.toString(),
      heads: got && [got.path, got.headers['anthropic-beta']].join(' '),
    };
  }

  return {
    async cellOf(dialect, { name, provider }, feature) {
      const key = `${dialect} ${name}`;
      const usual = plain.get(key) ?? (await run(dialect, name, {}));
      plain.set(key, usual);
      const found = Object.keys(feature.body).length === 0 ? usual : await run(dialect, name, feature.body);
      if (found.status === 400) return 'refused';
      if (found.status !== 200) throw new Error(`${feature.title} of ${dialect} at ${name}: ${found.text}`);
      const isLost = found !== usual && found.sent !== undefined && found.sent === usual.sent;
      if (isLost || [...found.dropped].some((one) => !usual.dropped.has(one))) return 'left out';
      if (feature.kept && !feature.kept.test(found.sent ?? '')) return 'left out';
      const passed = found.lane === 'native' ? 'native' : 'translated';
      // A passed-through body of another format skips the provider's rules for chat.
      if (
        feature.field === undefined ||
        (passed === 'native' && DIALECT_FEATURES[dialect] !== DIALECT_FEATURES['chat'])
      )
        return passed;
      return provider.fields?.fields[feature.field]?.rule === 'emulated' ? 'emulated' : passed;
    },
    async arrivalOf({ name, provider }, field) {
      const { value = OWN_SAMPLES[field], requires: parallel = {} } = SAMPLES[field] ?? {};
      if (value === undefined) return undefined;
      const key = `${name} ${JSON.stringify(parallel)}`;
      const usual = others.get(key) ?? (await run('chat', name, parallel));
      others.set(key, usual);
      const found = await run('chat', name, { ...parallel, [field]: value });
      if (found.status === 400) return { is: 'refused', at: [], isReported: true };
      if (found.status !== 200) throw new Error(`${field} at ${name}: ${found.text}`);
      const isReported = found.dropped.has(field);
      // For a provider without a network, only the reported fields can be inspected.
      if (found.sent === undefined) return { is: isReported ? 'left out' : 'as it is', at: [], isReported };
      const [before, after] = [usual.sent, found.sent].map((text) => readObject(parseJson(text ?? '')));
      const at = changedPlaces(before ?? {}, after ?? {});
      if (found.heads !== usual.heads) at.push('a header');
      // No report is needed if the omission has the same effect.
      if (at.length === 0 && !isReported && provider.fields?.fields[field]?.rule === 'emulated')
        return { is: 'rewritten', at, isReported };
      if (at.length === 0 || isReported) return { is: 'left out', at, isReported };
      const isSame = isDeepStrictEqual([at, after?.[field]], [[field], value]);
      return { is: isSame ? 'as it is' : 'rewritten', at, isReported };
    },
    async close() {
      await gateway.stop();
      await vendor.close();
    },
  };
}

/** Places where two bodies differ, one level deep in objects. */
function changedPlaces(before: JsonObject, after: JsonObject, prefix = ''): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((name) => {
    const [one, other] = [before[name], after[name]];
    if (isDeepStrictEqual(one, other)) return [];
    const inside = prefix === '' && isObject(one ?? {}) && isObject(other ?? {});
    const places = inside ? changedPlaces(readObject(one), readObject(other), `${name}.`) : [];
    return places.length > 0 ? places : [`${prefix}${name}`];
  });
}
