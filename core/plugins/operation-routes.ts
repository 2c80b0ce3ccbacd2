import type { Operation, RequestOf, ResponseOf } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import { framesOf, sendEvents } from '../../contract/event-stream.ts';
import { isObject, type JsonObject, readObject, type Schema } from '../../contract/json.ts';
import type { OperationDefinition, OperationFile, OperationRoute } from '../../contract/operation.ts';
import type { ModelsApi } from '../../contract/plugin.ts';
import {
  callContext,
  type FormLimits,
  type Route,
  type RouteContext,
  type UploadedFile,
} from '../../contract/route.ts';

type CallOperation = ModelsApi['call'];

const ANY_OBJECT: Schema = Object.freeze({ type: 'object' });

/** Creates the HTTP routes that an operation declares, on both surfaces: with the provider in the path or in the model's name. */
export function routesOfOperation<O extends Operation>(
  definition: OperationDefinition<O>,
  call: CallOperation,
): readonly Route[] {
  return (definition.routes ?? []).flatMap((declared) => {
    const { path, otherPaths = [], summary } = declared;
    const create = (at: string, by: string): Route => createRoute(definition, declared, call, at, `${summary}; ${by}`);
    const whole = [...(path === undefined ? [] : [`/v1/${path}`]), ...otherPaths];
    return [
      ...(path === undefined ? [] : [create(`/api/core/:provider/${path}`, 'by one provider')]),
      ...whole.map((at) => create(at, 'the model is `provider/model` or an alias')),
    ];
  });
}

function createRoute<O extends Operation>(
  definition: OperationDefinition<O>,
  declared: OperationRoute<O>,
  call: CallOperation,
  path: string,
  summary: string,
): Route {
  const { description, body = definition.request, files } = declared;
  const response = declared.response ?? {
    description: 'The response.',
    schema: definition.response ?? ANY_OBJECT,
  };
  return {
    method: 'POST',
    path,
    summary,
    auth: ['key'],
    body,
    ...(files ? { form: limitsOf(files) } : { isIdempotent: true }),
    ...(description !== undefined && { description }),
    responses: { 200: response },
    handler: (ctx) => respond(definition, declared, call, ctx as RouteContext),
  };
}

/**
 * Calls a model and sends its response. For a request with `stream`, the stream is open before the provider responds, and always has
 * events.
 */
async function respond<O extends Operation>(
  definition: OperationDefinition<O>,
  declared: OperationRoute<O>,
  callModel: CallOperation,
  ctx: RouteContext,
): Promise<void> {
  const sent = declared.files ? readForm(definition.request, declared.files, ctx) : ctx.state.body;
  const request = declared.read ? declared.read(sent as RequestOf<O>) : (sent as RequestOf<O>);
  const call = async (): Promise<ResponseOf<O>> => {
    const { response, headers } = await callModel(definition.name, request, contextOf(ctx, request));
    // A keep-alive may have opened the stream.
    if (!ctx.headerSent) ctx.set(headers);
    return response;
  };
  const bodyOf = (response: ResponseOf<O>): unknown => (declared.write ? declared.write(response, ctx) : response);
  if (declared.events && 'stream' in request && request.stream === true) {
    await sendEvents(ctx, async () => {
      const response = await call();
      return framesOf(declared.events?.(response) ?? [readObject(bodyOf(response))]);
    });
    return;
  }
  ctx.body = bodyOf(await call());
  if (typeof ctx.body === 'string') ctx.type = 'text/plain; charset=utf-8';
}

/** Returns the context of a call with its caller, and its provider if the path names one. */
function contextOf({ state, params }: RouteContext, request: object): Parameters<CallOperation>[2] {
  const provider = params['provider'];
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  const targets = provider === undefined ? {} : { targets: [{ provider, model }] };
  return { ...callContext(state), ...targets };
}

