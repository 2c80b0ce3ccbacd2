import { stringify } from 'yaml';
import { composeSchema } from '../config/compose-schema.ts';
import { type LoadedConfig, readBuiltinSchemas, readSchema } from '../config/load-config.ts';
import type { HedgeRule, ModelRoute } from '../config/model-routes.ts';
import type { Principal, Target } from '../contract/call.ts';
import type { ChatMessage } from '../contract/chat.ts';
import { describeAge } from '../contract/model-ends.ts';
import { type TargetRow, targetRows } from '../contract/target-rows.ts';
import { timeoutsFor } from '../core/calls/failover.ts';
import type { Generation } from '../core/calls/generation.ts';
import { createId } from '../core/calls/ids.ts';
import { probeStore } from '../core/plugins/foundation.ts';
import { targetsOfRequest } from '../models/catalog.ts';
import { loadModelTable } from '../models/model-table.ts';
import { inspectConfig } from './check-config.ts';
import { type ControlReply, callGateways } from './cluster/control.ts';
import { formatChange } from './config-diff.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, EXIT, fitTable, type Terminal } from './io.ts';
import { loadFor, withGeneration } from './load.ts';
import { createProgramLog, quietLog } from './program-log.ts';

/**
 * `tollgate check`: reports all problems of the configuration at once, with file, line and column, and those that would
 * stop a start. Opens and calls nothing, except the store with `--connect`.
 */
export async function checkConfig(context: CommandContext): Promise<void> {
  const loaded = await loadFor(context);
  const { config } = loaded;
  const warnings = await inspectConfig(loaded);
  const store = context.options['connect'] === true ? await probe(loaded) : undefined;
  const io = createIo(context.terminal, context.globals.json === true);
  for (const warning of warnings) io.note(`warning: ${warning}`);
  const names = config.instances.map(({ group, name }) => `${group}.${name}`);
  const { date: prices } = loadModelTable();
  io.result(
    { file: config.file, plugins: names, warnings, prices, ...(store !== undefined && { store }) },
    `${config.file} is valid: ${names.length} plugins, prices of ${describeAge(prices)}${store === undefined ? '' : `; the store ${config.store.name} is usable: ${store}`}`,
  );
}

/**
 * `tollgate config print`: prints the effective configuration with defaults and the source of each value; secrets are
 * masked.
 */
export async function printConfig(context: CommandContext): Promise<void> {
  const { config } = await loadFor(context);
  const io = createIo(context.terminal, context.globals.json === true);
  const sources = Object.fromEntries(config.sources);
  io.result(
    { file: config.file, config: config.printable(), sources },
    `# ${config.file}\n${stringify(config.printable()).trimEnd()}`,
  );
}

/**
 * `tollgate config schema`: prints the JSON Schema of the built-in plugins and of those in this configuration, for
 * editors.
 */
export async function printSchema(context: CommandContext): Promise<void> {
  const { plugins, config, builtins } = await loadFor(context);
  const own = [config.store, ...config.instances].flatMap(({ kind, plugin: name }, at) => {
    const plugin = plugins[at];
    const isBuiltin = builtins.some((builtin) => builtin.kind === kind && builtin.name === name);
    return plugin && !isBuiltin ? [readSchema(plugin, name)] : [];
  });
  const schema = composeSchema([...(await readBuiltinSchemas(builtins)), ...own]);
  context.terminal.out.write(`${JSON.stringify(schema, null, 2)}\n`);
}

