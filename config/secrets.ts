import type { SecretsReader } from '../contract/gateway.ts';
import { isObject, type Json } from '../contract/json.ts';
import { nearest } from '../contract/nearest.ts';
import type { Log, Plugin } from '../contract/plugin.ts';
import { sealPluginSchema } from './compose-schema.ts';
import { coreOptionsOf } from './core-schema.ts';
import { LOAD_TIMEOUT_MS, within } from './deadline.ts';
import { checkEgress, hostsOf, readEgress, readEnvironment } from './egress.ts';
import { type ImportOptions, importPlugin } from './import-plugin.ts';
import { listInstances, type RawInstance } from './instances.ts';
import { createLookup, interpolate, interpolateTree, type Lookup, type SecretText } from './interpolate.ts';
import { PluginImportError } from './plugin-definition.ts';
import type { Connect, RawConfig } from './read.ts';
import { validateValue } from './validate.ts';

/** Options to open secret managers. */
export interface SecretsOptions extends Omit<ImportOptions, 'kind'> {
  readonly connect?: Connect | undefined;
}

const SECTION = 'secrets';
/** Maximum references to secrets in one configuration. */
const MAX_SECRETS = 200;
const MAX_SECRET_BYTES = 64 * 1024;

/**
 * Reads new references such as `${vault:…}` from secret managers, before the configuration is checked. The values, or
 * the reasons why they are missing, are stored with the raw configuration. Managers without a reference are not opened.
 */
export async function fillSecrets(raw: RawConfig, options: SecretsOptions): Promise<void> {
  const wanted = listWanted(raw).filter((reference) => !raw.secrets.has(reference));
  if (wanted.length === 0) return;
  const managers = new Map(
    listInstances({ [SECTION]: raw.value[SECTION] ?? null }, [], createLookup(raw)).instances.map((each) => [
      each.name,
      each,
    ]),
  );
  const nameOf = (reference: string): string => reference.slice(0, reference.indexOf(':'));
  const names = [...new Set(wanted.map(nameOf))];
  await Promise.all(
    names.map(async (name) => {
      const own = wanted.filter((reference) => nameOf(reference) === name);
      const reader = await openManager(name, managers, raw, options);
      // After one timeout, the manager's other secrets are not awaited.
      let late: string | undefined;
      const onLate = (): Error => {
        late = `needs the secret manager "${name}", which did not respond within ${LOAD_TIMEOUT_MS / 1000} s`;
        return new Error(`no response within ${LOAD_TIMEOUT_MS / 1000} s`);
      };
      for (const reference of own.slice(0, MAX_SECRETS))
        raw.secrets.set(reference, await readSecret(late ?? reader, reference, name, onLate));
      for (const reference of own.slice(MAX_SECRETS))
        raw.secrets.set(reference, { problem: `exceeds the limit of ${MAX_SECRETS} secrets of "${name}"` });
    }),
  );
}

/** Reads all secrets again; undefined if none changed. Rejects if one is unreadable. */
export async function rereadSecrets(
  raw: RawConfig,
  options: SecretsOptions,
): Promise<RawConfig['secrets'] | undefined> {
  const next = { ...raw, secrets: new Map<string, SecretText>() };
  await fillSecrets(next, options);
  const failed = [...next.secrets.values()].find(({ problem }) => problem !== undefined);
  if (failed) throw new Error(failed.problem);
  const isSame = [...next.secrets].every(([reference, { text }]) => raw.secrets.get(reference)?.text === text);
  return isSame ? undefined : next.secrets;
}

/** Lists references to secret managers in a configuration, except those in the managers' own options. */
function listWanted(raw: RawConfig): readonly string[] {
  const found = new Set<string>();
  const lookup: Lookup = {
    ...createLookup(raw),
    secret(manager, name) {
      found.add(`${manager}:${name}`);
      return '';
    },
  };
  const visit = (value: Json): void => {
    if (typeof value === 'string') {
      if (value.includes('${')) interpolate(value, lookup);
    } else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) visit(member);
  };
  for (const [section, value] of Object.entries(raw.value)) if (section !== SECTION) visit(value);
  return [...found];
}

