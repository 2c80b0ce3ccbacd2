import { stringify } from 'yaml';
import { composeSchema } from '../config/compose-schema.ts';
import { createConfigError, formatProblem } from '../config/problems.ts';
import { listenWarnings } from '../config/warnings.ts';
import { probeStore } from '../plugins/foundation.ts';
import { type LoadedConfig, readBuiltinSchemas, readSchema } from '../plugins/load-config.ts';
import type { CommandContext } from './commands.ts';
import { createIo, formatTable } from './io.ts';
import { loadFor, withGeneration } from './load.ts';
import { createLogger, quietLog } from './logger.ts';
import { trySetUp } from './trial.ts';

/**
 * `tollgate check`: all problems of the configuration at once, with file, line and column, and what a start would refuse beside
 * them. Nothing is opened or called, but the store with `--connect`.
 */
export async function checkConfig(context: CommandContext): Promise<void> {
  const loaded = await loadFor(context);
  const { config, raw } = loaded;
  await trySetUp(loaded, quietLog());
  const store = context.options['connect'] === true ? await probe(loaded) : undefined;
  const io = createIo(context.terminal, context.globals.json === true);
  const warnings = createConfigError(listenWarnings(config.server), raw).problems.map(formatProblem);
  for (const warning of warnings) io.note(`warning: ${warning}`);
  const names = config.instances.map(({ group, name }) => `${group}.${name}`);
  io.result(
    { file: config.file, plugins: names, warnings, ...(store !== undefined && { store }) },
    `${config.file} is fine: ${names.length} plugins${store === undefined ? '' : `; the store ${config.store.name} can be used: ${store}`}`,
  );
}

/** `tollgate config print`: what counts, with defaults and where values come from; secrets are masked. */
export async function printConfig(context: CommandContext): Promise<void> {
  const { config } = await loadFor(context);
  const io = createIo(context.terminal, context.globals.json === true);
  const sources = Object.fromEntries(config.sources);
  io.result(
    { file: config.file, config: config.printable(), sources },
    `# ${config.file}\n${stringify(config.printable()).trimEnd()}`,
  );
}

/** `tollgate config schema`: the JSON Schema of every built-in plugin and of this configuration's own, for editors. */
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

/** `tollgate plugins`: every plugin that the configuration loads, and where it comes from. */
export async function listPlugins(context: CommandContext): Promise<void> {
  const { config, builtins } = await loadFor(context);
  const rows = config.instances.map(({ kind, name, plugin }) => ({
    kind,
    name,
    plugin,
    source: builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin) ? 'built in' : 'yours',
  }));
  const table = formatTable(
    ['KIND', 'NAME', 'PLUGIN', 'SOURCE'],
    rows.map(({ kind, name, plugin, source }) => [kind, name, plugin, source]),
  );
  createIo(context.terminal, context.globals.json === true).result(rows, table);
}

/** `tollgate providers`: what is configured, and what each still needs. */
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
    const table = formatTable(
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

/** `tollgate openapi`: the document that a gateway of this configuration serves under `/openapi.json`. */
export async function printOpenApi({ terminal, globals }: CommandContext): Promise<void> {
  const log = createLogger({ level: 'warn', format: 'auto', isTerminal: terminal.isTty, destination: process.stderr });
  const { createGateway } = await import('../app.ts');
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
  return (await probeStore(loaded, quietLog())) ?? 'its plugin cannot tell more without opening it';
}
