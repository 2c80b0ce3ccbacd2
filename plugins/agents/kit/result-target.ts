import type { Schema } from '../../../core/index.ts';
import { type ActionSet, checkActions, NO_ACTION, nameActions } from './action-set.ts';
import type { ResultTarget } from './request-structured.ts';
import type { Checked, CheckedSchema, SchemaReader } from './response-model.ts';

const ANSWER: Schema = Object.freeze({
  type: 'string',
  description: 'The reply to the user, in the language of the message.',
});

/**
 * What the result must be: the caller's `response_model`; without one `{answer}`, and `{answer, actions}` when
 * actions were given. Whatever names an action in it may only use given ones, with arguments that validate.
 */
export function createResultTarget(
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

/** `arguments` may be left out where there are none; `none` in a list says nothing. */
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