/** Opens a manager, or returns the reason for the failure. */
async function openManager(
  name: string,
  managers: ReadonlyMap<string, RawInstance>,
  raw: RawConfig,
  options: SecretsOptions,
): Promise<SecretsReader | string> {
  const instance = managers.get(name);
  if (!instance) {
    const [near] = nearest(name, [...managers.keys()]);
    const meant = near === undefined ? '' : `; did you mean "${near}"?`;
    return `needs the secret manager "${name}", which is not under "secrets"${meant}`;
  }
  const broken = `needs the secret manager "${name}", whose own configuration has an error`;
  const { connect } = options;
  if (!connect) return `needs the secret manager "${name}", which is not reachable from here`;
  try {
    const plugin = await importPlugin(instance.plugin, { ...options, kind: instance.kind });
    const read = readOptions(instance, plugin, raw);
    if (!read) return broken;
    if (!plugin.secrets) return `needs the secret manager "${name}", whose plugin does not read secrets`;
    const { config, rules } = read;
    const http = (hosts: readonly string[] = []) => connect(new Set([...hostsOf(plugin, config), ...hosts]), rules);
    return plugin.secrets(config, { baseDir: raw.baseDir, log: SILENT, http });
  } catch (error) {
    if (error instanceof PluginImportError) return broken;
    return `needs the secret manager "${name}", which cannot be opened: ${error instanceof Error ? error.message : 'unknown'}`;
  }
}

/** There is no log yet; failures are reported as configuration problems. */
const SILENT: Log = Object.freeze({
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => SILENT,
});

/** Reads the options of a manager; undefined if invalid, which the configuration check reports. */
function readOptions({ value, pointer, kind, plugin: name }: RawInstance, plugin: Plugin, raw: RawConfig) {
  const schema = { type: 'object', ...(plugin.configSchema ?? { additionalProperties: true }) };
  const lookup = createLookup({ ...raw, secrets: new Map() });
  const sealed = sealPluginSchema({ schema, kind });
  const tree = interpolateTree(value, sealed, pointer, lookup);
  const problems = validateValue(tree.value, sealed, {
    plugin: name,
    pointer,
    baseDir: raw.baseDir,
    isHidden: () => true,
  });
  if (tree.problems.length + problems.length > 0 || !isObject(tree.value)) return undefined;
  const ofCore = Object.keys(coreOptionsOf({ schema, kind }));
  const entries = Object.entries(tree.value);
  const own = Object.fromEntries(entries.filter(([option]) => ofCore.includes(option)));
  if (checkEgress(pointer, own, lookup).length > 0) return undefined;
  const config = Object.fromEntries(entries.filter(([option]) => !ofCore.includes(option)));
  return { config, rules: readEgress(own, readEnvironment(lookup.env), lookup) };
}

async function readSecret(
  reader: SecretsReader | string,
  reference: string,
  manager: string,
  onLate: () => Error,
): Promise<SecretText> {
  if (typeof reader === 'string') return { problem: reader };
  const fail = (why: string): SecretText => ({ problem: `needs the secret \${${reference}}, which ${why}` });
  try {
    const { text, againMs } = await within(reader.read(reference.slice(manager.length + 1)), LOAD_TIMEOUT_MS, onLate);
    if (typeof text !== 'string' || text === '') return fail('is empty');
    if (Buffer.byteLength(text) > MAX_SECRET_BYTES) return fail(`is larger than ${MAX_SECRET_BYTES / 1024} KiB`);
    return { text, ...(againMs !== undefined && againMs > 0 && { againMs }) };
  } catch (error) {
    return fail(`is unavailable: ${error instanceof Error ? error.message : 'unknown'}`);
  }
}
