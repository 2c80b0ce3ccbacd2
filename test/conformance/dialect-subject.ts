import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createEventReader } from '../../contract/event-reader.ts';
import type {
  ChatChunk,
  ChatRequest,
  ChatResponse,
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectStream,
  Plugin,
  Provider,
  SseEvent,
} from '../../contract/index.ts';
import { type DialectFormat, type EventRow, valuesAt } from './dialect-format.ts';
import { problemsOf } from './dialect-format-check.ts';
import { readJson } from './provider-subject.ts';
import type { WithRunner } from './runner.ts';

/** Options of {@link testDialect}. */
export interface DialectKit extends WithRunner {
  readonly plugin: Plugin<object, 'dialect'>;
  /** Folder with `format.json`, `request*.json` and the other files of the format. */
  readonly fixtures: URL;
  /** Required options of the plugin. */
  readonly config?: Readonly<Record<string, unknown>>;
  /**
   * Vendor with the same format: its codec reads `recorded*.json` and `recorded*.sse`, and the dialect writes them
   * again.
   */
  readonly vendor?: Pick<Provider, 'chat' | 'native'>;
}

/** `request*.json`: a client's request, and the expected result. */
export interface RequestFixture {
  readonly name: string;
  /** End of its route's path. Default: the first route. */
  readonly route?: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
  /** Expected canonical request; for objects only the named fields. */
  readonly canonical: object;
  readonly dropped?: readonly string[];
  /** Names of features that not every target has. */
  readonly needs?: readonly string[];
  /** Changes of the body for a vendor with the same format, in addition to the fields of `native.edits`. */
  readonly native?: Readonly<Record<string, unknown>>;
}

/** `response*.json`: a canonical response and the format's version of it. */
export interface ResponseFixture {
  readonly name: string;
  readonly canonical: ChatResponse;
  readonly written: object;
}

export interface DialectSubject {
  readonly dialect: DialectDefinition;
  readonly format: DialectFormat;
  readonly kit: DialectKit;
  readonly requests: readonly RequestFixture[];
  readonly responses: readonly ResponseFixture[];
  /** Recorded bytes of a vendor with the format. */
  readonly recorded: readonly { readonly name: string; readonly text: string }[];
  /** Status and type of each error, by the gateway's code; undefined if both are the gateway's. */
  readonly errors: Readonly<Record<string, ErrorFixture>> | undefined;
}

/** Row of `errors.json`. */
export interface ErrorFixture {
  readonly status: number;
  readonly type: string;
  /** Type in a stream. Default: the same type. */
  readonly streamed?: string;
}

/** Sets the plugin up in isolation and returns its dialect. Throws unless it registers exactly one. */
export function setUpDialect(plugin: Plugin, config: Readonly<Record<string, unknown>> = {}): DialectDefinition {
  const registered: DialectDefinition[] = [];
  const documents = new Map<string, unknown>();
  const api = {
    instance: plugin.name,
    dialect: (dialect: DialectDefinition) => void registered.push(dialect),
    keyv: () => ({
      get: async (key: string) => documents.get(key),
      set: async (key: string, value: unknown) => documents.set(key, value),
      delete: async (key: string) => documents.delete(key),
    }),
    stores: {},
    route() {},
    schema() {},
    onClose() {},
    onRegistered() {},
    onReady() {},
  };
  void plugin.setup(api as never, config as never);
  const [dialect, ...more] = registered;
  if (!dialect || more.length > 0)
    throw new Error(
      `${plugin.name} registers ${registered.length} dialects: its \`setup\` has to call \`api.dialect\` once, before it returns`,
    );
  return dialect;
}

/** Sets the plugin up and reads its folder of fixtures. Throws with a description of invalid fixtures. */
export function createDialectSubject(kit: DialectKit): DialectSubject {
  const { fixtures: folder } = kit;
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  const textOf = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
  const jsonOf = <T>(name: string): T => {
    if (!names.includes(name)) throw new Error(`the fixtures in ${folder.pathname} have no ${name}`);
    return readJson(textOf(name), name) as T;
  };
  const all = <T>(prefix: string): readonly T[] =>
    names
      .filter((name) => name.startsWith(prefix) && name.endsWith('.json'))
      .map((name) => ({ ...jsonOf<T>(name), name }));
  const format = jsonOf<DialectFormat>('format.json');
  const problems = problemsOf(format);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return {
    dialect: setUpDialect(kit.plugin, kit.config),
    format,
    kit,
    requests: all<RequestFixture>('request').map((fixture) => having(fixture, ['body', 'canonical'])),
    responses: all<ResponseFixture>('response').map((fixture) => having(fixture, ['canonical', 'written'])),
    recorded: names.filter((name) => name.startsWith('recorded')).map((name) => ({ name, text: textOf(name) })),
    errors: names.includes('errors.json') ? jsonOf('errors.json') : undefined,
  };
}

