import type { PluginInstance } from '../../config/core-schema.ts';
import type { LoadedConfig } from '../../config/load-config.ts';
import { createRedactor, createSecretFilter, listSecrets } from '../../config/redact.ts';
import { isGatewayError } from '../../contract/errors.ts';
import { WRITE_FIELDS } from '../../contract/log-fields.ts';
import type { Log } from '../../contract/plugin.ts';

type Redact = (text: string) => string;

/**
 * Redaction of the texts of each instance, by its name: one for each running configuration that has it. A process may have several
 * gateways, and a former configuration runs on until its calls have ended.
 */
const redactors = new Map<string, readonly Redact[]>();

const NONE: readonly Redact[] = Object.freeze([]);

/** Maximum depth of errors' causes and of fields of log lines that are searched. */
const MAX_DEPTH = 6;

/**
 * Adds the secrets of a configuration to those that texts of its instances may not contain. Texts of third-party plugins may also
 * contain nothing with the form of a credential. Returns a function that removes them, for the end of the configuration.
 */
export function addSecrets({ config, builtins }: Pick<LoadedConfig, 'config' | 'builtins'>): () => void {
  const secrets = (): readonly string[] => listSecrets(config);
  const [ofBuiltins, ofThirdParties] = [createSecretFilter(secrets), createRedactor(secrets)];
  const isBuiltin = ({ kind, plugin }: PluginInstance): boolean =>
    builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin);
  const own = new Map(
    [config.store, ...config.instances].map((each) => [each.name, isBuiltin(each) ? ofBuiltins : ofThirdParties]),
  );
  for (const [name, redact] of own) redactors.set(name, [...(redactors.get(name) ?? []), redact]);
  return () => {
    for (const [name, redact] of own) {
      const others = (redactors.get(name) ?? []).filter((each) => each !== redact);
      if (others.length > 0) redactors.set(name, others);
      else redactors.delete(name);
    }
  };
}

/** Removes secrets from a text of a plugin. */
export function redactText(owner: string, text: string): string {
  let shown = text;
  for (const redact of redactors.get(owner) ?? NONE) shown = redact(shown);
  return shown;
}

/** Removes secrets from an error of a plugin. Returns the error itself if it has none, otherwise a copy. */
export function redactError<T>(owner: string, error: T): T {
  if (!redactors.has(owner) || !(error instanceof Error)) return error;
  return withoutSecrets(error, (text) => redactText(owner, text), MAX_DEPTH, false);
}

/** Creates a plugin's log: secrets in its lines are redacted. */
export function redactLog(owner: string, log: Log): Log {
  const redact: Redact = (text) => redactText(owner, text);
  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object, message?: string): void => {
      const shown = redactValue(fields, redact, MAX_DEPTH) as object;
      if (message === undefined) log[level](shown);
      else log[level](shown, redact(message));
    };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => redactLog(owner, log.child(redactValue(fields, redact, MAX_DEPTH) as object)),
    // Lines with fixed fields, such as the access log, pass unchanged.
    ...(WRITE_FIELDS in log && { [WRITE_FIELDS]: (log[WRITE_FIELDS] as (...args: unknown[]) => void).bind(log) }),
  };
}

/** Replaces secrets in all texts of a value. Returns the value itself if there are none. */
function redactValue(value: unknown, redact: Redact, depth: number): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null || depth === 0) return value;
  if (value instanceof Error) return withoutSecrets(value, redact, depth, true);
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON();
    const shown = redactValue(json, redact, depth - 1);
    return shown === json ? value : shown;
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => redactValue(item, redact, depth - 1));
    return items.some((item, at) => item !== value[at]) ? items : value;
  }
  let copy: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const shown = redactValue(member, redact, depth - 1);
    if (shown === member) continue;
    copy ??= { ...value };
    copy[name] = shown;
  }
  return copy ?? value;
}

/** Copies an error without secrets. Skips the stack of an unchanged error for a caller: formatting it is slow. */
function withoutSecrets<T extends Error>(error: T, redact: Redact, depth: number, isLogged: boolean): T {
  const changed: Record<string, unknown> = {};
  const names = ['message', 'cause', ...Object.keys(error)];
  for (const name of names) {
    const value = Reflect.get(error, name) as unknown;
    const shown = redactValue(value, redact, depth - 1);
    if (shown !== value) changed[name] = shown;
  }
  const isForCaller = isGatewayError(error) && !isLogged;
  if (!isForCaller || Object.keys(changed).length > 0) {
    const stack = redactValue(error.stack, redact, 1);
    if (stack !== error.stack) changed['stack'] = stack;
  }
  if (Object.keys(changed).length === 0) return error;
  const copy = Object.create(Object.getPrototypeOf(error), Object.getOwnPropertyDescriptors(error)) as T;
  for (const [name, value] of Object.entries(changed))
    Object.defineProperty(copy, name, {
      value,
      configurable: true,
      writable: true,
      enumerable: Object.prototype.propertyIsEnumerable.call(error, name),
    });
  return copy;
}
