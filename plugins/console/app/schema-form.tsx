import { readDescription } from './api.ts';
import { day, instantOf, startOfDay, wallClock } from './format.ts';
import { type NameKind, useKnownNames } from './known-names.tsx';
import { Button, Choice, Field, type Loaded, Text, useLoad } from './ui.tsx';

/** Forms whose fields are those of the API's schema, so that a form has whatever the API takes. */

/** The part of a JSON Schema that a form needs. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maxItems?: number;
  readonly readOnly?: boolean;
}

type Values = Readonly<Record<string, unknown>>;

/** Typed values of a form, by field. */
export interface Draft {
  readonly [field: string]: string | Draft | readonly Draft[] | undefined;
}

/** Loads the schema of a request's body from the API's description. */
export function useBodySchema(method: 'post' | 'patch' | 'put', path: string): Loaded<Schema> {
  return useLoad(`${method} ${path}`, async () => {
    const { paths, components } = await readDescription();
    const body = paths[`/api/core/admin${path}`]?.[method]?.requestBody?.content['application/json']?.schema;
    if (!body) throw new Error(`This gateway has no ${method} ${path}.`);
    return resolve(body, components?.schemas ?? {});
  });
}

/** Replaces references, so that the form reads one whole schema. */
function resolve(schema: Schema, known: Readonly<Record<string, Schema>>): Schema {
  const found = schema.$ref === undefined ? schema : (known[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  return {
    ...found,
    ...(found.items && { items: resolve(found.items, known) }),
    ...(found.properties && {
      properties: Object.fromEntries(
        Object.entries(found.properties).map(([name, each]) => [name, resolve(each, known)]),
      ),
    }),
  };
}

type Kind =
  | 'text'
  | 'integer'
  | 'amount'
  | 'choice'
  | 'flag'
  | 'day'
  | 'time'
  | 'names'
  | 'rows'
  | 'group'
  | 'map'
  | 'json'
  | 'fixed';

function kindOf(name: string, schema: Schema): Kind {
  const { enum: values, items, properties, const: fixed } = schema;
  const types = typesOf(schema);
  if (fixed !== undefined) return 'fixed';
  if (values) return 'choice';
  if (items) return items.properties ? 'rows' : 'names';
  if (properties) return 'group';
  if (types.includes('object')) return membersOf(schema) ? 'map' : 'json';
  if (types.includes('boolean')) return 'flag';
  if (name === 'until') return 'time';
  const isNumber = types.some((each) => each === 'integer' || each === 'number');
  if (types.includes('string')) return name.endsWith('_at') ? 'day' : isNumber ? 'amount' : 'text';
  return isNumber ? 'integer' : 'text';
}

/** Key of a map's member, as a field of its row. */
const KEY = 'name';

/** Schema of the rows of a map: its members with their keys. Undefined for objects of any shape. */
function membersOf({ additionalProperties: member }: Schema): Schema | undefined {
  if (typeof member !== 'object' || !member.properties) return undefined;
  const key: Schema = { type: 'string' };
  return { properties: { [KEY]: key, ...member.properties }, required: [KEY, ...(member.required ?? [])] };
}

function typesOf({ type, anyOf }: Schema): readonly string[] {
  return [type ?? [], anyOf?.map((each) => each.type ?? []) ?? []].flat(3);
}

function isNullable(schema: Schema): boolean {
  return typesOf(schema).includes('null');
}

/** Fields of a form that the API can change. */
function fieldsOf(schema: Schema): readonly (readonly [name: string, field: Schema, kind: Kind])[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const kind = kindOf(name, field);
    return kind === 'fixed' || field.readOnly === true ? [] : [[name, field, kind] as const];
  });
}

/** Names of the fields of a form. */
export function fieldNames(schema: Schema): readonly string[] {
  return fieldsOf(schema).map(([name]) => name);
}

/** Value of one field as the API takes it; undefined if nothing is typed. */
function readField(name: string, field: Schema, typed: Draft[string]): unknown {
  const kind = kindOf(name, field);
  if (kind === 'rows') {
    const rows = Array.isArray(typed) ? (typed as readonly Draft[]) : [];
    return rows.length === 0 ? undefined : rows.map((row) => readDraft(field.items ?? {}, row));
  }
  if (kind === 'map') {
    const rows = readField(name, { items: membersOf(field) ?? {} }, typed) as Values[] | undefined;
    return rows && Object.fromEntries(rows.map(({ [KEY]: key, ...member }) => [String(key ?? ''), member]));
  }
  if (kind === 'group') {
    const found = readDraft(field, (typed as Draft | undefined) ?? {});
    return Object.keys(found).length === 0 ? undefined : found;
  }
  const text = typeof typed === 'string' ? typed.trim() : '';
  if (text === '') return undefined;
  if (kind === 'names') return [...new Set(namesOf(text))];
  if (kind === 'day') return startOfDay(text, 1);
  if (kind === 'time') return instantOf(text);
  // The API explains text that is not JSON.
  if (kind === 'json') return parseJson(text);
  if (kind === 'flag' && /^(true|false)$/.test(text)) return text === 'true';
  // The API explains a wrong number.
  if (kind === 'integer' || (kind === 'amount' && /^\d{1,15}$/.test(text)))
    return Number.isNaN(Number(text)) ? text : Number(text);
  return text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function namesOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean);
}