function having<T extends { readonly name: string }>(fixture: T, fields: readonly (keyof T & string)[]): T {
  const missing = fields.filter((field) => typeof fixture[field] !== 'object' || fixture[field] === null);
  if (missing.length > 0) throw new Error(`the fixture ${fixture.name} has no ${missing.join(' and no ')}, an object`);
  return fixture;
}

export function inputOf(
  { dialect }: DialectSubject,
  fixture: RequestFixture,
  body: object = fixture.body,
): DialectInput {
  const { route: end = '', params = {}, query = {}, headers = {} } = fixture;
  const route = dialect.routes.find(({ path }) => path.endsWith(end));
  if (!route) throw new Error(`${fixture.name}: no route of ${dialect.name} ends with "${end}"`);
  return { body, params, query, headers, route };
}

/** Context for writing a response; `seal` marks its input. */
export function contextOf(input: DialectInput, request: ChatRequest, id = 'conformance'): DialectContext {
  return {
    ...{ input, request, id, created: 1_790_000_000, requestId: 'req_conformance' },
    estimatedInputTokens: 11,
    seal: (data) => `tg1.here.tag.${data}`,
  };
}

/** Context of the first request with or without `stream`. */
export function contextFor(subject: DialectSubject, stream: boolean, id?: string): DialectContext {
  for (const fixture of subject.requests) {
    const input = inputOf(subject, fixture);
    if (input.route.action === 'count') continue;
    const { request } = subject.dialect.read(input);
    if ((request.stream === true) === stream) return contextOf(input, request, id);
  }
  throw new Error(`no request*.json of ${subject.dialect.name} wants ${stream ? 'a stream' : 'a whole response'}`);
}

/** Event of a stream, by its name in the grammar. */
export interface NamedEvent {
  readonly name: string;
  readonly value: unknown;
}

/**
 * Reads the text of a stream and names its events. The content type selects server-sent events, a JSON array, or lines
 * of JSON.
 */
export function readEvents({ format }: DialectSubject, text: string, contentType?: string): readonly NamedEvent[] {
  if (contentType?.startsWith('application/json'))
    return (JSON.parse(text) as readonly unknown[]).map((value) => ({ value, name: nameOf(format.events, { value }) }));
  if (contentType !== undefined && !contentType.startsWith('text/event-stream'))
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => parse({ data: line }))
      .map((value) => ({ value, name: nameOf(format.events, { value }) }));
  const reader = createEventReader();
  const events = [...reader.push(new TextEncoder().encode(text)), ...reader.end()];
  return events.map((event) => {
    const value = parse(event);
    return { value, name: nameOf(format.events, { value, event }) };
  });
}

function parse({ data }: SseEvent): unknown {
  try {
    return JSON.parse(data) as unknown;
  } catch {
    return data;
  }
}

function nameOf(rows: readonly EventRow[], { value, event }: { value: unknown; event?: SseEvent }): string {
  const row = rows.find(({ when = {}, text }) =>
    text === undefined
      ? typeof value === 'object' &&
        value !== null &&
        Object.entries(when).every(([path, wanted]) => {
          const found = valuesAt(value, path);
          return wanted === null ? found.length > 0 : found.includes(wanted);
        })
      : value === text,
  );
  if (!row) throw new Error(`format.json names no event like ${JSON.stringify(value).slice(0, 200)}`);
  if (event && row.event !== undefined && row.event !== event.event)
    throw new Error(`the event ${row.name} has the name "${event.event}" in its frame, not "${row.event}"`);
  return row.name;
}

/** Returns the complete text of a stream of these chunks. */
export function writeAll(stream: DialectStream, chunks: readonly ChatChunk[]): string {
  return chunks.map((chunk) => stream.push(chunk)).join('') + stream.end();
}
