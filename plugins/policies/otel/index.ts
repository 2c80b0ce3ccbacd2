import {
  type Call,
  type ChatChunk,
  definePlugin,
  type Outcome,
  type PluginApi,
  type StreamTransform,
} from '../../../contract/index.ts';
import { createPost, createSpanQueue, type ExportOptions } from './exporter.ts';
import { attributesOf, METRICS, type Message, TRACES } from './messages.ts';
import { createCallMetrics } from './metrics.ts';
import { SCHEMA_URL, SCOPE } from './names.ts';
import { relayRoutes } from './relay.ts';
import { type CallTrace, createSpanId, isMadeByAgent, requestSpan, spansOf } from './spans.ts';

const TRACE = Symbol('otel');

/** Maximum characters of a call's content, for input and output each; longer content is cut. */
const MAX_CONTENT = 64 * 1024;

/**
 * Sends traces and metrics of calls to an OpenTelemetry collector over OTLP/HTTP. A call has a span, with child spans
 * per provider request, and counts in the histograms of the conventions for generative AI. Prompts and responses are
 * included only with `content`.
 */
export default definePlugin({
  name: 'otel',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      endpoint: {
        type: 'string',
        format: 'url',
        description:
          'URL of the OTLP/HTTP collector, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are appended. Without it, nothing is sent.',
      },
      protocol: {
        enum: ['protobuf', 'json'],
        default: 'protobuf',
        description: 'Encoding of messages; every collector supports protobuf.',
      },
      headers: {
        type: 'object',
        additionalProperties: { type: 'string', secret: true },
        default: {},
        description: 'Headers of each request, for example a key: `{ authorization: "Basic …" }`.',
      },
      sample: {
        type: 'number',
        minimum: 0,
        maximum: 1,
        default: 1,
        description:
          'Share of traces to send. Failed calls and traces that the caller marks as sampled are always sent.',
      },
      content: {
        enum: ['none', 'redacted', 'full'],
        default: 'none',
        description: 'Prompts and responses in spans: not included, with redacted credentials, or unchanged.',
      },
      metrics: {
        type: 'integer',
        minimum: 0,
        default: 60,
        description: 'Interval of metrics reports in seconds; 0 disables them.',
      },
      serviceName: {
        type: 'string',
        minLength: 1,
        default: 'tollgate',
        description: '`service.name` of the resource.',
      },
      attributes: {
        type: 'object',
        additionalProperties: { type: 'string' },
        default: {},
        description: 'Further attributes of the resource, such as `{ deployment.environment.name: production }`.',
      },
      relay: {
        type: 'boolean',
        default: false,
        description:
          'Allows callers’ programs, such as a signed-in Claude Code, to send telemetry through the gateway at `/v1/traces`, `/v1/metrics` and `/v1/logs`.',
      },
      timeout: {
        type: 'integer',
        minimum: 1,
        default: 10,
        description: 'Timeout of a request to the collector, in seconds.',
      },
    },
  },
  setup(api, config) {
    const { endpoint, protocol, headers, content, sample } = config;
    if (endpoint === undefined) return;
    const post = createPost(api, {
      endpoint,
      protocol,
      headers,
      timeoutMs: config.timeout * 1000,
    } satisfies ExportOptions);
    if (config.relay)
      for (const route of relayRoutes(api, { endpoint, headers, timeoutMs: config.timeout * 1000 })) api.route(route);
    const attributes = attributesOf({
      'service.name': config.serviceName,
      'service.version': api.settings.version,
      ...config.attributes,
    });
    const scope = { name: SCOPE, version: api.settings.version };
    const inScope = (name: string, messages: readonly Message[]) => [
      { scope, [name]: messages, schemaUrl: SCHEMA_URL },
    ];
    const queue = createSpanQueue(async (spans) => {
      const resourceSpans = [{ resource: { attributes }, scopeSpans: inScope('spans', spans), schemaUrl: SCHEMA_URL }];
      await post('/v1/traces', { resourceSpans }, TRACES);
    }, api.log);
    api.onClose(() => queue.close());

    const metrics = config.metrics > 0 ? api.keep('metrics', () => createCallMetrics(Date.now())) : undefined;
    if (metrics) {
      const report = async (): Promise<void> => {
        const read = metrics.read(Date.now());
        if (read.length === 0) return;
        const resourceMetrics = [
          { resource: { attributes }, scopeMetrics: inScope('metrics', read), schemaUrl: SCHEMA_URL },
        ];
        await post('/v1/metrics', { resourceMetrics }, METRICS).catch((error: Error) =>
          api.log.warn({ reason: error.message }, 'the collector rejected the metrics; the next report contains them'),
        );
      };
      api.onReady(() => {
        const timer = setInterval(() => void report(), config.metrics * 1000);
        timer.unref();
        api.onClose(async () => {
          clearInterval(timer);
          await report();
        });
      });
    }

    api.hook('send', (call, request, target) => {
      const { trace } = call;
      const attempt = { spanId: createSpanId(), target, startedAt: Date.now() };
      traceOf(call).attempts.push(attempt);
      const flags = isSampled(call, sample) ? '01' : '00';
      const traceparent = `00-${trace.traceId}-${attempt.spanId}-${flags}`;
      const more = trace.state === undefined ? { traceparent } : { traceparent, tracestate: trace.state };
      return { ...request, headers: { ...request.headers, ...more } };
    });
    api.hook('attempt', (call, report) => {
      const sent = traceOf(call).attempts.find(
        ({ target, report: known }) => known === undefined && isSame(target, report.target),
      );
      if (sent) sent.report = report;
    });
    if (content !== 'none') keepContents(api, (text) => (content === 'full' ? text : api.redact(text)));
    api.hook('finish', (call, outcome) => {
      metrics?.add(call, outcome);
      if (outcome.status !== 'ok' || isSampled(call, sample)) queue.add(spansOf(call, outcome, traceOf(call)));
    });
    api.use(async (ctx, next) => {
      const state: RequestState = ctx.state;
      state.onClosed(() => {
        const calls = state.outcomes ?? [];
        const [first] = calls;
        if (!first || !isMadeByAgent(first.call)) return;
        const isKept = isSampled(first.call, sample) || calls.some(({ outcome }) => outcome.status !== 'ok');
        const span = isKept ? requestSpan(calls, state.route ?? 'agent') : undefined;
        if (span) queue.add([span]);
      });
      await next();
    });
  },
});

