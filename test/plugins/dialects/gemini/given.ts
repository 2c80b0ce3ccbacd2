import type {
  ChatRequest,
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectRequest,
  Plugin,
} from '../../../../contract/index.ts';

/** Returns the dialect that a plugin registers. */
export function dialectOf(plugin: Plugin, config: object = {}): DialectDefinition {
  let found: DialectDefinition | undefined;
  const api = { dialect: (dialect: DialectDefinition) => (found = dialect), route: () => undefined };
  void plugin.setup(api as never, config as never);
  if (!found) throw new Error(`${plugin.name} registers no dialect`);
  return found;
}

/** Request to a dialect's route, selected by the end of its path. Default: the first route. */
export function inputOf(
  dialect: DialectDefinition,
  body: object,
  rest: { readonly method?: string; readonly model?: string; readonly query?: Record<string, string> } = {},
): DialectInput {
  const { method = '', model = 'openai/gpt-5', query = {} } = rest;
  const route = dialect.routes.find(({ path }) => path.endsWith(method));
  if (!route) throw new Error(`no route ends with ${method}`);
  return { body, params: { model }, query, headers: {}, route };
}

export function read(dialect: DialectDefinition, body: object, rest = {}): DialectRequest {
  return dialect.read(inputOf(dialect, body, rest));
}

export function contextOf(input: DialectInput, request: ChatRequest): DialectContext {
  return {
    ...{ input, request, id: 'id-1', created: 1_790_000_000, requestId: 'req_1', estimatedInputTokens: 5 },
    seal: (data) => data,
  };
}
