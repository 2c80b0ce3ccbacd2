import { type AgentAction, GatewayError, isObject, type Schema } from '../../../contract/index.ts';
import type { Checked, CheckedSchema, SchemaReader } from './response-model.ts';

/** Always a valid action name, so that no model is forced to choose a wrong one. */
export const NO_ACTION = 'none';

/** Actions of a caller: the names and arguments that a result may contain. */
export interface ActionSet {
  readonly actions: readonly AgentAction[];
  readonly names: readonly string[];
  /** Schema of a list of `{name, arguments}`. */
  readonly listSchema: Schema;
  /** Checks an action's name, and its arguments if given; the value is the arguments, fitted. */
  check(name: string, args?: unknown): Checked;
}

/** Maximum size of all actions of a request in a prompt, in characters of JSON. */
const MAX_CHARACTERS = 131_072;

const NO_ARGUMENTS: Schema = Object.freeze({ type: 'object', properties: {}, additionalProperties: false });

/**
 * Reads `actions`. Throws `invalid_request` with the path for a duplicate name or an invalid schema, and
 * `request_too_large` if they exceed 131,072 characters of JSON together.
 */
export function readActions(
  actions: readonly AgentAction[] | undefined,
  reader: SchemaReader,
  param = 'actions',
): ActionSet | undefined {
  if (!actions || actions.length === 0) return undefined;
  const size = JSON.stringify(actions).length;
  if (size > MAX_CHARACTERS) {
    const message = `${param} have ${size} characters in total; the limit is ${MAX_CHARACTERS}.`;
    throw new GatewayError('request_too_large', message, { param });
  }
  const schemas = new Map<string, CheckedSchema>();
  actions.forEach((action, index) => {
    const at = `${param}[${index}]`;
    if (schemas.has(action.name)) {
      throw new GatewayError(
        'invalid_request',
        `${at}.name "${action.name}" is a duplicate. Give each action a unique name.`,
        { param: `${at}.name` },
      );
    }
    schemas.set(action.name, readParameters(action.parameters, `${at}.parameters`, reader));
  });
  const items = [...schemas].map(([name, { schema }]) => choiceOf(name, schema));
  return Object.freeze({
    actions,
    names: [...schemas.keys()],
    listSchema: { type: 'array', maxItems: 64, items: items.length === 1 ? items[0] : { anyOf: items } },
    check(name: string, args?: unknown): Checked {
      if (name === NO_ACTION && !schemas.has(name)) return { ok: true, value: args };
      const schema = schemas.get(name);
      if (!schema) {
        const given = [...schemas.keys()].join(', ');
        return { ok: false, error: `"${name.slice(0, 80)}" is not an available action: use one of ${given}` };
      }
      if (args === undefined || args === null) return { ok: true, value: args };
      const checked = schema.check(args);
      return checked.ok
        ? checked
        : { ok: false, error: `the arguments of ${name} do not match its schema: ${checked.error}` };
    },
  });
}

function readParameters(parameters: Schema | undefined, param: string, reader: SchemaReader): CheckedSchema {
  const empty = !parameters || Object.keys(parameters).length === 0;
  const schema = reader.readSchema(empty ? NO_ARGUMENTS : parameters, param);
  if (schema.schema['type'] === 'object') return schema;
  throw new GatewayError('invalid_request', `${param} must be a JSON Schema of type object.`, {
    param: `${param}.type`,
  });
}

function choiceOf(name: string, schema: Schema): Schema {
  return {
    type: 'object',
    properties: { name: { type: 'string', enum: [name] }, arguments: schema },
    required: ['name', 'arguments'],
    additionalProperties: false,
  };
}

/**
 * Restricts action names in a `response_model`: they must be a given name or `none`. This applies to a string property
 * `action` (or the `name` in it), and to entries of `actions`. An enum set by the caller is unchanged.
 */
export function nameActions(schema: Schema, set: ActionSet): Schema {
  const names = [...new Set([...set.names, NO_ACTION])];
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (!isObject(node)) return node;
    return Object.fromEntries(
      Object.entries(node).map(([word, value]) => {
        if (word !== 'properties' || !isObject(value)) return [word, word === 'enum' ? value : visit(value)];
        const fields = Object.entries(value).map(([name, field]) => [name, restrict(name, visit(field), names)]);
        return [word, Object.fromEntries(fields)];
      }),
    );
  };
  return visit(schema) as Schema;
}

function restrict(name: string, field: unknown, names: readonly string[]): unknown {
  if (!isObject(field)) return field;
  if (name === 'action') return restrictOne(field, names);
  if (name === 'actions' && isObject(field['items'])) return { ...field, items: restrictOne(field['items'], names) };
  return field;
}

function restrictOne(node: Schema, names: readonly string[]): Schema {
  if (node['type'] === 'string' && !('enum' in node) && !('const' in node)) return { ...node, enum: names };
  const properties = node['properties'];
  if (!isObject(properties)) return node;
  const key = isObject(properties['name']) ? 'name' : 'action';
  const named = properties[key];
  return isObject(named) ? { ...node, properties: { ...properties, [key]: restrictOne(named, names) } } : node;
}

/**
 * Checks every `action` and `actions` field of a result, at any depth. Names must be given ones or `none`, and
 * arguments next to them (`arguments` or `parameters`) must validate. The value is the result with fitted arguments.
 */
export function checkActions(value: unknown, set: ActionSet): Checked {
  try {
    return { ok: true, value: fitActions(value, set) };
  } catch (error) {
    if (error instanceof ActionError) return { ok: false, error: error.message };
    throw error;
  }
}

class ActionError extends Error {
  override readonly name = 'ActionError';
}

function fitActions(value: unknown, set: ActionSet): unknown {
  if (Array.isArray(value)) return value.map((one) => fitActions(one, set));
  if (!isObject(value)) return value;
  if (typeof value['action'] === 'string') return fitChoice(value, value['action'], set);
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => {
      if (key === 'action') return [key, fitNamed(field, set)];
      if (key === 'actions' && Array.isArray(field)) return [key, field.map((one) => fitNamed(one, set))];
      return [key, fitActions(field, set)];
    }),
  );
}

/** Checks an action: a name, or an object with `name` or `action`. */
function fitNamed(action: unknown, set: ActionSet): unknown {
  if (typeof action === 'string') {
    fitArguments(action, undefined, set);
    return action;
  }
  if (!isObject(action)) return action;
  const name = action['name'] ?? action['action'];
  return typeof name === 'string' ? fitChoice(action, name, set) : fitActions(action, set);
}

function fitChoice(holder: Readonly<Record<string, unknown>>, name: string, set: ActionSet): unknown {
  const place = 'arguments' in holder ? 'arguments' : 'parameters';
  const fitted = fitArguments(name, holder[place], set);
  return place in holder ? { ...holder, [place]: fitted } : holder;
}

function fitArguments(name: string, args: unknown, set: ActionSet): unknown {
  const checked = set.check(name, args);
  if (!checked.ok) throw new ActionError(checked.error);
  return checked.value;
}