/** Body of a request: the fields that are not empty. */
export function readDraft(schema: Schema, draft: Draft): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    fieldsOf(schema).flatMap(([name, field]) => {
      const value = readField(name, field, draft[name]);
      if (value !== undefined) return [[name, value]];
      return schema.required?.includes(name) && isNullable(field) ? [[name, null]] : [];
    }),
  );
}

/** Draft of an object as the API shows it. */
export function draftOf(schema: Schema, value: Readonly<Record<string, unknown>>): Draft {
  return Object.fromEntries(
    fieldsOf(schema).flatMap(([name, field, kind]) => {
      const known = value[name];
      return known === undefined || known === null ? [] : [[name, typedOf(field, kind, known)] as const];
    }),
  );
}

function typedOf(field: Schema, kind: Kind, value: unknown): Draft[string] {
  if (kind === 'rows')
    return (value as readonly Record<string, unknown>[]).map((row) => draftOf(field.items ?? {}, row));
  if (kind === 'group') return draftOf(field, value as Record<string, unknown>);
  if (kind === 'map') {
    const rows = Object.entries(value as Record<string, object>).map(([key, member]) => ({ [KEY]: key, ...member }));
    return typedOf({ items: membersOf(field) ?? {} }, 'rows', rows);
  }
  if (kind === 'json') return JSON.stringify(value, null, 2);
  if (kind === 'names') return (value as readonly unknown[]).join(', ');
  // A time of midnight is the end of the day before.
  if (kind === 'day') return day(new Date(Date.parse(String(value)) - 1).toISOString());
  if (kind === 'time') return wallClock(String(value));
  return String(value);
}

/** Fields that differ between two drafts, null for those that are empty now. */
export function changesOf(schema: Schema, before: Draft, now: Draft): Readonly<Record<string, unknown>> {
  const [old, next] = [readDraft(schema, before), readDraft(schema, now)];
  const names = [...new Set([...Object.keys(old), ...Object.keys(next)])];
  return Object.fromEntries(
    names
      .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(next[name]))
      .map((name) => [name, next[name] ?? null]),
  );
}

/** First choices of required fields, if not the first of the schema. */
const STARTS: Readonly<Record<string, string>> = Object.freeze({ every: 'day' });

/** Draft of a new object: required choices are made, and required lists have one row. */
export function startOf(schema: Schema): Draft {
  const required = fieldsOf(schema).filter(([name]) => schema.required?.includes(name));
  return Object.fromEntries(
    required.flatMap(([name, field, kind]): readonly (readonly [string, Draft[string]])[] => {
      if (kind === 'rows') return [[name, [startOf(field.items ?? {})]]];
      return kind === 'choice' ? [[name, STARTS[name] ?? String(field.enum?.[0] ?? '')]] : [];
    }),
  );
}

/** Known names that a field offers. */
const KINDS: Readonly<Record<string, NameKind>> = Object.freeze({
  user_id: 'user',
  user: 'user',
  users: 'user',
  account: 'account',
  key: 'key',
  plan: 'plan',
  plans: 'plan',
  tag: 'tag',
  tags: 'tag',
  model: 'model',
  models: 'model',
  to: 'model',
  onOverflow: 'model',
  provider: 'provider',
  providers: 'provider',
  end_user: 'endUser',
  timezone: 'timezone',
});

/** Labels that the name of a field does not make. */
const LABELS: Readonly<Record<string, string>> = Object.freeze({
  user_id: 'User',
  rpm: 'Requests per minute',
  tpm: 'Tokens per minute',
  budget_usd: 'Total budget in US dollars',
  budgets: 'Budgets by period',
  amount_usd: 'US dollars',
  every: 'Each',
  soft_usd: 'Warning from, US dollars',
  tags: 'Team and tags',
  expires_at: 'Expires at the end of',
  overlap_seconds: 'Seconds that the old key stays valid',
});