/** `tollgate models providers`: lists configured providers, and settings that are missing. */
export async function listProviders(context: CommandContext): Promise<void> {
  await withGeneration(context, async ({ registry, loaded }) => {
    const operations = ['chat', ...registry.operations.keys()];
    const offers = [...registry.offers.values()];
    const has = (name: string, operation: string): boolean =>
      offers.some(({ owner, value }) => owner === name && value.operation === operation);
    const rows = [...registry.offersOf('chat')].map(([name, value]) => {
      const plugin =
        loaded.config.instances.find((instance) => instance.group === 'providers' && instance.name === name)?.plugin ??
        name;
      const { credential } = value;
      const isReady = !credential?.required || credential.value !== undefined;
      return {
        name,
        plugin,
        state: isReady ? 'ready' : 'no key',
        ...(!isReady && credential.env !== undefined && { usually_from: credential.env }),
        has: operations.filter((operation) => has(name, operation)),
      };
    });
    const table = fitTable(
      context.terminal,
      ['PROVIDER', 'PLUGIN', 'STATE', 'HAS'],
      rows.map(({ name, plugin, state, usually_from: env, has: own }) => [
        name,
        plugin,
        env === undefined ? state : `${state} (${env})`,
        own.join(', '),
      ]),
    );
    createIo(context.terminal, context.globals.json === true).result(rows, table);
  });
}

/** `tollgate config openapi`: prints the document that a gateway with this configuration serves at `/openapi.json`. */
export async function printOpenApi({ terminal, globals }: CommandContext): Promise<void> {
  const log = createProgramLog({
    level: 'warn',
    format: 'auto',
    isTerminal: terminal.isTty,
    destination: process.stderr,
  });
  const { createGateway } = await import('../core/app.ts');
  const gateway = await createGateway({
    cwd: process.cwd(),
    env: process.env,
    configPath: globals.config,
    host: '127.0.0.1',
    port: 0,
    log,
  });
  await gateway.close();
  terminal.out.write(`${JSON.stringify(gateway.openApi, null, 2)}\n`);
}

async function probe(loaded: LoadedConfig): Promise<string> {
  return (await probeStore(loaded, quietLog())) ?? 'its plugin reports no details without opening it';
}

/** `tollgate models explain <model>`: shows the targets of a model's calls, and why. */
export async function explainModel(context: CommandContext): Promise<void> {
  const [model = ''] = context.args;
  await withGeneration(context, async (generation) => {
    const { deps, catalog } = generation;
    const { aliases } = deps;
    const { targets, alias } = targetsOfRequest({ catalog, aliases }, model);
    const route = alias === undefined ? undefined : deps.routes.get(alias);
    const rows = await Promise.all(targets.map((target) => describeTarget(generation, target, route, targets.length)));
    const rules = {
      model,
      found_as:
        alias !== undefined ? 'alias' : model.startsWith(`${targets[0]?.provider}/`) ? 'provider/model' : 'bare name',
      strategy: targets.length < 2 ? 'only one' : (route?.strategy ?? 'fallback'),
      ...(route && route.strategy !== 'fallback' && { sticky: route.sticky }),
      ...(route?.hedge && targets.length > 1 && { hedge: describeHedge(route.hedge) }),
    };
    const table = fitTable(
      context.terminal,
      [
        'TARGET',
        'ORDER',
        'WEIGHT',
        'WHEN',
        'STATE',
        'IN USD/M TOKENS',
        'OUT USD/M TOKENS',
        'CONTEXT TOKENS',
        'FIRST TOKEN MS',
        'WHOLE MS',
      ],
      rows.map((row) => [
        row.target,
        String(row.order ?? ''),
        String(row.weight ?? ''),
        row.when,
        row.state,
        String(row.input ?? 'unknown'),
        String(row.output ?? 'unknown'),
        String(row.context_window ?? 'unknown'),
        String(row.first_token_ms),
        String(row.whole_ms),
      ]),
    );
    const words = Object.entries(rules).map(([name, value]) => `${name.replace('_', ' ')}: ${value}`);
    createIo(context.terminal, context.globals.json === true).result(
      { ...rules, targets: rows },
      `${words.join(', ')}\n${table}`,
    );
  });
}

function describeHedge({ after, maxExtra }: HedgeRule): string {
  return `after ${after === 'p95' ? after : `${after} ms`} for at most ${Number((maxExtra * 100).toFixed(3))} % of calls`;
}

