import { execFile, fork } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import { parseDocument } from 'yaml';
import { GROUP_NAMES, GROUPS, INSTANCE_NAME } from '../config/core-schema.ts';
import { LOAD_TIMEOUT_MS } from '../config/deadline.ts';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import { IS_SOURCE } from '../config/package-root.ts';
import { type RawConfig, readRawConfig } from '../config/read.ts';
import { isObject, parseJson } from '../contract/json.ts';
import type { Plugin } from '../contract/plugin.ts';
import { connect } from '../egress/http-client.ts';
import { trySetUp } from './check-config.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, describeError, EXIT, type Terminal } from './io.ts';
import { HERE } from './load.ts';
import { quietLog } from './program-log.ts';

const run = promisify(execFile);

/** Time limit of one npm command, and the largest output it may write. */
const NPM_MS = 300_000;
const NPM_BYTES = 10_000_000;

/**
 * Install scripts of packages do not run. Peer dependencies on `tollgate` are not installed: the running version is
 * used.
 */
const INSTALL: readonly string[] = Object.freeze([
  ...['install', '--ignore-scripts', '--legacy-peer-deps', '--install-links', '--save-exact'],
  ...['--no-audit', '--no-fund', '--loglevel=error'],
]);

/** Keyword that marks a package as a plugin. Packages that depend on tollgate count too. */
const KEYWORD = 'tollgate-plugin';

/** Scripts that npm runs by default. */
const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall', 'prepare'] as const;

type Manifest = Readonly<Record<string, unknown>>;

/** Declarations of a plugin, as data. */
type Definition = Omit<Plugin, 'setup' | 'check' | 'isCredential' | 'secrets'>;

interface Found {
  readonly name: string;
  readonly manifest: Manifest;
  readonly plugin: Definition;
  /** Facts about the package, shown before it is installed, by name. */
  readonly facts: Readonly<Record<string, string>>;
}

/**
 * `tollgate plugins add`: installs a package with npm, without its scripts, and adds it to the configuration. The
 * package is first inspected in a temporary folder; later failures are undone.
 */
export async function runAdd(context: CommandContext): Promise<void> {
  const { terminal, globals, args, options } = context;
  const spec = readSpec(args[0] ?? '');
  const given = readOptions(options['options']);
  const raw = await readRawConfig({ ...HERE, configPath: globals.config });
  const [file = raw.file] = raw.files;
  if (raw.isDefault)
    throw new CliError('there is no configuration file to add the plugin to', EXIT.config, 'Run: tollgate init');
  await loadConfig({ ...HERE, connect, configPath: file }); // problems that exist already are not caused by the plugin
  const found = await lookAt(spec);
  const place = placeFor(found.plugin, { raw, file }, options['as']);
  const io = createIo(terminal, globals.json === true);
  const text = Object.entries(found.facts).map(([name, fact]) => `  ${name.padEnd(13)}${fact}`);
  io.note(`${found.name} ${textOf(found.manifest['version']) ?? ''}\n${text.join('\n')}`);
  if (options['yes'] !== true) await confirmInstall(terminal, io.json, place.join('.'));
  await install({ spec, raw, file, found, place, value: { plugin: found.name, ...given } });
  const lines = `installed ${found.name}, and wrote ${place.join('.')} into ${raw.file}`;
  io.result(
    { package: found.name, version: found.manifest['version'], written: place, file: raw.file, ...found.facts },
    `${lines}\nNext: tollgate check, then start or reload the gateway`,
  );
}

/** Resolves a path to a package or its file from the current folder, whatever folder npm runs in. */
function readSpec(given: string): string {
  if (given === '' || given.startsWith('-') || /[\s\p{Cc}]/u.test(given))
    throw new CliError(
      `"${given}" is not a package`,
      EXIT.usage,
      'Use the form of npm install: tollgate-plugin-acme, @scope/name@1.2.3, ./file.tgz or a folder.',
    );
  return existsSync(given) ? path.resolve(given) : given;
}

function readOptions(text: unknown): Manifest {
  if (text === undefined) return {};
  const value = parseJson(String(text));
  if (isObject(value)) return value;
  throw new CliError(
    '--options is not a JSON object',
    EXIT.usage,
    `Example: --options '{"apiKey":"\${ACME_API_KEY}"}'.`,
  );
}

/**
 * Installs a package in a temporary folder and reads its metadata. Imports its code only if it declares itself a
 * plugin, and in a process without this one's environment and rights.
 */
