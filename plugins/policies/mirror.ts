import {
  type Call,
  type ChatChunk,
  type ChatRequest,
  type ChatResponse,
  definePlugin,
  formatUsd,
  GatewayError,
  OptionError,
  type Outcome,
  type PluginApi,
  type Principal,
  type Target,
  toGatewayError,
} from '../../contract/index.ts';
import { assertTarget, createModelCheck, splitName } from './kit/model-names.ts';
import { listAction } from './kit/resource.ts';

/** Rule for copying calls. */
interface Rule {
  readonly alias: string;
  readonly to: string;
  readonly target: Target;
  readonly share: number;
}

/** Call to be copied, with the tools that its response calls. */
interface Sampled {
  readonly rule: Rule;
  readonly tools: string[];
}

/** Sums of one side of the pairs. */
interface Side {
  /** Nano-dollars, for calls with a known price. */
  readonly cost: number;
  readonly unpriced: number;
  readonly outputTokens: number;
  readonly toolCalls: number;
  /** Milliseconds of the latest pairs, the oldest first. */
  readonly ms: readonly number[];
  readonly firstByteMs: readonly number[];
}

/** Sums over all pairs of a call and its copy. */
interface Sums {
  readonly since: number;
  readonly pairs: number;
  /** Pairs whose responses call the same tools equally often. */
  readonly sameTools: number;
  readonly original: Side;
  readonly copy: Side;
  /** Copies skipped because too many were running. */
  readonly skipped: number;
  /** Failed copies by error code. */
  readonly failed: Readonly<Record<string, number>>;
}

type Book = Readonly<Record<string, Sums>>;

const SAMPLED = Symbol('mirror.sampled');
const BOOK = 'mirrors';
const ALL = 'all';
/** Number of latest durations kept for percentiles. */
const MOST_TIMES = 200;
/** Longest duration of a copy. */
const COPY_MS = 600_000;
const NO_SIDE: Side = Object.freeze({ cost: 0, unpriced: 0, outputTokens: 0, toolCalls: 0, ms: [], firstByteMs: [] });

const ROW = {
  type: 'object',
  required: ['alias', 'to', 'since', 'pairs', 'same_tools', 'original', 'copy', 'difference', 'skipped', 'failed'],
} as const;

/** Sends a share of an alias's calls to another model too, drops the responses, and reports the differences. */
export default definePlugin({
  name: 'mirror',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['records'],
  commands: [{ name: 'mirrors', summary: 'Compare calls with their copies at other models' }],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      models: {
        type: 'object',
        default: {},
        description:
          'Mirrors by alias or `provider/model`, as callers write it: the target of the copies and their share.',
        additionalProperties: {
          type: 'object',
          additionalProperties: false,
          required: ['to', 'share'],
          properties: {
            to: { type: 'string', minLength: 3, maxLength: 256, description: '`provider/model`' },
            share: {
              type: 'string',
              pattern: '^(?:\\d|[1-9]\\d)(?:\\.\\d{1,3})?%$|^100%$',
              description: 'Share of chats to copy, such as `5%`.',
            },
          },
        },
      },
      user: {
        type: 'string',
        minLength: 1,
        maxLength: 128,
        default: 'mirror',
        description: 'User whose account pays for the copies; callers never pay for them.',
      },
      atOnce: {
        type: 'integer',
        minimum: 1,
        maximum: 100,
        default: 4,
        description: 'Maximum number of concurrent copies per process; further ones are skipped.',
      },
    },
  },
  setup(api, config) {
    const { book } = bookOf(api);
    const { route, subcommand } = listAction<ReturnType<typeof showSums>>(
      { path: '/api/core/admin/mirrors', scope: 'usage:read' },
      {
        http: {
          summary: 'Compare calls with their copies at other models',
          description: 'Cost, latency and called tools of both, by alias and model.',
          response: 'Comparison per alias and mirror model.',
          schema: ROW,
          isWhole: true,
        },
        read: async () => ({ rows: Object.entries(await book.read()).map(([name, sums]) => showSums(name, sums)) }),
        cli: {
          columns: [
            ['alias', ({ alias }) => alias],
            ['to', ({ to }) => to],
            ['pairs', ({ pairs }) => String(pairs)],
            ['cost', ({ original, copy }) => `${original.cost_usd} -> ${copy.cost_usd}`],
            ['p50 ms', ({ original, copy }) => `${original.duration_p50_ms ?? '-'} -> ${copy.duration_p50_ms ?? '-'}`],
            ['tool calls', ({ original, copy }) => `${original.tool_calls} -> ${copy.tool_calls}`],
            ['same tools', ({ pairs, same_tools: same }) => `${same} of ${pairs}`],
            ['failed', ({ failed }) => String(Object.values(failed).reduce((sum, count) => sum + count, 0))],
            ['skipped', ({ skipped }) => String(skipped)],
          ],
          empty: 'No copies yet.',
        },
      },
    );
    api.route(route);
    api.command({
      name: 'mirrors',
      summary: 'Compare calls with their copies at other models',
      subcommands: [subcommand],
    });
    const rules = new Map(Object.entries(config.models).map(([alias, rule]) => [alias, readRule(alias, rule)]));
    if (rules.size === 0) return;
    api.onRegistered(() => assertKnown(api, rules));
    const mayUse = createModelCheck(api);
    const running = api.keep('running', () => ({ copies: 0 }));
    const closing = new AbortController();
    api.onClose(() => closing.abort());
    const principal: Principal = Object.freeze({ credential: 'key', userId: config.user, account: config.user });

    const sampledOf = (call: Call): Sampled | undefined => call.state.get(SAMPLED) as Sampled | undefined;
    api.hook('reserve', {
      operations: ['chat'],
      async handler(call) {
        const rule = rules.get(call.request.model);
        // Calls of plugins, including copies, have no client.
        if (!rule || !call.client || call.client.ownSubscription || Math.random() >= rule.share) return;
        if (call.targets.every(({ provider, model }) => `${provider}/${model}` === rule.to)) return;
        // A caller's data is sent only to providers that the caller may use.
        if (await mayUse(call.principal, rule.target)) call.state.set(SAMPLED, { rule, tools: [] } satisfies Sampled);
      },
    });
    api.hook('receive', {
      operations: ['chat'],
      handler(call, response) {
        sampledOf(call)?.tools.push(...toolsOf(response));
        return undefined;
      },
    });
    api.hook('stream', {
      operations: ['chat'],
      handler(call) {
        const sampled = sampledOf(call);
        if (!sampled) return undefined;
        return {
          observes: true,
          push(chunk) {
            sampled.tools.push(...newToolsOf(chunk));
            return [];
          },
        };
      },
    });
    api.hook('finish', {
      operations: ['chat'],
      handler(call, outcome) {
        const sampled = sampledOf(call);
        if (!sampled || outcome.status !== 'ok' || closing.signal.aborted) return;
        if (running.copies >= config.atOnce) return book.add(sampled.rule, { skipped: true });
        running.copies += 1;
        // Not awaited: the copy affects neither the caller nor the end of the call.
        void copyCall(api, call, sampled.rule, principal, closing.signal)
          .then((copy) =>
            book.add(
              sampled.rule,
              'code' in copy ? copy : { original: [outcome, sampled.tools], copy: [copy.outcome, copy.tools] },
            ),
          )
          .finally(() => {
            running.copies -= 1;
          });
      },
    });
  },
});

