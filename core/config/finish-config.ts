import type { Schema } from '../contract/json.ts';
import { parseDuration } from '../contract/units.ts';
import type { CheckedSection } from './check-section.ts';
import { CORE_SCHEMA } from './core-schema.ts';
import type { RawInstance } from './instances.ts';
import { maskSecrets } from './mask.ts';
import type { RawConfig } from './read.ts';
import { parseSize } from './size.ts';
import type { GatewayConfig, LoggingConfig, PluginInstance, ServerConfig } from './types.ts';

export interface CheckedInstance {
  readonly instance: RawInstance;
  /** The schema its options were checked by. */
  readonly schema: Schema;
  readonly section: CheckedSection;
}

/** `server:` as the schema leaves it: every default applied, texts still texts. */
interface ServerTexts {
  readonly host: string;
  readonly port: number;
  readonly bodyLimit: string | number;
  readonly requestTimeout: string;
  readonly drainTimeout: string;
  readonly drainDelay: string;
  readonly keepAlive: string;
  readonly sseKeepAlive: string;
  readonly maxConnections: number;
  readonly cors: ServerConfig['cors'];
  readonly workers: ServerConfig['workers'];
  readonly trustProxy: boolean | number;
}

type CoreTexts = Pick<GatewayConfig, 'plans' | 'billing'> & {
  readonly server: ServerTexts;
  readonly logging: LoggingConfig;
  readonly models: Readonly<Record<string, string | readonly string[]>>;
  readonly defaultPlan?: string;
};

/** Makes the configuration out of sections without faults: units converted, aliases made lists, all frozen. */
export function finishConfig(
  raw: RawConfig,
  core: CheckedSection,
  store: CheckedInstance,
  instances: readonly CheckedInstance[],
): GatewayConfig {
  const value = core.value as unknown as CoreTexts;
  const aliases = Object.entries(value.models).map(([name, target]) => [name, [target].flat()] as const);
  return deepFreeze({
    file: raw.file,
    isDefault: raw.isDefault,
    baseDir: raw.baseDir,
    server: readServer(value.server),
    logging: value.logging,
    store: readInstance(store),
    models: dictionary(aliases),
    plans: dictionary(Object.entries(value.plans)),
    defaultPlan: value.defaultPlan,
    billing: value.billing,
    instances: instances.map(readInstance),
    printable: () => printConfig(core, instances),
    sources: new Map([core, ...instances.map(({ section }) => section)].flatMap(({ sources }) => [...sources])),
  });
}

function readInstance({ instance: { value: _raw, ...ref }, section }: CheckedInstance): PluginInstance {
  return { ...ref, config: section.value };
}

function readServer(server: ServerTexts): ServerConfig {
  return {
    host: server.host,
    port: server.port,
    bodyLimitBytes: parseSize(server.bodyLimit),
    requestTimeoutMs: parseDuration(server.requestTimeout),
    drainTimeoutMs: parseDuration(server.drainTimeout),
    drainDelayMs: parseDuration(server.drainDelay),
    keepAliveMs: parseDuration(server.keepAlive),
    sseKeepAliveMs: parseDuration(server.sseKeepAlive),
    maxConnections: server.maxConnections,
    cors: server.cors,
    workers: server.workers,
    trustProxy: Number(server.trustProxy),
  };
}

/** The whole as a file would say it, secrets masked; a value out of a file (`${file:…}`) counts as secret. */
function printConfig(core: CheckedSection, instances: readonly CheckedInstance[]): Readonly<Record<string, unknown>> {
  const mask = ({ value, sources }: CheckedSection, schema: Schema, pointer: string): Record<string, unknown> => {
    const isFromFile = (at: string): boolean => sources.get(at)?.includes('file ') === true;
    return maskSecrets(value, schema, pointer, isFromFile) as Record<string, unknown>;
  };
  const groups: Record<string, Record<string, unknown>> = {};
  for (const { instance, schema, section } of instances) {
    const { group, name, plugin, pointer } = instance;
    if (group === 'plugins') continue;
    const shown = { ...(plugin !== name && { plugin }), ...mask(section, schema, pointer) };
    groups[group] = { ...groups[group], [name]: shown };
  }
  const { $schema: _schema, ...shared } = mask(core, CORE_SCHEMA, '');
  return { ...shared, ...groups };
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
