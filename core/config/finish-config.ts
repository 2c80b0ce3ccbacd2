import { readBudget } from '../contract/budgets.ts';
import { isObject, type JsonObject, type Schema } from '../contract/json.ts';
import { parseDuration, parseSize } from '../contract/units.ts';
import type { CoreValues, GatewayConfig, InstanceRef, PluginInstance, ServerConfig } from './core-schema.ts';
import { createLookup, type Lookup } from './interpolate.ts';
import { readModelRoute, targetNames } from './model-routes.ts';
import { type ProblemAt, pointerKeys } from './problems.ts';
import type { RawConfig } from './read.ts';
import { planOf } from './read-plan.ts';
import { mapLeaves } from './schema-at.ts';
import { readTls } from './tls.ts';

/** A part of the configuration that one schema describes, checked. */
export interface Section {
  readonly pointer: string;
  readonly schema: Schema;
  /** Interpolated, with defaults. Meaningless when there are problems. */
  readonly value: unknown;
  readonly problems: readonly ProblemAt[];
  readonly sources: ReadonlyMap<string, string>;
}

export interface CheckedInstance extends Section {
  readonly ref: InstanceRef;
  /** The top-level key that holds its options. */
  readonly section?: string | undefined;
}

/** Makes the configuration out of sections without problems: units converted, aliases made lists, all frozen. */
export function finishConfig(
  raw: RawConfig,
  core: Section,
  store: CheckedInstance,
  instances: readonly CheckedInstance[],
): GatewayConfig {
  const { file, isDefault, baseDir } = raw;
  const { server, logging, models, plans, defaultPlan, budgets, tags, billing, audit } = core.value as CoreValues;
  const routes = Object.entries(models).map(([name, alias]) => [name, readModelRoute(alias)] as const);
  return deepFreeze({
    file,
    isDefault,
    baseDir,
    server: readServer(server, createLookup(raw)),
    logging,
    store: readInstance(store),
    models: dictionary(routes.map(([name, route]) => [name, targetNames(route)] as const)),
    routes: dictionary(routes),
    plans: dictionary(Object.entries(plans).map(([name, plan]) => [name, planOf(plan)] as const)),
    defaultPlan,
    budgets: budgets.map(readBudget),
    tags: dictionary(Object.entries(tags)) as GatewayConfig['tags'],
    billing,
    auditKeepForMs: parseDuration(audit.keepFor),
    instances: instances.map(readInstance),
    printable: () => printConfig(core, instances, mask),
    plain: () => printConfig(core, instances, ({ value }) => value),
    sources: new Map([core, ...instances].flatMap(({ sources }) => [...sources])),
  });
}

function readInstance({ ref, value }: CheckedInstance): PluginInstance {
  return { ...ref, config: value as PluginInstance['config'] };
}

function readServer(
  {
    bodyLimit,
    requestTimeout,
    drainTimeout,
    drainDelay,
    keepAlive,
    sseKeepAlive,
    idempotency,
    trustProxy,
    tls,
    ...rest
  }: CoreValues['server'],
  files: Lookup,
): ServerConfig {
  return {
    ...rest,
    ...(tls !== undefined && { tls: readTls(tls, files) }),
    bodyLimitBytes: parseSize(bodyLimit),
    requestTimeoutMs: parseDuration(requestTimeout),
    drainTimeoutMs: parseDuration(drainTimeout),
    drainDelayMs: parseDuration(drainDelay),
    keepAliveMs: parseDuration(keepAlive),
    sseKeepAliveMs: parseDuration(sseKeepAlive),
    idempotency: { keepForMs: parseDuration(idempotency.keepFor), maxBytes: parseSize(idempotency.maxSize) },
    trustProxy: Number(trustProxy),
  };
}

/** A section without its secrets; a value out of a file (`${file:…}`) counts as one. */
function mask({ value, schema, pointer, sources }: Section): unknown {
  return maskSecrets(value, schema, pointer, (at) => sources.get(at)?.includes('file ') === true);
}

/** The whole as a file would say it. */
function printConfig(
  core: Section,
  instances: readonly CheckedInstance[],
  show: (section: Section) => unknown,
): JsonObject {
  const groups: Record<string, JsonObject> = {};
  const sections: JsonObject = {};
  for (const { ref, section, ...checked } of instances) {
    if (ref.group === 'plugins') continue;
    const options = show(checked);
    if (section !== undefined && options !== null) sections[section] = options;
    const shown = section === undefined && isObject(options) ? options : {};
    const plugin = ref.plugin === ref.name ? {} : { plugin: ref.plugin };
    groups[ref.group] = { ...groups[ref.group], [ref.name]: { ...plugin, ...shown } };
  }
  const own = show(core);
  const { $schema: _schema, ...shared } = isObject(own) ? own : {};
  return { ...shared, ...groups, ...sections };
}

/** A record without a prototype: callers look names up in it that strangers send, such as `constructor`. */
function dictionary<T>(entries: readonly (readonly [string, T])[]): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), Object.fromEntries(entries));
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}

const MASK = '****';
/** Names that hold secrets whatever their schema says, such as a header `authorization` or an adapter's `password`. */
const SECRET_NAME = /authorization|password|passwd|secret|token$|api-?_?key|credential|cookie|pepper|private-?_?key/i;
const SECRET_PARAMETER = /([?&][^=&#]*(?:password|secret|token|key|auth)[^=&#]*=)[^&#\s]*/gi;

/**
 * A copy in which secrets read `****`: what the schema calls secret, texts that are named like one, values of headers,
 * passwords in URLs, and every pointer that `isHidden` names. `pointer` is where the value stands.
 */
export function maskSecrets(
  value: unknown,
  schema: Schema,
  pointer = '',
  isHidden: (pointer: string) => boolean = () => false,
): unknown {
  return mapLeaves(value, schema, pointer, (leaf, at) => {
    if (leaf === null) return leaf;
    if (at.isInSecret || isHidden(at.pointer)) return MASK;
    if (typeof leaf !== 'string') return leaf;
    const keys = pointerKeys(at.pointer);
    // Headers carry keys under any name.
    return SECRET_NAME.test(keys.at(-1) ?? '') || keys.slice(0, -1).includes('headers') ? MASK : maskUrl(leaf);
  });
}

/** Hides user and password in a URL, and parameters named like secrets. */
export function maskUrl(text: string): string {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)(.*)$/is.exec(text);
  if (!match) return text;
  const [, scheme = '', authority = '', rest = ''] = match;
  const parameters = rest.replace(SECRET_PARAMETER, `$1${MASK}`);
  const at = authority.lastIndexOf('@');
  if (at !== -1) return `${scheme}${MASK}${authority.slice(at)}${parameters}`;
  // A password with an unescaped slash: what stands before it looks like a port that is none.
  const isBroken = /:(?!\d*$)/.test(authority.replace(/^\[.*\]/, '')) && rest.includes('@');
  return isBroken
    ? `${scheme}${MASK}${parameters.slice(parameters.lastIndexOf('@'))}`
    : scheme + authority + parameters;
}