function readRule(alias: string, { to, share }: { readonly to: string; readonly share: string }): Rule {
  return { alias, to, target: splitName(to), share: Number.parseFloat(share) / 100 };
}

/** Throws an {@link OptionError} for an unknown model or alias. */
function assertKnown(api: Pick<PluginApi, 'models'>, rules: ReadonlyMap<string, Rule>): void {
  const {
    models: { catalog },
  } = api;
  for (const { alias, to } of rules.values()) {
    const at = `/models/${alias.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    assertTarget(api, `${at}/to`, to);
    const original = splitName(alias);
    if (
      api.models.alias(alias) === undefined &&
      !(original.provider !== '' && catalog.find(original.provider, original.model))
    )
      throw new OptionError(at, 'is not an alias in "models" and not a model of a provider', 'No call would match it.');
  }
}

/** Makes a copy of a call, and reads its response to the end. Never rejects. */
async function copyCall(
  api: Pick<PluginApi, 'chat' | 'log'>,
  call: Call<'chat'>,
  { alias, to }: Rule,
  principal: Principal,
  closing: AbortSignal,
): Promise<{ readonly outcome: Outcome; readonly tools: readonly string[] } | { readonly code: string }> {
  let outcome: Outcome | undefined;
  const tools: string[] = [];
  const { stream: _stream, stream_options: _options, ...rest } = call.request;
  const request: ChatRequest = { ...rest, model: to };
  const context = {
    principal,
    requestId: call.requestId,
    tags: [`mirror=${alias}`],
    signal: AbortSignal.any([closing, AbortSignal.timeout(COPY_MS)]),
    onOutcome(_call: Call, came: Outcome) {
      outcome = came;
    },
  };
  try {
    if (call.stream)
      for await (const chunk of await api.chat({ ...request, stream: true }, context)) tools.push(...newToolsOf(chunk));
    else tools.push(...toolsOf(await api.chat({ ...request, stream: false }, context)));
    if (outcome?.status === 'ok') return { outcome, tools };
    throw outcome?.error ?? new GatewayError('provider_unavailable', 'The copy was interrupted.');
  } catch (error) {
    const { code } = toGatewayError(error);
    api.log.info({ request_id: call.requestId, requested: alias, model: to, code }, 'the copy of a call failed');
    return { code };
  }
}

const toolsOf = ({ choices }: ChatResponse): readonly string[] =>
  choices.flatMap(({ message }) => (message.tool_calls ?? []).map((called) => called.function.name));

/** Tools whose calls start in a chunk. */
const newToolsOf = ({ choices }: ChatChunk): readonly string[] =>
  choices.flatMap(({ delta }) => (delta.tool_calls ?? []).flatMap((called) => called.function?.name || []));

type Half = readonly [outcome: Outcome, tools: readonly string[]];

/** Outcome of a call that was to be copied. */
type Came = { readonly original: Half; readonly copy: Half } | { readonly skipped: true } | { readonly code: string };

/** Change of the sums. */
type Waiting = (book: Book) => Book;

/** Maximum changes that wait for the store. */
const MOST_WAITING = 1000;

/** Sums of all processes in one record; changes waiting for the store survive a reload. */
function bookOf(api: PluginApi) {
  const records = api.books.records<Book>(BOOK);
  const waiting = api.keep('waiting', () => ({ changes: [] as Waiting[], isWriting: false }));
  const write = async (): Promise<void> => {
    if (waiting.isWriting) return;
    waiting.isWriting = true;
    let changes: Waiting[] = [];
    try {
      while (waiting.changes.length > 0) {
        changes = waiting.changes.splice(0);
        await records.change(ALL, (value = {}) => changes.reduce((sums, change) => change(sums), value));
      }
    } catch (error) {
      api.log.warn({ err: error }, 'results of call copies could not be stored; retried with the next copy');
      waiting.changes = [...changes, ...waiting.changes].slice(-MOST_WAITING);
    } finally {
      waiting.isWriting = false;
    }
  };
  return {
    book: {
      read: async (): Promise<Book> => (await records.find(ALL)).value ?? {},
      add({ alias, to }: Rule, came: Came): void {
        const name = `${alias} ${to}`;
        waiting.changes.push((all) => ({ ...all, [name]: addTo(all[name], came) }));
        void write();
      },
    },
  };
}

function addTo(before: Sums | undefined, came: Came): Sums {
  const sums: Sums = before ?? {
    since: Date.now(),
    pairs: 0,
    sameTools: 0,
    skipped: 0,
    failed: {},
    original: NO_SIDE,
    copy: NO_SIDE,
  };
  if ('skipped' in came) return { ...sums, skipped: sums.skipped + 1 };
  if ('code' in came) return { ...sums, failed: { ...sums.failed, [came.code]: (sums.failed[came.code] ?? 0) + 1 } };
  const [[, ofOriginal], [, ofCopy]] = [came.original, came.copy];
  const isSame = ofOriginal.toSorted().join('\n') === ofCopy.toSorted().join('\n');
  return {
    ...sums,
    pairs: sums.pairs + 1,
    sameTools: sums.sameTools + (isSame ? 1 : 0),
    original: addSide(sums.original, came.original),
    copy: addSide(sums.copy, came.copy),
  };
}

function addSide(side: Side, [{ cost, usage, durationMs, firstByteMs }, tools]: Half): Side {
  return {
    cost: side.cost + (cost ?? 0),
    unpriced: side.unpriced + (cost === undefined ? 1 : 0),
    outputTokens: side.outputTokens + (usage?.completion_tokens ?? 0),
    toolCalls: side.toolCalls + tools.length,
    ms: [...side.ms, Math.round(durationMs)].slice(-MOST_TIMES),
    firstByteMs: (firstByteMs === undefined ? side.firstByteMs : [...side.firstByteMs, Math.round(firstByteMs)]).slice(
      -MOST_TIMES,
    ),
  };
}

/** Percentile by nearest rank; null without values. */
function percentile(times: readonly number[], share: number): number | null {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? null;
}

function showSide({ cost, unpriced, outputTokens, toolCalls, ms, firstByteMs }: Side) {
  return {
    cost_usd: formatUsd(cost),
    unpriced_requests: unpriced,
    completion_tokens: outputTokens,
    tool_calls: toolCalls,
    duration_p50_ms: percentile(ms, 0.5),
    duration_p95_ms: percentile(ms, 0.95),
    first_byte_p50_ms: percentile(firstByteMs, 0.5),
    first_byte_p95_ms: percentile(firstByteMs, 0.95),
  };
}

function showSums(name: string, { since, pairs, sameTools, original, copy, skipped, failed }: Sums) {
  const [alias = '', to = ''] = name.split(' ');
  const [one, other] = [showSide(original), showSide(copy)];
  const less = (key: 'duration_p50_ms' | 'duration_p95_ms'): number | null => {
    const [before, after] = [one[key], other[key]];
    return before === null || after === null ? null : after - before;
  };
  return {
    alias,
    to,
    since: new Date(since).toISOString(),
    pairs,
    same_tools: sameTools,
    original: one,
    copy: other,
    difference: {
      cost_usd: formatUsd(copy.cost - original.cost),
      tool_calls: copy.toolCalls - original.toolCalls,
      completion_tokens: copy.outputTokens - original.outputTokens,
      duration_p50_ms: less('duration_p50_ms'),
      duration_p95_ms: less('duration_p95_ms'),
    },
    skipped,
    failed,
  };
}