/** Returns the limits of a form. Its files are read whole, so they count as memory of the caller. */
function limitsOf(files: Readonly<Record<string, OperationFile>>): FormLimits {
  const all = Object.values(files);
  return {
    maxFileBytes: Math.max(...all.map(({ maxBytes }) => maxBytes)),
    maxFiles: all.reduce((sum, { maxFiles = 1 }) => sum + maxFiles, 0),
    readsWhole: true,
  };
}

/** Converts a form to a request: fields get the types of the schema, and files are added. */
function readForm(schema: Schema, files: Readonly<Record<string, OperationFile>>, { state }: RouteContext): JsonObject {
  const types = readObject(schema['properties']);
  const request: Record<string, unknown> = {};
  for (const [sent, value] of Object.entries(readObject(state.body))) {
    const name = sent.replace(/\[\]$/, '');
    // Clients name a list with or without brackets; with brackets it wins.
    if (name === sent && Object.hasOwn(readObject(state.body), `${name}[]`)) continue;
    request[name] = readField(value, readObject(types[name])['type']);
  }
  const left = new Set(state.files);
  for (const [name, file] of Object.entries(files)) {
    const found = takeFiles(left, file.field ?? name, file);
    if (found.length > 0) request[name] = file.maxFiles === undefined ? found[0] : found;
  }
  for (const { field } of left) throw unknownFile(field, Object.entries(files));
  return request;
}

/** Converts the text of a field to a type of JSON Schema. */
function readField(value: unknown, type: unknown): unknown {
  const types = [type].flat();
  if (types.includes('array')) return [value].flat();
  if (typeof value !== 'string') return value;
  if (types.includes('integer') || types.includes('number')) return Number(value);
  return types.includes('boolean') ? value === 'true' : value;
}

/** Takes the files of a form field out of those that are left. */
function takeFiles(
  left: Set<UploadedFile>,
  field: string,
  { maxBytes, maxFiles = 1, optional = false }: OperationFile,
): readonly UploadedFile[] {
  const found = [...left].filter((file) => file.field.replace(/\[\d*\]$/, '') === field);
  for (const file of found) left.delete(file);
  if ((found.length === 0 && !optional) || found.some(({ bytes }) => bytes === 0))
    throw new GatewayError('invalid_request', `The form must have a non-empty file \`${field}\`.`, { param: field });
  if (found.length > maxFiles)
    throw new GatewayError('invalid_request', `The form may have at most ${maxFiles} file(s) \`${field}\`.`, {
      param: field,
    });
  if (found.some(({ bytes }) => bytes > maxBytes))
    throw new GatewayError('request_too_large', `A file \`${field}\` may have at most ${maxBytes} bytes.`, {
      param: field,
    });
  return found;
}

function unknownFile(param: string, files: readonly (readonly [string, OperationFile])[]): GatewayError {
  const names = files.map(([name, { field = name }]) => `\`${field}\``).join(' and ');
  return new GatewayError(
    'invalid_request',
    `The form may contain only the file${files.length > 1 ? 's' : ''} ${names}.`,
    { param: param.slice(0, 64) },
  );
}

/** Returns the problem of declared routes; undefined without any. Files need fields of the request. */
export function problemOfRoutes({ request, routes = [] }: OperationDefinition): string | undefined {
  for (const { path, otherPaths = [], body, files } of routes) {
    if (path === undefined && otherPaths.length === 0) return 'has a route without a `path`';
    if (path !== undefined && !/^[\w-]+(?:\/[\w-]+)*$/.test(path))
      return `has a route with the path "${path}"; write the end of a path, such as "audio/notes"`;
    if (files && body === undefined)
      return `has the route "${path ?? otherPaths[0]}" with files and without a \`body\`; write the schema of the form’s text fields`;
    for (const name of Object.keys(files ?? {}))
      if (!isObject(readObject(request['properties'])[name]))
        return `has a route with the file "${name}", which is not a field of its request schema`;
  }
  return undefined;
}
