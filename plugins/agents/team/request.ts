import type { AgentAction, AgentServer, NamedServer, PluginConfig, Schema } from '../../../contract/index.ts';
import { type ActionSet, checkActions, NO_ACTION, nameActions, readActions } from '../kit/action-set.ts';
import { type AgentInputs, readInputs } from '../kit/agent-inputs.ts';
import { readMessage } from '../kit/read-message.ts';
import type { ResultTarget } from '../kit/request-structured.ts';
import type { Checked, CheckedSchema, SchemaReader } from '../kit/response-model.ts';
import { SERVER_TOOL } from './config.ts';

/** Body of `POST /api/core/agent` (spec 2.3). Optional fields may also be null, as typed clients send them. */
export const TEAM_REQUEST = {
  type: 'object',
  additionalProperties: false,
  required: ['message'],
  properties: {
    model: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 200,
      description: 'Base model of the team for this request: `provider/model` or an alias.',
    },
    message: { type: 'string', minLength: 1, maxLength: 100_000, description: 'Message of the user.' },
    response_model: {
      type: ['object', 'null'],
      description: 'Structure of `content`: JSON Schema, or a shape such as `{"answer": "string"}`.',
    },
    context: {
      type: ['string', 'null'],
      maxLength: 100_000,
      description: 'Context for the system prompt of all agents.',
    },
    inputs: { description: 'Any JSON, such as texts, readings, or images as OpenAI `image_url` parts.' },
    actions: {
      type: ['array', 'null'],
      maxItems: 64,
      description: 'Actions that the result may use.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name'],
        properties: {
          name: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,64}$' },
          description: { type: ['string', 'null'], maxLength: 2000 },
          parameters: { type: ['object', 'null'], description: 'JSON Schema of the arguments. Default: no arguments.' },
        },
      },
    },
    session: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 128,
      description: 'Session whose memory is used. Default: `default`; null disables it.',
    },
    tools: {
      type: ['array', 'null'],
      maxItems: 8,
      items: SERVER_TOOL,
      description: 'MCP servers whose tools the agents may call.',
    },
    stream: { type: ['boolean', 'null'], description: 'Responds with server-sent events.' },
  },
} as const;

export type TeamRequestBody = PluginConfig<typeof TEAM_REQUEST>;

/** Request after validation. */
export interface TeamRequest {
  readonly model: string | undefined;
  readonly message: string;
  readonly context: string | undefined;
  readonly inputs: AgentInputs;
  /** Inputs as sent, for agents written in code. */
  readonly rawInputs: unknown;
  readonly actions: ActionSet | undefined;
  readonly target: ResultTarget;
  /** MCP servers whose tools the agents may call. */
  readonly servers: readonly NamedServer[];
  /** Undefined disables memory. */
  readonly session: string | undefined;
  readonly stream: boolean;
}

/** Reads a validated body; throws `invalid_request` or `request_too_large` with the path of unusable parts. */
export function readTeamRequest(body: TeamRequestBody, reader: SchemaReader): TeamRequest {
  const message = readMessage(body.message, 'send what the user asks.');
  const actions = readActions(body.actions?.map(readAction), reader);
  const model = body.response_model ? reader.readModel(body.response_model, 'response_model') : undefined;
  return {
    model: body.model ?? undefined,
    message,
    context: body.context ?? undefined,
    inputs: readInputs(body.inputs),
    rawInputs: body.inputs ?? undefined,
    actions,
    target: createResultTarget(model, actions, reader),
    servers: (body.tools ?? []).map((tool, index) => ({ ...namedServer(tool), param: `tools[${index}]` })),
    session: body.session === undefined ? 'default' : (body.session ?? undefined),
    stream: body.stream ?? false,
  };
}

/** Server as a chat names it. */
export function namedServer({ server, allowed_tools: tools }: AgentServer): NamedServer {
  return { server, ...(tools && { tools }) };
}

function readAction(action: NonNullable<TeamRequestBody['actions']>[number]): AgentAction {
  const { name, description, parameters } = action;
  return { name, ...(description && { description }), ...(parameters && { parameters }) };
}

/** Response schema for OpenAPI. */
export const TEAM_RESPONSE = {
  type: 'object',
  required: ['content', 'usage', 'model', 'trace'],
  properties: {
    content: { type: 'object', description: 'Conforms to `response_model`. Default: `{answer, actions?}`.' },
    usage: {
      type: 'object',
      required: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
      description: 'Sum over all agents.',
      properties: {
        prompt_tokens: { type: 'integer' },
        completion_tokens: { type: 'integer' },
        total_tokens: { type: 'integer' },
      },
    },
    model: { type: 'string', description: 'Model that wrote the result.' },
    trace: {
      type: 'array',
      items: {
        type: 'object',
        required: ['agent', 'status', 'ms'],
        properties: {
          agent: { type: 'string' },
          status: { type: 'string', enum: ['ok', 'failed', 'late', 'skipped'] },
          ms: { type: 'integer' },
          round: { type: 'integer' },
          error: { type: 'string', description: 'Code of the error.' },
        },
      },
    },
  },
} as const;

const ANSWER: Schema = Object.freeze({
  type: 'string',
  description: 'The reply to the user, in the language of the message.',
});

/**
 * Required form of the result: the caller's `response_model`; without one `{answer}`, or `{answer, actions}` if actions
 * were given. Action names in it must be given ones, with arguments that validate.
 */
function createResultTarget(
  model: CheckedSchema | undefined,
  actions: ActionSet | undefined,
  reader: SchemaReader,
): ResultTarget {
  const name = 'result';
  if (!model) return defaultTarget(name, actions, reader);
  if (!actions) return { name, schema: model.schema, check: (value) => model.check(value) };
  return {
    name,
    schema: nameActions(model.schema, actions),
    check: (value) => andThen(model.check(value), (one) => andThen(checkActions(one, actions), model.check)),
  };
}

function defaultTarget(name: string, actions: ActionSet | undefined, reader: SchemaReader): ResultTarget {
  const list = {
    type: 'array',
    items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  };
  const schema = (actionList: Schema): Schema => ({
    type: 'object',
    properties: { answer: ANSWER, ...(actions && { actions: actionList }) },
    required: actions ? ['answer', 'actions'] : ['answer'],
    additionalProperties: false,
  });
  const checked = reader.readSchema(schema(list), 'answer');
  return {
    name,
    schema: schema(actions?.listSchema ?? list),
    check: (value) =>
      actions
        ? andThen(checked.check(value), (one) => checkActions(completeActions(one), actions))
        : checked.check(value),
  };
}

/** Adds missing empty `arguments`, and removes `none` from lists. */
function completeActions(value: unknown): unknown {
  const { answer, actions } = value as {
    readonly answer: string;
    readonly actions: readonly { readonly name: string }[];
  };
  const named = actions.filter(({ name }) => name !== NO_ACTION);
  return { answer, actions: named.map((action) => ({ arguments: {}, ...action })) };
}

function andThen(checked: Checked, next: (value: unknown) => Checked): Checked {
  return checked.ok ? next(checked.value) : checked;
}
