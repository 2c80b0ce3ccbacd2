import {
  type AuditActor,
  type AuditChange,
  type CommandInput,
  type CommandOption,
  GatewayError,
  type PluginApi,
  type PluginConfig,
  type Route,
  type RouteContext,
  type Schema,
  type Subcommand,
} from '../../../contract/index.ts';
import {
  auditActor,
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from './index.ts';
import type { Rights, Scope } from './scopes.ts';
import { assertNew, readWrittenBack, withReadOnly } from './versions.ts';

/**
 * Objects that operators manage, such as users and plans. One table per kind creates the routes with their OpenAPI, the
 * command, versions against lost updates, pages, and audit entries.
 */
export interface Resource<Value, Version extends VersionTag> {
  /** Prefix of its actions in the audit log: `user` of `user.block`. */
  readonly name: string;
  /** Path of the list: `/api/core/admin/users`. */
  readonly path: string;
  /** Scopes required to read and to change. */
  readonly scopes: { readonly read: Scope; readonly write: Scope };
  /** Name of the id in the path. */
  readonly id: 'id' | 'name';
  /** Schema of one object as shown. */
  readonly schema: Schema;
  /** Default description of an action's response. */
  readonly response: string;
  readonly command: {
    readonly name: string;
    readonly summary: string;
    readonly id: Argument;
    /** Order of its subcommands, if it differs from that of the routes. */
    readonly order?: readonly string[];
  };
  /** Finds an object with its version, which is its entity tag; returns no value, or throws, if it does not exist. */
  find(id: string): Promise<Found<Value, Version>>;
  /** Object in the form of GET, which PUT and PATCH accept. */
  show?(value: NonNullable<Value>): object | Promise<object>;
  /** Error for a missing object. */
  notFound?(id: string): GatewayError;
  /** Throws if the operator may not change the object, whatever the scope. */
  guard?(value: Value, by: Rights): void;
}

type VersionTag = number | string;

interface Found<Value, Version extends VersionTag> {
  readonly version: Version;
  readonly value: Value;
}

type Argument = NonNullable<Subcommand['args']>[number];

/** Route, subcommand, or both for the same function. */
export interface Action {
  readonly route?: Route;
  readonly subcommand?: Subcommand;
}

/** Definition of a list. */
export interface List<Row extends object> {
  readonly http: {
    readonly summary: string;
    readonly description?: string;
    readonly response: string;
    readonly schema: Schema;
    /** Query parameters in addition to the page; a list without pages has no query. */
    readonly filters?: Readonly<Record<string, Schema>>;
    readonly isWhole?: boolean;
  };
  /** Reads a page; `filters` come from the query or the options. */
  read(page: {
    readonly limit: number;
    readonly after?: string;
    readonly filters: Readonly<Record<string, unknown>>;
  }): Promise<{
    readonly rows: readonly Row[];
    readonly next?: string | undefined;
    /** For a list without pages: true if it is incomplete. */
    readonly hasMore?: boolean;
  }>;
  readonly cli: {
    /** Default: the route's. */
    readonly summary?: string;
    readonly options?: readonly CommandOption[];
    /** Absent for a list without pages. */
    readonly page?: { readonly after: string; readonly one: string; readonly first: number; readonly most: number };
    readonly columns: readonly (readonly [head: string, cell: (row: Row) => string])[];
    /** Text in place of an empty table. */
    readonly empty?: string;
  };
}

/** Definition of showing one object. */
interface Show<Value, Shown extends object> {
  readonly http: { readonly summary: string; readonly response?: string; readonly schema?: Schema };
  show(value: Value): Shown | Promise<Shown>;
  readonly cli?: {
    /** Default: the route's. */
    readonly summary?: string;
    text(shown: Shown): string;
    /** Text for stderr, printed after the result. */
    note?(shown: Shown): string;
  };
}

/** Definition of a change of one object. */
interface Change<Value, Version extends VersionTag, Body extends Schema, Shown extends object> {
  /** Last part of a POST path, subcommand (see {@link VERBS}), and the action in the audit log after the resource. */
  readonly word: string;
  readonly http: {
    /** Default: POST. */
    readonly method?: 'PUT' | 'PATCH' | 'DELETE';
    /** Path after the id, if it is not the word of a POST. */
    readonly at?: string;
    readonly summary: string;
    readonly description?: string;
    /** Default for POST: {@link NO_BODY}. */
    readonly body?: Body;
    readonly bodyOptional?: boolean;
    readonly response?: string;
    /** Response schema, if it differs from the resource's. */
    readonly schema?: Schema;
  };
  apply(wish: Wish<Value, Version, PluginConfig<Body>>): Promise<Changed<Shown>>;
  readonly cli?: {
    readonly summary: string;
    /** Help of the id argument, if it differs from the resource’s. */
    readonly id?: string;
    /** Arguments after the id. */
    readonly args?: readonly Argument[];
    readonly options?: readonly CommandOption[];
    /** Reads the body from the command line; default: an empty one. */
    read?(input: CommandInput): PluginConfig<Body> | Promise<PluginConfig<Body>>;
    text(shown: Shown, input: CommandInput): string;
    /** Text for stderr, printed before the result. */
    intro?(shown: Shown, input: CommandInput): string | undefined;
  };
}

/** Input of a change. */
export interface Wish<Value, Version extends VersionTag, Body> {
  readonly id: string;
  readonly body: Body;
  readonly found: Found<Value, Version>;
  /** Version of `If-Match`: the change is refused if the version differs when it is made. */
  readonly expected: Version | undefined;
  readonly now: number;
  /** Rights of the operator; unlimited on the command line. */
  readonly by: Rights;
}

/** Result of a change. */
interface Changed<Shown> {
  /** New entity tag; none is sent for a deleted object. */
  readonly version?: VersionTag;
  /** Values for the audit log; without both, nothing changed and no entry is written. */
  readonly before?: object | undefined;
  readonly after?: object | undefined;
  /** Audit subject, if it is not the id. */
  readonly subject?: string;
  /** Returns the response; called after the audit entry is written. */
  show(): Shown | Promise<Shown>;
}

/** Change that another subcommand uses too. */
interface ChangeAction<Body, Shown> extends Action {
  run(actor: AuditActor, id: string, body: Body): Promise<Shown>;
}

/** Creates the actions of one resource. */
export interface Actions<Value, Version extends VersionTag> {
  list<Row extends object>(spec: List<Row>): Action;
  show<Shown extends object>(spec: Show<NonNullable<Value>, Shown>): Action;
  /** Change without an existing id. */
  create<const Body extends Schema, Shown extends object>(spec: Change<undefined, number, Body, Shown>): Action;
  change<const Body extends Schema = typeof NO_BODY, Shown extends object = object>(
    spec: Change<Value, Version, Body, Shown>,
  ): ChangeAction<PluginConfig<Body>, Shown>;
}

/** Subcommands of changes whose word in the audit log is older. */
const VERBS: Readonly<Record<string, string>> = Object.freeze({ put: 'set', remove: 'delete', end: 'revoke' });

/** Body of a change without parameters. */
const NO_BODY = { type: 'object', additionalProperties: false, properties: {} } as const;

/** Text for the command line about the delay of a change. */
export const WITHIN = 'running gateways apply it within 5 seconds';

type Api = Pick<PluginApi, 'route' | 'command'> & { readonly operators: Pick<PluginApi['operators'], 'audit'> };

/** Registers the routes of a resource in the order of its actions, and its command. */
export function resource<Value, Version extends VersionTag>(
  api: Api,
  table: Resource<Value, Version>,
  makeActions: (make: Actions<Value, Version>) => readonly Action[],
): void {
  const actions = makeActions({
    list: (spec) => listAction({ path: table.path, scope: table.scopes.read }, spec),
    show: (spec) => showAction(table, spec),
    create: (spec) => {
      const { guard: _guard, show: _show, ...others } = table;
      return changeAction(api, { ...others, find: async () => ({ version: 0, value: undefined }) }, spec, true);
    },
    change: (spec) => changeAction(api, table, spec),
  });
  for (const { route } of actions) if (route) api.route(route);
  const { name, summary, order = [] } = table.command;
  const subcommands = actions.flatMap(({ subcommand }) => subcommand ?? []);
  const placeOf = (each: Subcommand): number => order.indexOf(each.name);
  api.command({
    name,
    summary,
    subcommands: subcommands.toSorted((a, b) => placeOf(a) - placeOf(b)),
  });
}

/** Creates a separate list, such as that of the audit log. */
export function listAction<Row extends object>(
  at: { readonly path: string; readonly scope: Scope },
  { http, read, cli }: List<Row>,
): Required<Action> {
  const { summary, description, response, schema, filters, isWhole = false } = http;
  const route: Route = {
    ...FOR_OPERATORS,
    ...at,
    method: 'GET',
    summary,
    ...(description !== undefined && { description }),
    ...(!isWhole && {
      query: { type: 'object', additionalProperties: false, properties: { ...PAGE_QUERY, ...filters } },
    }),
    responses: { 200: { description: response, schema: listOf(schema) } },
    async handler(ctx) {
      const { limit, after, query } = readPage(ctx);
      const { rows, next, hasMore } = await read({ limit, ...(after !== undefined && { after }), filters: query });
      sendList(ctx, rows, next, hasMore === true ? { has_more: true } : undefined);
    },
  };
  const { page, columns, options: filterOptions = [] } = cli;
  const pageOptions = (page ? [page] : []).flatMap(({ after, one, first, most }) => [
    { flags: '--limit <n>', summary: `maximum number (default: ${first}${most > 1000 ? '' : `, at most ${most}`})` },
    { flags: after, summary: `continue after this ${one}` },
  ]);
  const subcommand: Subcommand = {
    name: 'list',
    summary: cli.summary ?? summary,
    options: [...filterOptions, ...pageOptions],
    async run({ options, io }) {
      const after = textOf(options, 'after');
      const limit = page ? readLimit(textOf(options, 'limit'), page) : Number.POSITIVE_INFINITY;
      const {
        rows,
        next,
        hasMore = next !== undefined,
      } = await read({
        limit,
        filters: options,
        ...(after !== undefined && { after }),
      });
      const list = { object: 'list', data: rows, has_more: hasMore, ...(next !== undefined && { next }) };
      const table = io.table(
        columns.map(([head]) => head),
        rows.map((row) => columns.map(([, cell]) => cell(row))),
      );
      io.result(list, rows.length === 0 ? (cli.empty ?? table) : table);
      if (next !== undefined) io.note(`More: --after ${/^[\w.-]+$/.test(next) ? next : JSON.stringify(next)}`);
    },
  };
  return { route, subcommand };
}

function showAction<Value, Shown extends object>(
  table: Resource<Value, VersionTag>,
  { http, show, cli }: Show<NonNullable<Value>, Shown>,
): Action {
  const read = async (id: string): Promise<{ readonly version: VersionTag; readonly shown: Shown }> => {
    const { version, value } = await table.find(id);
    if (value == null) throw table.notFound?.(id) ?? new GatewayError('not_found', `The ${table.name} does not exist.`);
    return { version, shown: await show(value) };
  };
  const { summary, response = table.response, schema = table.schema } = http;
  const route: Route = {
    ...FOR_OPERATORS,
    scope: table.scopes.read,
    method: 'GET',
    path: `${table.path}/:${table.id}`,
    summary,
    responses: { 200: { description: response, schema } },
    async handler(ctx) {
      const { version, shown } = await read(idOf(ctx, table));
      sendVersion(ctx, version, shown);
    },
  };
  if (!cli) return { route };
  const subcommand: Subcommand = {
    name: 'show',
    summary: cli.summary ?? summary,
    args: [table.command.id],
    async run({ args, io }) {
      const { shown } = await read(args[0] ?? '');
      io.result(shown, cli.text(shown));
      if (cli.note) io.note(cli.note(shown));
    },
  };
  return { route, subcommand };
}

function changeAction<Value, Version extends VersionTag, Body extends Schema, Shown extends object>(
  { operators: { audit } }: Api,
  table: Resource<Value, Version>,
  { word, http, apply, cli }: Change<Value, Version, Body, Shown>,
  isNew = false,
): ChangeAction<PluginConfig<Body>, Shown> {
  const make = async (actor: AuditActor, wish: Wish<Value, Version, PluginConfig<Body>>) => {
    table.guard?.(wish.found.value, wish.by);
    const { version, subject = wish.id, before, after, show } = await apply(wish);
    if (before ?? after) {
      const change: AuditChange = { actor, action: `${table.name}.${word}`, subject };
      await audit({ ...change, ...(before && { before }), ...(after && { after }) });
    }
    return { version, shown: await show() };
  };
  const run = async (actor: AuditActor, id: string, body: PluginConfig<Body>): Promise<Shown> => {
    const found = await table.find(id);
    const wish = { id, body, found, expected: undefined, now: Date.now(), by: { isAdmin: true } };
    return (await make(actor, wish)).shown;
  };

  const { method = 'POST', at = method === 'POST' ? `/${word}` : '' } = http;
  const { summary, description, response = table.response, schema = table.schema } = http;
  const { body = method === 'POST' ? NO_BODY : undefined, bodyOptional = body === NO_BODY } = http;
  const isWhole = at === '' && (method === 'PUT' || method === 'PATCH');
  const route: Route = {
    ...FOR_OPERATORS,
    scope: table.scopes.write,
    method,
    summary,
    path: isNew ? table.path : `${table.path}/:${table.id}${at}`,
    ...(description !== undefined && { description }),
    ...(body && { body: isWhole && table.show ? withReadOnly(body, table.schema) : body, bodyOptional }),
    responses: { 200: { description: response, schema } },
    async handler(ctx) {
      const id = idOf(ctx, table);
      const found = await table.find(id);
      const isVersioned = assertNew(ctx, found.value != null) || matchVersion(ctx, found.version);
      const expected = isVersioned ? found.version : undefined;
      let given: unknown = ctx.state.body ?? {};
      if (isWhole && table.show && body) {
        table.guard?.(found.value, ctx.state.principal);
        const shown = found.value == null ? undefined : await table.show(found.value);
        given = readWrittenBack({ sent: given, shown, body, isPart: method === 'PATCH' });
        // Returned as it was read: nothing changed, and no audit entry is written.
        if (given === undefined) return sendVersion(ctx, found.version, shown ?? {});
      }
      const wish = {
        id,
        body: given as PluginConfig<Body>,
        found,
        expected,
        now: Date.now(),
        by: ctx.state.principal,
      };
      const { version, shown } = await make(auditActor(ctx), wish);
      if (version !== undefined) return sendVersion(ctx, version, shown);
      ctx.set('cache-control', 'no-store');
      ctx.body = shown;
    },
  };
  if (!cli) return { route, run };
  const id = { ...table.command.id, ...(cli.id !== undefined && { summary: cli.id }) };
  return { route, run, subcommand: changeSubcommand(VERBS[word] ?? word, isNew ? [] : [id], cli, run) };
}

function changeSubcommand<Body extends Schema, Shown extends object>(
  name: string,
  ids: readonly Argument[],
  cli: NonNullable<Change<unknown, VersionTag, Body, Shown>['cli']>,
  change: ChangeAction<PluginConfig<Body>, Shown>['run'],
): Subcommand {
  const { read = () => ({}) as PluginConfig<Body> } = cli;
  return {
    name,
    summary: cli.summary,
    args: [...ids, ...(cli.args ?? [])],
    ...(cli.options && { options: cli.options }),
    async run(input) {
      const shown = await change(input.actor, input.args[0] ?? '', await read(input));
      const intro = cli.intro?.(shown, input);
      if (intro !== undefined) input.io.note(intro);
      input.io.result(shown, cli.text(shown, input));
    },
  };
}

function idOf(
  { params }: Pick<RouteContext<unknown>, 'params'>,
  { id }: Pick<Resource<unknown, VersionTag>, 'id'>,
): string {
  return params[id] ?? '';
}

/** Reads an option with a text. */
export function textOf(options: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

function readLimit(
  text: string | undefined,
  { first, most }: { readonly first: number; readonly most: number },
): number {
  if (text === undefined) return first;
  if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= most) return Number(text);
  throw new GatewayError('invalid_request', `--limit must be a whole number from 1 to ${most}.`, { param: 'limit' });
}

/** Request body with the reason for blocking. */
export const REASON_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    reason: {
      type: 'string',
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Reason, shown to operators.',
    },
  },
} as const;

/** Command line option with the reason. */
export const REASON_OPTION: CommandOption = { flags: '--reason <text>', summary: 'reason, shown to operators' };

/** Reads {@link REASON_OPTION}. */
export function readReason({ options }: Pick<CommandInput, 'options'>): PluginConfig<typeof REASON_BODY> {
  const reason = textOf(options, 'reason');
  if (reason === undefined) return {};
  if (reason.length <= 200 && !/\p{Cc}/u.test(reason)) return { reason };
  throw new GatewayError('invalid_request', '--reason must be one line of at most 200 characters.', {
    param: 'reason',
  });
}