async function lookAt(spec: string): Promise<Found> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-add-'));
  try {
    writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
    await npm([...INSTALL, '--prefix', folder, spec], folder);
    const { dependencies } = readJsonFile(path.join(folder, 'package.json'));
    const [name] = isObject(dependencies) ? Object.keys(dependencies) : [];
    if (name === undefined) throw new CliError(`npm installed nothing for "${spec}"`, EXIT.unexpected);
    const manifest = readJsonFile(path.join(folder, 'node_modules', name, 'package.json'));
    const refuse = (why: string, hint: string) => new CliError(`"${name}" ${why}`, EXIT.usage, hint);
    const isMarked = Array.isArray(manifest['keywords']) && manifest['keywords'].includes(KEYWORD);
    const peers = isObject(manifest['peerDependencies']) ? manifest['peerDependencies'] : {};
    if (!isMarked && !Object.hasOwn(peers, 'tollgate'))
      throw refuse(
        'is not a Tollgate plugin',
        `A plugin has the keyword "${KEYWORD}" or tollgate in its peerDependencies. No code of this package was run.`,
      );
    if (!/^(@[^/]+\/|tollgate-plugin-)/.test(name))
      throw refuse(
        'cannot be used in a configuration',
        'The package name must begin with tollgate-plugin- or have a scope.',
      );
    const plugin = await readPlugin(name, folder).catch((error: Error) => {
      throw refuse(`cannot be used: ${error.message}`, 'Build a folder before you add it: npm run build.');
    });
    const facts = await factsOf({ name, manifest, plugin, spec, folder });
    return { name, manifest, plugin, facts };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const READER = fileURLToPath(new URL(IS_SOURCE ? './read-package.ts' : './read-package.js', import.meta.url));

/** Rights of the process that reads a package: no child processes, no changes of files, no native code. The loader has a thread. */
function readerRights(): readonly string[] {
  // The loader of the sources needs all rights.
  if (IS_SOURCE) return process.execArgv;
  const flag = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
  return [flag, '--allow-fs-read=*', '--allow-worker', '--no-warnings'];
}

/** The other process has checked it. */
function isDefinition(value: unknown): value is Definition {
  return isObject(value) && typeof value['name'] === 'string';
}

/** Reads the definition of an installed package's plugin in a process of its own. */
function readPlugin(name: string, folder: string): Promise<Definition> {
  return new Promise((resolve, reject) => {
    const child = fork(READER, [name, folder], {
      cwd: folder,
      env: {},
      execArgv: [...readerRights()],
      timeout: LOAD_TIMEOUT_MS,
      killSignal: 'SIGKILL',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.on('error', reject);
    child.on('message', (message) => {
      const { plugin, problem } = isObject(message) ? message : {};
      if (isDefinition(plugin)) resolve(plugin);
      else reject(new Error(textOf(problem) ?? 'its definition cannot be read'));
    });
    child.on('exit', (_code, signal) =>
      reject(
        new Error(
          signal === null
            ? 'it ended the process that imported it'
            : `its import did not finish within ${LOAD_TIMEOUT_MS / 1000} s`,
        ),
      ),
    );
  });
}

interface Staged extends Omit<Found, 'facts'> {
  readonly spec: string;
  readonly folder: string;
}

/** Collects the facts that an operator needs before confirming. */
async function factsOf({ name, manifest, plugin, spec, folder }: Staged): Promise<Found['facts']> {
  const lock = readJsonFile(path.join(folder, 'package-lock.json'))['packages'];
  const packages = isObject(lock) ? Object.keys(lock).filter((place) => place !== '').length : 0;
  const scripts = isObject(manifest['scripts']) ? manifest['scripts'] : {};
  const skipped = INSTALL_SCRIPTS.filter((script) => Object.hasOwn(scripts, script));
  const properties = isObject(plugin.configSchema) ? (plugin.configSchema as Manifest)['properties'] : undefined;
  const options = Object.entries(isObject(properties) ? properties : {});
  const urls = options.filter(([, schema]) => isObject(schema) && schema['format'] === 'url').map(([option]) => option);
  const secrets = options
    .filter(([, schema]) => isObject(schema) && schema['secret'] === true)
    .map(([option]) => option);
  const list = (names: readonly string[] | undefined): string => names?.join(', ') || 'none';
  return {
    what: textOf(manifest['description']) ?? 'no description',
    plugin: `${plugin.kind} "${plugin.name}", plugin API ${plugin.apiVersion}`,
    licence: textOf(manifest['license']) ?? 'not specified',
    from: path.isAbsolute(spec) ? spec : `npm registry, as ${spec}`,
    provenance: path.isAbsolute(spec) ? 'unknown for a file' : await findProvenance(name, textOf(manifest['version'])),
    packages: packages === 1 ? 'only this package' : `this package and ${packages - 1} dependencies`,
    scripts: skipped.length > 0 ? `not run: ${skipped.join(', ')}` : 'none',
    hosts: [...(plugin.hosts ?? []), ...urls.map((option) => `host of the option ${option}`)].join(', ') || 'none',
    permissions: list(plugin.permissions),
    credentials: list([...(plugin.credentials ?? []), ...secrets.map((option) => `option ${option}`)]),
    together: `provides ${list(plugin.provides)}; requires ${list(plugin.requires)}`,
    commands: list(plugin.commands?.map((command) => command.name)),
    rights: 'runs in the gateway’s process with all its rights',
  };
}

/** Reads the registry's attestation of how a release was built. */
async function findProvenance(name: string, version: string | undefined): Promise<string> {
  const words = ['view', `${name}@${version ?? 'latest'}`, 'dist.attestations', '--json', '--loglevel=error'];
  const said = await npm(words, os.tmpdir()).then(parseJson, () => undefined);
  if (said === undefined) return 'none: the registry has no build attestation';
  const { provenance, url } = isObject(said) ? said : {};
  const type = isObject(provenance) ? textOf(provenance['predicateType']) : undefined;
  return `attested (${type ?? 'unknown type'}); verify it with npm audit signatures${url ? `: ${textOf(url)}` : ''}`;
}

interface Target {
  readonly raw: RawConfig;
  /** Absolute path of the configuration file. */
  readonly file: string;
}

/** Returns the path of keys at which the configuration gets the plugin. Throws if that path is taken. */
function placeFor({ kind, name }: Definition, { raw, file }: Target, as: unknown): readonly string[] {
  const source = readFileSync(file, 'utf8');
  if (kind === 'store') {
    if (/(^|[{,\s])["']?store["']?\s*:/m.test(source))
      throw new CliError(
        `${raw.file} already has a store`,
        EXIT.usage,
        'Data of one store is not in another. Install the package with npm and set store: { plugin: … } yourself.',
      );
    return ['store'];
  }
  const group = GROUP_NAMES.find((each) => GROUPS[each].kind === kind);
  const instance = typeof as === 'string' ? as : name;
  if (group === undefined || !INSTANCE_NAME.test(instance))
    throw new CliError(`"${instance}" is not a valid instance name`, EXIT.usage, 'Set another name with --as.');
  const members = raw.value[group];
  if (isObject(members) && Object.hasOwn(members, instance))
    throw new CliError(`${raw.file} already has ${group}.${instance}`, EXIT.usage, 'Set another name with --as.');
  return [group, instance];
}

async function confirmInstall({ err, isTty }: Terminal, json: boolean, place: string): Promise<void> {
  if (json || !isTty || process.stdin.isTTY !== true)
    throw new CliError(
      'nothing was installed: there is no terminal to confirm it',
      EXIT.usage,
      'Check the facts above, then add --yes.',
    );
  const reader = createInterface({ input: process.stdin, output: err });
  const reply = await reader.question(`Install it and add ${place} to the configuration? [y/N] `);
  reader.close();
  if (!/^y(es)?$/i.test(reply.trim())) throw new CliError('nothing was installed', EXIT.usage);
}

interface Work extends Target {
  readonly spec: string;
  readonly found: Found;
  readonly place: readonly string[];
  readonly value: Manifest;
}

/** Installs next to the configuration, writes it and checks it. Restores the previous files on any failure. */
async function install({ spec, raw: { baseDir }, file, found, place, value }: Work): Promise<void> {
  const text = writeInto(file, readFileSync(file, 'utf8'), place, value);
  const kept = [file, path.join(baseDir, 'package.json'), path.join(baseDir, 'package-lock.json')].map(keepFile);
  const isNew = !existsSync(path.join(baseDir, 'node_modules', found.name));
  try {
    // Without a package.json here, npm uses one in a parent folder.
    if (!existsSync(path.join(baseDir, 'package.json')))
      writeFileSync(path.join(baseDir, 'package.json'), '{\n  "private": true\n}\n');
    await npm([...INSTALL, '--prefix', baseDir, spec], baseDir);
    writeFileSync(file, text);
    const loaded = await loadConfig({ ...HERE, connect, configPath: file });
    assertSame(found, loaded, place);
    await trySetUp(loaded, quietLog());
  } catch (error) {
    if (isNew)
      await npm(
        ['uninstall', '--prefix', baseDir, '--ignore-scripts', '--legacy-peer-deps', found.name],
        baseDir,
      ).catch(() => undefined);
    for (const putBack of kept) putBack();
    const { hint } = error instanceof CliError ? error : { hint: 'Set its required options with --options.' };
    throw new CliError(`${found.name} was not added: ${describeError(error).join('\n')}`, EXIT.config, hint);
  }
}

/** Members of a definition that were shown before the operator agreed. */
const SHOWN = ['name', 'kind', 'apiVersion', 'hosts', 'permissions', 'credentials', 'provides', 'requires'] as const;

/** Refuses a plugin that declares something else than it did before it was installed. */
function assertSame({ name, plugin }: Found, { config, plugins }: LoadedConfig, place: readonly string[]): void {
  const at = [config.store, ...config.instances].findIndex(({ pointer }) => pointer === `/${place.join('/')}`);
  const installed = plugins[at];
  const other = installed && SHOWN.find((member) => !isDeepStrictEqual(installed[member], plugin[member]));
  if (!installed || other === undefined) return;
  throw new CliError(
    `"${name}" declares other ${other} than before it was installed: ${JSON.stringify(installed[other] ?? null)}`,
    EXIT.config,
    'Do not use this package: its definition depends on where it runs.',
  );
}

/** Saves a file's content. The result restores it, or removes the file if it did not exist. */
function keepFile(file: string): () => void {
  const text = existsSync(file) ? readFileSync(file) : undefined;
  return () => (text === undefined ? rmSync(file, { force: true }) : writeFileSync(file, text));
}

/** Returns the configuration's text with one value added; comments are preserved. */
function writeInto(file: string, text: string, place: readonly string[], value: Manifest): string {
  const isManifest = path.basename(file) === 'package.json';
  const keys = isManifest ? ['tollgate', ...place] : place;
  if (/\.ya?ml$/.test(file)) {
    const document = parseDocument(text);
    for (const depth of keys.slice(0, -1).keys()) {
      const above = keys.slice(0, depth + 1);
      if (document.getIn(above) == null) document.setIn(above, document.createNode({}));
    }
    document.setIn(keys, document.createNode(value));
    return document.toString({ lineWidth: 0 });
  }
  if (!file.endsWith('.json'))
    throw new CliError(
      `${path.basename(file)} is a program, which cannot be edited automatically`,
      EXIT.usage,
      `Run npm install and add ${place.join('.')}: ${JSON.stringify(value)} yourself.`,
    );
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? 2;
  return `${JSON.stringify(setIn(parseJson(text), keys, value), null, indent)}\n`;
}

/** Copies a value and sets another one at a path of keys. */
function setIn(whole: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  const members = isObject(whole) ? whole : {};
  return { ...members, [key]: setIn(members[key], rest, value) };
}

interface NpmFailure {
  readonly code?: unknown;
  /** True when the time limit ended it. */
  readonly killed?: boolean;
  readonly stderr?: string;
}

/** Runs npm and resolves with its stdout. Rejects with npm's own message. */
async function npm(words: readonly string[], cwd: string): Promise<string> {
  const program = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  try {
    return (await run(program, words, { cwd, timeout: NPM_MS, maxBuffer: NPM_BYTES })).stdout;
  } catch (error) {
    const { code, killed, stderr = '' } = error as NpmFailure;
    if (code === 'ENOENT')
      throw new CliError('npm is not installed', EXIT.unavailable, 'Install npm, which comes with Node.');
    if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
      throw new CliError(
        `npm printed more than ${NPM_BYTES / 1e6} MB and was stopped`,
        EXIT.unavailable,
        'Check `npm config get registry` and the package.',
      );
    if (killed)
      throw new CliError(
        `npm took longer than ${NPM_MS / 60_000} minutes and was stopped`,
        EXIT.unavailable,
        'Check the network and try again.',
      );
    const said = stderr.split('\n').filter((line) => /^npm (error|ERR!) (?!A complete log|code )/.test(line));
    const reason = said
      .slice(0, 3)
      .map((line) => line.replace(/^npm (error|ERR!) /, ''))
      .join(' ');
    throw new CliError(
      `npm failed: ${reason || 'unknown reason'}`,
      EXIT.unavailable,
      'Check the name and the network.',
    );
  }
}

function readJsonFile(file: string): Manifest {
  const value = existsSync(file) ? parseJson(readFileSync(file, 'utf8')) : undefined;
  return isObject(value) ? value : {};
}

/** Reduces untrusted text to one line of at most 200 characters. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.replace(/\p{Cc}/gu, ' ').slice(0, 200) : undefined;
}
