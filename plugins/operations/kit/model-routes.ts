import type {
  JsonObject,
  Operation,
  PluginApi,
  RequestOf,
  ResponseOf,
  Route,
  RouteContext,
  Schema,
} from '../../../contract/index.ts';
import { framesOf, sendFrames, setHeaders } from './event-stream.ts';

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
  /** Returns the events of a streamed response; default: all responses are JSON. */
  eventsOf?(response: ResponseOf<O>): AsyncIterable<JsonObject> | undefined;
  /** Returns the body of another response; default: unchanged. */
  write?(response: ResponseOf<O>, ctx: RouteContext): unknown;
}

/** Registers the JSON routes of an operation. */
export function addModelRoutes<O extends Operation>(api: PluginApi, routes: ModelRoutes<O>): void {
  const { path, also = [], summary, description, body, response, read } = routes;
  const add = (at: string, by: string): void =>
    api.route({
      method: 'POST',
      path: at,
      summary: `${summary}; ${by}`,
      auth: ['key'],
      isIdempotent: true,
      body,
      ...(description !== undefined && { description }),
      responses: { 200: response },
      async handler(context) {
        const ctx = context as RouteContext<RequestOf<O>>;
        const request = read ? read(ctx.state.body) : ctx.state.body;
        await respond(api, ctx as RouteContext, routes, request);
      },
    } as Route);
  add(`/api/core/:provider/${path}`, 'by one provider');
  for (const each of [`/v1/${path}`, ...also]) add(each, 'the model is `provider/model` or an alias');
}

/**
 * Calls a model and sends its response. Of a request with `stream` the stream is open before the provider responds; it
 * then has events in any case.
 */
export async function respond<O extends Operation>(
  api: PluginApi,
  ctx: RouteContext,
  { operation, eventsOf, write }: Pick<ModelRoutes<O>, 'operation' | 'eventsOf' | 'write'>,
  request: RequestOf<O>,
): Promise<void> {
  const call = async (): Promise<ResponseOf<O>> => {
    const { response, headers } = await api.models.call(operation, request, callContext(ctx, request));
    setHeaders(ctx, headers);
    return response;
  };
  const bodyOf = (response: ResponseOf<O>): unknown => (write ? write(response, ctx) : response);
  if (eventsOf && 'stream' in request && request.stream === true)
    return sendFrames(ctx, async () => {
      const response = await call();
      return framesOf(eventsOf(response) ?? [bodyOf(response)]);
    });
  ctx.body = bodyOf(await call());
}

/** Context of a call with its caller, and its provider if the path names one. */
export function callContext({ state, params }: RouteContext, request: object) {
  const { requestId, principal, session, trace, signal, onOutcome } = state;
  const provider = params['provider'];
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  const targets = provider === undefined ? {} : { targets: [{ provider, model }] };
  return { requestId, principal, session, trace, signal, onOutcome, ...targets };
}