export function labelOf(name: string): string {
  const words = name
    .replace(/_usd$/, ' in US dollars')
    .replaceAll('_', ' ')
    .replace(/[a-z][A-Z]/g, ([end = '', start = '']) => `${end} ${start.toLowerCase()}`);
  return LABELS[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Plain text of a description, whose code has backticks; none if it only repeats the label. */
function hintOf({ description = '' }: Schema, label: string): { readonly hint?: string } {
  const hint = description.replaceAll('`', '');
  return hint === '' || hint === `${label}.` ? {} : { hint };
}

interface FieldsProps {
  readonly schema: Schema;
  readonly draft: Draft;
  readonly set: (draft: Draft) => void;
  /** Fields shown at once, in this order; others after a click, or if they have a value. */
  readonly first: readonly string[];
}

/** Fields of an object. */
export function SchemaFields({ schema, draft, set, first }: FieldsProps) {
  const fields = fieldsOf(schema);
  const shown = first.flatMap((name) => fields.filter(([each]) => each === name));
  const others = fields.filter(([name]) => !first.includes(name));
  const fieldOf = ([name, field, kind]: (typeof fields)[number]) => (
    <SchemaField
      key={name}
      name={name}
      field={field}
      kind={kind}
      isRequired={schema.required?.includes(name) === true && !isNullable(field)}
      value={draft[name]}
      set={(value) => set({ ...draft, [name]: value })}
    />
  );
  const isOpen = others.some(([name]) => draft[name] !== undefined && draft[name] !== '');
  return (
    <>
      {shown.map(fieldOf)}
      {others.length > 0 && (
        <details open={isOpen}>
          <summary>{others.length === 1 ? '1 more field' : `${others.length} more fields`}</summary>
          <div class="fields">{others.map(fieldOf)}</div>
        </details>
      )}
    </>
  );
}

interface FieldProps {
  readonly name: string;
  readonly field: Schema;
  readonly kind: Kind;
  readonly isRequired: boolean;
  readonly value: Draft[string];
  readonly set: (value: Draft[string]) => void;
}

function SchemaField({ name, field, kind, isRequired, value, set }: FieldProps) {
  const label = labelOf(name);
  const text = typeof value === 'string' ? value : '';
  if (kind === 'rows' || kind === 'map') {
    const rows = kind === 'rows' ? field : { ...field, items: membersOf(field) ?? {} };
    return <Rows name={name} field={rows} rows={Array.isArray(value) ? value : []} set={set} />;
  }
  if (kind === 'json')
    return (
      <Field label={`${label}, as JSON`} {...hintOf(field, label)}>
        <textarea
          value={text}
          required={isRequired}
          spellcheck={false}
          onInput={(event) => set(event.currentTarget.value)}
        />
      </Field>
    );
  if (kind === 'group')
    return (
      <fieldset class="group">
        <legend>{label}</legend>
        <SchemaFields
          schema={field}
          draft={(value as Draft | undefined) ?? {}}
          set={set}
          first={Object.keys(field.properties ?? {}).slice(0, 3)}
        />
      </fieldset>
    );
  if (kind === 'choice' || kind === 'flag') {
    const known = kind === 'flag' ? ['true', 'false'] : (field.enum ?? []).filter((each) => each !== null).map(String);
    // A configuration may have a reference here.
    const values = text === '' || known.includes(text) ? known : [...known, text];
    return (
      <Choice
        label={label}
        {...hintOf(field, label)}
        value={text}
        options={[...(isRequired ? [] : [['', 'none'] as const]), ...values.map((each) => [each, each] as const)]}
        onPick={set}
      />
    );
  }
  return <TextField name={name} field={field} kind={kind} isRequired={isRequired} value={text} set={set} />;
}

/** Types of inputs, if not text. */
const INPUTS: Readonly<Partial<Record<Kind, 'number' | 'date' | 'datetime-local'>>> = Object.freeze({
  integer: 'number',
  day: 'date',
  time: 'datetime-local',
});

function TextField({ name, field, kind, isRequired, value, set }: FieldProps & { readonly value: string }) {
  const label = labelOf(name);
  const offer = useKnownNames({ kind: KINDS[name], isMany: kind === 'names' });
  return (
    <>
      <Text
        label={kind === 'names' ? `${label}, with commas` : label}
        {...hintOf(field, label)}
        // A reference of a configuration is text in a field for numbers.
        type={value.includes('${') ? 'text' : (INPUTS[kind] ?? 'text')}
        {...(kind === 'integer' && { step: typesOf(field).includes('number') ? 'any' : '1' })}
        {...(field.minimum !== undefined && kind === 'integer' && { min: field.minimum })}
        required={isRequired}
        {...offer.field}
        value={value}
        onType={set}
      />
      {offer.list}
    </>
  );
}

/** Several objects, such as budgets. */
function Rows({
  name,
  field,
  rows,
  set,
}: {
  name: string;
  field: Schema;
  rows: readonly Draft[];
  set: (rows: readonly Draft[]) => void;
}) {
  const item = field.items ?? {};
  return (
    <fieldset class="group">
      <legend>{labelOf(name)}</legend>
      {field.description && <p class="muted">{field.description.replaceAll('`', '')}</p>}
      {rows.map((row, at) => (
        <fieldset key={at} class="group">
          <legend class="unseen">{`${labelOf(name)}, number ${at + 1}`}</legend>
          <SchemaFields
            schema={item}
            draft={row}
            set={(draft) => set(rows.map((each, place) => (place === at ? draft : each)))}
            first={item.required ?? []}
          />
          <Button kind="quiet" onClick={() => set(rows.filter((_, place) => place !== at))}>
            Remove
          </Button>
        </fieldset>
      ))}
      {rows.length < (field.maxItems ?? Number.POSITIVE_INFINITY) && (
        <Button kind="quiet" onClick={() => set([...rows, startOf(item)])}>
          Add
        </Button>
      )}
    </fieldset>
  );
}
