import {
  type Announcement,
  type AuditPage,
  type AuditQuery,
  type Command,
  type CommandInput,
  type ErrorBody,
  GatewayError,
  type HookFunctions,
  isGatewayError,
  type Principal,
  type Route,
  type Store,
  toGatewayError,
} from '../../../contract/index.ts';
import type { LogLine } from '../log.ts';
import { type ConfiguredPlugin, type FakeOptions, type Registered, registerPlugins } from './fake-api.ts';
import { fakeIo } from './fake-io.ts';
import { configAjv } from './with-defaults.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface Sent {
  readonly bearer?: string;
  readonly apiKey?: string;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
}

/** Plugins on a store without a core: their registrations, and the steps that core performs with them. */
export interface FakeGateway {
  readonly routes: readonly Route[];
  readonly announcements: readonly Announcement[];
  readonly logs: readonly LogLine[];
  authenticate(credential: string, options?: { bearer?: boolean; now?: number }): Promise<Principal>;
  request(method: Route['method'], path: string, sent?: Sent): Promise<Reply>;
  /** Runs a command as the command line does; returns stdout and stderr. */
  run(
    line: readonly string[],
    options?: CommandInput['options'],
  ): Promise<{ out: string; json: unknown; talk: string }>;
  /** Audit log of changes. */
  audit(query: AuditQuery): Promise<AuditPage>;
  ready(): Promise<void>;
  close(): Promise<void>;
}

const ACTOR = Object.freeze({ via: 'cli', userId: 'operator' });

/** Sets the plugins up in order. */
export async function setUpPlugins(
  store: Store,
  plugins: readonly ConfiguredPlugin[],
  options: FakeOptions = {},
): Promise<FakeGateway> {
  const registered = await registerPlugins(store, plugins, options);
  const { routes, commands, announcements, log, audit, readies, closes } = registered;
  return {
    routes,
    announcements,
    logs: log.lines,
    authenticate: (credential, { bearer = true, now = Date.now() } = {}) =>
      authenticate(registered, authRequest(credential, bearer, now)),
    async request(method, path, sent = {}) {
      try {
        return await handle(registered, method, path, sent);
      } catch (thrown) {
        if (!isGatewayError(thrown)) throw thrown;
        const error = toGatewayError(thrown);
        return { status: error.status, headers: error.headers, body: error.toBody() satisfies ErrorBody };
      }
    },
    run: (line, flags = {}) => runCommand(commands, line, flags),
    audit: audit.list,
    async ready() {
      for (const ready of readies) await ready();
    },
    async close() {
      for (const close of closes) await close();
    },
  };
}

type AuthRequest = Parameters<HookFunctions['authenticate']>[0];

async function authenticate({ hooks }: Registered, request: AuthRequest): Promise<Principal> {
  const ordered = (['pre', undefined, 'post'] as const).flatMap((order) =>
    hooks.filter((hook) => hook.order === order),
  );
  for (const { handler } of ordered) {
    const principal = await handler(request);
    if (principal) return principal;
  }
  throw new GatewayError('invalid_api_key', 'Unknown credential.');
}

async function handle(registered: Registered, method: string, path: string, sent: Sent): Promise<Reply> {
  const { routes } = registered;
  const route = routes.find((each) => each.method === method && each.path === path);
  if (!route) throw new GatewayError('unknown_url', 'No route has this path.');
  const credential = sent.bearer ?? sent.apiKey;
  if (credential === undefined) throw new GatewayError('missing_api_key', 'No credential came.');
  const principal = await authenticate(registered, authRequest(credential, sent.bearer !== undefined, Date.now()));
  if (route.auth !== 'none' && !(route.auth as readonly string[]).includes(principal.credential)) {
    throw new GatewayError('invalid_api_key', 'This route takes another kind of credential.');
  }
  const { permission } = route;
  if (permission && principal.credential === 'token' && !principal.permissions?.includes(permission)) {
    throw new GatewayError('permission_denied', `The token lacks the permission ${permission}.`);
  }
  if (sent.body !== undefined || !route.bodyOptional) check(route.body, sent.body);
  check(route.query, sent.query ?? {});

  const headers: Record<string, string> = {};
  const ctx = {
    state: {
      ip: '192.0.2.7',
      principal,
      body: sent.body,
      requestId: 'request',
      signal: new AbortController().signal,
    },
    querystring: new URLSearchParams({ ...sent.query }).toString(),
    params: {},
    status: 200,
    body: undefined,
    set: (name: string, value: string) => void Object.assign(headers, { [name.toLowerCase()]: value }),
  };
  await route.handler(ctx as never);
  return { status: ctx.status, headers, body: JSON.parse(JSON.stringify(ctx.body)) };
}

async function runCommand(
  commands: readonly Command[],
  [name, sub, ...args]: readonly string[],
  flags: CommandInput['options'],
): ReturnType<FakeGateway['run']> {
  const subcommand = commands.find((each) => each.name === name)?.subcommands?.find((each) => each.name === sub);
  if (!subcommand) throw new Error(`no command ${name} ${sub}`);
  let out = '';
  let json: unknown;
  let talk = '';
  const io = fakeIo({
    write(bytes) {
      out += String(bytes);
    },
    result(value, text) {
      json = JSON.parse(JSON.stringify(value));
      out += text;
    },
    note(text) {
      talk += `${text}\n`;
    },
  });
  await subcommand.run({ args, options: flags, io, signal: new AbortController().signal, actor: ACTOR });
  return { out, json, talk };
}

function authRequest(credential: string, bearer: boolean, now: number): AuthRequest {
  const rawBody = async () => new Uint8Array();
  const beforeLookup = () => undefined;
  return {
    credential,
    bearer,
    now,
    method: 'POST',
    path: '/',
    headers: {},
    address: '127.0.0.1',
    rawBody,
    beforeLookup,
  };
}

function check(schema: object | undefined, value: unknown): void {
  if (!schema) {
    if (value !== undefined && Object.keys(value as object).length > 0) {
      throw new GatewayError('invalid_request', 'Nothing is taken here.');
    }
    return;
  }
  const validate = configAjv.compile(schema);
  if (!validate(value)) throw new GatewayError('invalid_request', configAjv.errorsText(validate.errors));
}