async function describeTarget(
  { deps, catalog }: Generation,
  target: Target,
  route: ModelRoute | undefined,
  of: number,
) {
  const name = `${target.provider}/${target.model}`;
  const row = route?.targets.find(({ to }) => to === name);
  const info = catalog.find(target.provider, target.model);
  const price = catalog.priceOf(target, info);
  const timeouts = deps.partsOf('chat').offers.get(target.provider)?.timeouts;
  const timeoutsOf = (stream: boolean) =>
    timeoutsFor(timeouts, route?.timeouts, { request: {}, stream }, of > 1, false);
  const { shared } = deps.routing;
  const isOpen = shared && ((await shared.isOpen(name)) || (await shared.isOpen(target.provider)));
  return {
    target: name,
    ...(row && { order: row.order, weight: row.weight }),
    when:
      !row && route ? 'prompt too long for the others' : row?.onlyWhenCheaper ? 'cheaper than the others' : 'always',
    state: !catalog.isConfigured(target.provider) ? 'no key' : isOpen ? 'open' : 'closed',
    ...(price && { input: price.input, output: price.output }),
    ...(info?.contextWindow !== undefined && { context_window: info.contextWindow }),
    first_token_ms: timeoutsOf(true).firstTokenMs,
    whole_ms: timeoutsOf(false).firstByteMs,
  };
}

/** Calls every gateway on this configuration's data folder; throws if none runs there. */
async function callRunning<C extends 'targets' | 'status'>(
  context: CommandContext,
  command: C,
): Promise<readonly ControlReply<C>[]> {
  const { settings } = await loadFor(context);
  const replies = await callGateways(settings.dataDir, command);
  if (replies.length > 0) return replies;
  throw noGatewayError(settings.dataDir);
}

/** Error for a missing gateway, with what to do. */
export function noGatewayError(dataDir: string): CliError {
  return new CliError(
    `no running gateway of this configuration found on ${dataDir}`,
    EXIT.unavailable,
    'Run the command as the same user, on the same machine and with the same configuration as the gateway.',
  );
}

/**
 * `tollgate store status`: checks that every gateway on this configuration's data folder can write to its store. Exits
 * with 69 if one cannot.
 */
export async function runStatus(context: CommandContext): Promise<void> {
  const replies = await callRunning(context, 'status');
  const rows = replies.map(({ pid, stores }) => ({
    pid,
    processes: stores.length,
    store: stores.find((state) => state !== 'ok') ?? 'ok',
  }));
  const lines = rows.map(({ pid, processes, store }) => `process ${pid}: ${processes} serving, store ${store}`);
  createIo(context.terminal, context.globals.json === true).result(rows, lines.join('\n'));
  if (rows.some(({ processes, store }) => processes === 0 || store !== 'ok'))
    context.terminal.exitWith?.(EXIT.unavailable);
}

/**
 * `tollgate targets`: shows the target state of every gateway on this configuration's data folder, all workers
 * combined.
 */
export async function runTargets(context: CommandContext): Promise<void> {
  const replies = await callRunning(context, 'targets');
  createIo(context.terminal, context.globals.json === true).result(
    replies.map((reply) => ({ pid: reply.pid, targets: targetRows(reply), retries: reply.retries })),
    replies.map((reply) => describe(context.terminal, reply, Date.now())).join('\n\n'),
  );
}

const HEAD = [
  'TARGET',
  'STATE',
  'WHY',
  'RETRY IN S',
  'ERRORS %',
  'ATTEMPTS',
  'WHOLE MS',
  'FIRST TOKEN MS',
  'LAST ERROR',
];

function describe(terminal: Terminal, reply: ControlReply<'targets'>, now: number): string {
  const { running, allowed, refused } = reply.retries;
  const head = `process ${reply.pid}: ${running} of ${allowed} retries running, ${refused} rejected since the start`;
  const rows = targetRows(reply).map((row) => cellsOf(row, now));
  return `${head}\n${rows.length === 0 ? 'No target was tried yet.' : fitTable(terminal, HEAD, rows)}`;
}

function cellsOf(row: TargetRow, now: number): readonly string[] {
  const { target, state, cause, open_until: until, error_ratio: ratio, last_error: error } = row;
  const leftMs = until === undefined ? 0 : Math.max(Date.parse(until) - now, 0);
  return [
    ...[target, state, cause ?? '', leftMs === 0 ? '' : String(Math.ceil(leftMs / 1000))],
    ...[(ratio * 100).toFixed(1), String(row.attempts), numberOf(row.whole_ms), numberOf(row.first_token_ms)],
    error ? `${error.at} ${error.status ?? error.errno ?? error.class ?? ''} ${error.message}` : '',
  ];
}

