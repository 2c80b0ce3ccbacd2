import type {
  Operation,
  PluginApi,
  RequestOf,
  ResponseOf,
  Route,
  RouteContext,
  Schema,
} from '../../../contract/index.ts';

/** Routes of an operation on both surfaces, whose bodies name a model. */
interface ModelRoutes<O extends Operation> {
  readonly operation: O;
  /** End of the path, such as `rerank`, below `/v1/` and `/api/core/{provider}/`. */
  readonly path: string;
  /** Further paths that other clients use. */
  readonly also?: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly body: Schema;
  readonly response: { readonly description: string; readonly schema: Schema };
  /** Converts a body to a request; default: the body itself. */
  read?(body: RequestOf<O>): RequestOf<O>;
  /** Sends the response; default: unchanged. */
  write?(ctx: RouteContext, response: ResponseOf<O>): Promise<void>;
}

/** Registers the JSON routes of an operation. */
export function addModelRoutes<O extends Operation>(api: PluginApi, routes: ModelRoutes<O>): void {
  const { operation, path, also = [], summary, description, body, response, read, write } = routes;
  const add = (at: string, by: string): void =>
    api.route({
      ...{ method: 'POST', path: at, summary: `${summary}; ${by}`, auth: ['key'], isIdempotent: true, body },
      ...(description !== undefined && { description }),
      responses: { 200: response },
      async handler(context) {
        const ctx = context as RouteContext<RequestOf<O>>;
        const request = read ? read(ctx.state.body) : ctx.state.body;
        const called = await api.models.call(operation, request, callContext(ctx as RouteContext, request));
        ctx.set(called.headers);
        if (write) await write(ctx as RouteContext, called.response);
        else ctx.body = called.response;
      },
    } as Route);
  add(`/api/core/:provider/${path}`, 'by one provider');
  for (const each of [`/v1/${path}`, ...also]) add(each, 'the model is `provider/model` or an alias');
}

/** Context of a call with its caller, and its provider if the path names one. */
export function callContext({ state, params }: RouteContext, request: object) {
  const { requestId, principal, session, trace, signal, onOutcome } = state;
  const provider = params['provider'];
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  const targets = provider === undefined ? {} : { targets: [{ provider, model }] };
  return { requestId, principal, session, trace, signal, onOutcome, ...targets };
}