/** Values of core in the Koa context of a request. */
interface RequestState {
  readonly route?: string;
  readonly outcomes?: readonly { readonly call: Call; readonly outcome: Outcome }[];
  onClosed(listener: () => void): void;
}

function traceOf(call: Call): CallTrace {
  const known = call.state.get(TRACE) as CallTrace | undefined;
  if (known) return known;
  const trace: CallTrace = { spanId: createSpanId(), attempts: [] };
  call.state.set(TRACE, trace);
  return trace;
}

/** Same decision for all calls of a trace, on all gateways: the caller's, else by the last 56 bits of its id. */
function isSampled({ trace: { isSampled: decided, traceId } }: Call, share: number): boolean {
  return decided === true || Number.parseInt(traceId.slice(-14), 16) < share * 2 ** 56;
}

function isSame(one: Call['targets'][number], other: Call['targets'][number]): boolean {
  return one.provider === other.provider && one.model === other.model;
}

/** Records the prompt and response of a chat, in the message format of the conventions. */
function keepContents(api: PluginApi, redact: (text: string) => string): void {
  const write = (messages: unknown): string => redact(JSON.stringify(messages)).slice(0, MAX_CONTENT);
  api.hook('reserve', {
    operations: ['chat'],
    handler(call) {
      const { messages } = call.request;
      traceOf(call).input = () => write(messages);
    },
  });
  api.hook('receive', {
    operations: ['chat'],
    handler(call, response) {
      const messages = response.choices.map(({ message }) => message);
      traceOf(call).output = () => write(messages);
      return undefined;
    },
  });
  api.hook('stream', { operations: ['chat'], handler: (call) => watchStream(call, write) });
}

/** Collects the text of a stream. */
function watchStream(call: Call, write: (messages: unknown) => string): StreamTransform {
  const texts = new Map<number, string>();
  traceOf(call).output = () => write([...texts.values()].map((content) => ({ role: 'assistant', content })));
  return {
    observes: true,
    push(chunk: ChatChunk) {
      for (const { index, delta } of chunk.choices) {
        const text = texts.get(index) ?? '';
        if (typeof delta.content === 'string' && text.length < MAX_CONTENT) texts.set(index, text + delta.content);
      }
      return [];
    },
  };
}