function numberOf(ms: number | undefined): string {
  return ms === undefined ? '' : ms.toFixed(0);
}

/** Principal of the operator at the command line: no key, no allow-list, a separate account in the ledger. */
const OPERATOR: Principal = Object.freeze({ credential: 'key', userId: 'operator', account: 'operator' });

/**
 * `tollgate models chat`: sends one prompt through the pipeline of this configuration, and streams the response to
 * stdout.
 */
export async function runChat(context: CommandContext): Promise<void> {
  const { options, args, globals, terminal } = context;
  const [model = '', ...words] = args;
  const prompt = words.length === 0 || words.join(' ') === '-' ? await readStdin() : words.join(' ');
  if (prompt.trim() === '')
    throw new CliError('the prompt is missing', EXIT.usage, 'Add it after the model, or pipe it in.');
  const maxTokens = readCount(options['maxTokens']);
  const system = options['system'];
  const messages: ChatMessage[] = [
    ...(typeof system === 'string' ? [{ role: 'system', content: system } as const] : []),
    { role: 'user', content: prompt },
  ];
  const request = { model, messages, ...(maxTokens !== undefined && { max_tokens: maxTokens }) };

  await withGeneration(context, async ({ services }) => {
    const stop = new AbortController();
    process.once('SIGINT', () => stop.abort());
    const call = { principal: OPERATOR, requestId: createId('req_'), signal: stop.signal };
    if (globals.json || options['stream'] === false) {
      const response = await services.chat({ ...request, stream: false }, call);
      if ('choices' in response)
        createIo(terminal, globals.json === true).result(response, response.choices[0]?.message.content ?? '');
      return;
    }
    const chunks = await services.chat({ ...request, stream: true }, call);
    if (!(Symbol.asyncIterator in chunks)) return;
    for await (const chunk of chunks) terminal.out.write(chunk.choices[0]?.delta.content ?? '');
    terminal.out.write('\n');
  });
}

function readCount(text: string | boolean | undefined): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new CliError(`"${String(text)}" is not a number of tokens`, EXIT.usage);
  return count;
}

async function readStdin(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Type the message and end it with Ctrl-D:\n');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}

/**
 * `tollgate reload`: reloads every gateway on this configuration's data folder. With `--diff` it only shows the
 * changes. Exits with 3 if one of the gateways refuses.
 */
export async function runReload(context: CommandContext): Promise<void> {
  const { terminal, globals, options } = context;
  const isTrial = options['diff'] === true;
  // Configuration errors are reported here, with their positions; the running gateway is then not called.
  const { settings } = await loadFor(context);
  const replies = await callGateways(settings.dataDir, isTrial ? 'compare' : 'reload');
  if (replies.length === 0)
    throw new CliError(
      `no running gateway of this configuration found on ${settings.dataDir}`,
      EXIT.unavailable,
      'Run the command as the same user, on the same machine and with the same configuration as the gateway, or send it SIGHUP.',
    );
  const refused = replies.find(({ problem }) => problem !== undefined);
  if (refused)
    throw new CliError(
      `the gateway (process ${refused.pid}) rejected the configuration; the previous one stays active:\n${refused.problem ?? ''}`,
      EXIT.config,
    );
  createIo(terminal, globals.json === true).result(
    replies,
    replies.map((each) => describeReload(each, isTrial)).join('\n'),
  );
}

function describeReload({ pid, file, changes }: ControlReply<'reload'>, isTrial: boolean): string {
  const head = isTrial
    ? `process ${pid}: a reload of ${file} would change ${countOf(changes.length)}`
    : `process ${pid}: reloaded ${file}, ${countOf(changes.length)} changed`;
  return [head, ...changes.map((change) => `  ${formatChange(change)}`)].join('\n');
}

function countOf(changes: number): string {
  return changes === 0 ? 'nothing' : changes === 1 ? '1 place' : `${changes} places`;
}
