import type {
  Operation,
  PluginApi,
  RequestOf,
  ResponseOf,
  Route,
  RouteContext,
  Schema,
} from '../../../contract/index.ts';

/** What an operation's routes are made of: those of both surfaces, whose bodies name a model. */
interface ModelRoutes<O extends Operation> {
  readonly operation: O;
  /** The end of the path, such as `rerank`; it is below `/v1/` and below `/api/core/{provider}/`. */
  readonly path: string;
  /** Further paths, as other clients have them. */
  readonly also?: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly body: Schema;
  readonly response: { readonly description: string; readonly schema: Schema };
  /** The request that a body makes; the body itself unless set. */
  read?(body: RequestOf<O>): RequestOf<O>;
  /** Sends the response; as it is unless set. */
  write?(ctx: RouteContext, response: ResponseOf<O>): Promise<void>;
}

/** Registers the routes by which an operation is called in JSON. */
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

/** Who calls, and where to: to the provider that the path names, where it does. */
export function callContext({ state, params }: RouteContext, request: object) {
  const { requestId, principal, session, trace, signal, onOutcome } = state;
  const provider = params['provider'];
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  const targets = provider === undefined ? {} : { targets: [{ provider, model }] };
  return { requestId, principal, session, trace, signal, onOutcome, ...targets };
}
