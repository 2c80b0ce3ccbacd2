import { DEFINITIONS } from '../contract/definitions.ts';
import { isObject } from '../contract/json.ts';
import { didYouMean } from '../contract/nearest.ts';
import { API_VERSION, PERMISSIONS, PLUGIN_KINDS, type Plugin, type PluginKind } from '../contract/plugin.ts';
import { findMistakes } from './check-definition.ts';

/** Failure to import a plugin. The message continues a sentence that begins with its position in the configuration. */
export class PluginImportError extends Error {
  override readonly name = 'PluginImportError';
  readonly hint: string | undefined;

  constructor(message: string, hint?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.hint = hint;
  }
}

/** Hint on the section of each kind of plugin. */
const SECTIONS: Readonly<Record<string, string>> = Object.freeze({
  provider: 'Add it under "providers".',
  auth: 'Add it under "auth".',
  agent: 'Add it under "agents".',
  tts: 'Add it under "tts".',
  policy: 'Add it under "policies", or in "plugins" if it needs no options.',
  store: 'Set it as "store: { plugin: … }".',
  secrets: 'Add it under "secrets".',
});

const isFunction = (value: unknown): boolean => typeof value === 'function';
const isListOf = (value: unknown, fits: (each: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(fits);
const isName = (value: unknown): boolean => typeof value === 'string' && value !== '';

/**
 * Checks of a definition's members, with an example. Otherwise a wrong member would be noticed late, without its
 * plugin's name, or never.
 */
const MEMBERS: readonly (readonly [name: keyof Plugin, noun: string, fits: (value: unknown) => boolean, as: string])[] =
  [
    ['configSchema', 'JSON schema of an object', isSchemaOfObjects, "{ type: 'object', properties: { … } }"],
    [
      'hosts',
      'list of hosts without scheme and path',
      (value) => isListOf(value, (host) => /^(?:\[[\da-f:.]+\]|[^\s/:?#@[\]]+)(?::\d{1,5})?$/i.test(String(host))),
      "['api.example.com', 'localhost:8080']",
    ],
    ['provides', 'list of names', (value) => isListOf(value, isName), "['clock']"],
    ['requires', 'list of names of plugins', (value) => isListOf(value, isName), "['accounts']"],
    [
      'permissions',
      `list of permissions (${PERMISSIONS.join(', ')})`,
      (value) => isListOf(value, (each) => PERMISSIONS.some((known) => known === each)),
      `['${PERMISSIONS[0]}']`,
    ],
    [
      'commands',
      'list of commands with name and summary',
      (value) => isListOf(value, (each) => isObject(each) && isName(each['name']) && isName(each['summary'])),
      "[{ name: 'greet', summary: 'Greets' }]",
    ],
    [
      'credentials',
      'list of kinds of credentials (key, token, session)',
      (value) => isListOf(value, (each) => each === 'key' || each === 'token' || each === 'session'),
      "['token']",
    ],
    ['isCredential', 'function', isFunction, "(text) => text.startsWith('team-')"],
    ['secrets', 'function', isFunction, '(config, context) => ({ read: (reference) => … })'],
    ['check', 'function', isFunction, '(config, context) => []'],
    ['processes', 'number of processes', (value) => value === 'one' || value === 'many', "'one', or 'many'"],
    ['section', 'name of a section', isName, "'limits'"],
  ];

/** Valid plugin names; an instance has the name in the configuration. */
const PLUGIN_NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** Throws a {@link PluginImportError} for anything but a plugin of that kind and this API version. */
export function assertPlugin(value: unknown, spec: string, kind: PluginKind): asserts value is Plugin {
  const fail = (message: string, hint?: string) => new PluginImportError(`"${spec}" ${message}`, hint);
  if (!isObject(value)) {
    const hint = 'Export default definePlugin({ … }).';
    if (typeof value === 'function')
      throw fail('is not a plugin: its default export is a function', `${hint} Call it there.`);
    throw fail('is not a plugin: its default export is missing or not an object', hint);
  }
  const { name, apiVersion, setup } = value;
  if (typeof name !== 'string' || name === '')
    throw fail('is not a plugin: it has no "name"', "Write name: 'my-plugin'.");
  if (!Number.isSafeInteger(apiVersion) || Number(apiVersion) < API_VERSION) throw fail(...explainVersion(apiVersion));
  if (!PLUGIN_NAME.test(name))
    throw fail(`has the invalid name "${name.slice(0, 60)}"`, 'Use kebab-case: at most 40 of a to z, 0 to 9 and "-".');
  if (!PLUGIN_KINDS.some((known) => known === value['kind'])) {
    const hint = `${didYouMean(String(value['kind']), PLUGIN_KINDS, 1) ?? ''} Kinds are ${PLUGIN_KINDS.join(', ')}.`;
    throw fail(`is of the unknown kind "${String(value['kind'])}"`, hint.trim());
  }
  if (value['kind'] !== kind)
    throw fail(`is a ${String(value['kind'])} plugin, not a ${kind} plugin`, SECTIONS[String(value['kind'])]);
  if (!isFunction(setup)) throw fail('is not a plugin: it has no "setup" function', 'Write setup(api, config) { … }.');
  for (const [member, noun, fits, as] of MEMBERS)
    if (value[member] !== undefined && !fits(value[member]))
      throw fail(
        `has an invalid "${member}"${show(value[member])}, which must be a ${noun}`,
        `Write ${member}: ${as}.`,
      );
  // Members of a newer contract only cause a warning at set-up.
  for (const { message, hint, isForeign } of findMistakes(value, DEFINITIONS.plugin))
    if (!isForeign || Number(apiVersion) === API_VERSION) throw fail(message, hint);
}

/** Formats a short text or list for a message. */
function show(value: unknown): string {
  return typeof value === 'string' || Array.isArray(value) ? ` ${JSON.stringify(value).slice(0, 80)}` : '';
}

/** Explains a wrong API version, with a hint. */
function explainVersion(version: unknown): readonly [message: string, hint: string] {
  if (typeof version !== 'number')
    return [
      `has ${version === undefined ? 'no' : 'a wrong'} "apiVersion"`,
      `Write apiVersion: ${API_VERSION}, a number.`,
    ];
  return [
    `uses plugin API ${version}, but this gateway supports ${API_VERSION}`,
    'Install a version of the plugin or of Tollgate with a matching API version.',
  ];
}

/** True for a JSON schema of type object; `null` may be allowed too, for a section that can be disabled. */
function isSchemaOfObjects(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { type = 'object' } = schema;
  return [type].flat().includes('object');
}
