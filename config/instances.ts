import { isObject, type Json } from '../contract/json.ts';
import { nearest } from '../contract/nearest.ts';
import { childPointer, type ProblemAt } from '../contract/pointers.ts';
import { findGroup, GROUP_NAMES, GROUPS, type Group, INSTANCE_NAME, type InstanceRef } from './core-schema.ts';
import { interpolateTree, type Lookup } from './interpolate.ts';

/** Plugin name known to the loader. */
export type BuiltinName = Pick<InstanceRef, 'kind' | 'name'> & {
  readonly isOptIn?: boolean;
  readonly bySection?: string;
};

/** Instance as written in the file, before interpolation. */
export interface RawInstance extends InstanceRef {
  readonly value: Json;
}

type JsonMap = { readonly [key: string]: Json };

/**
 * Lists the configured plugins in the order of the file, with naming problems: invalid names, plugins that do not
 * exist. `false` disables a plugin. Built-in plugins that are on by default and not mentioned come first.
 */
export function listInstances(
  value: JsonMap,
  builtins: readonly BuiltinName[],
  lookup: Lookup,
): { readonly instances: readonly RawInstance[]; readonly problems: readonly ProblemAt[] } {
  const problems: ProblemAt[] = [];
  const named = Object.entries(value).flatMap(([section, members]): readonly RawInstance[] => {
    if (section === 'plugins') return listPlugins(members, lookup, problems);
    const row = findGroup(section);
    return row && isObject(members) ? listGroup(row.group, members, lookup, problems) : [];
  });
  const isOff = ({ isOptIn, bySection }: BuiltinName): boolean =>
    isOptIn === true || (bySection !== undefined && (value[bySection] ?? false) === false);
  const implicit = GROUP_NAMES.flatMap((group) => listImplicit(group, value[group], builtins, isOff, problems));
  return { instances: [...implicit, ...named], problems };
}

/** Lists built-in plugins of a group that are on by default and not mentioned in the file. */
function listImplicit(
  group: Group,
  members: Json | undefined,
  builtins: readonly BuiltinName[],
  isOff: (builtin: BuiltinName) => boolean,
  problems: ProblemAt[],
): readonly RawInstance[] {
  const row = findGroup(group);
  if (!row?.isOn) return [];
  const mentioned = isObject(members) ? members : {};
  const names = builtins.filter(({ kind }) => kind === row.kind).map(({ name }) => name);
  for (const [name, member] of Object.entries(mentioned)) {
    // Without this check, a misspelt name with `false` would silently leave the plugin on.
    const [near] = member === false && !names.includes(name) ? nearest(name, names) : [];
    if (near === undefined) continue;
    const message = `disables ${/^[aeiou]/.test(row.noun) ? 'an' : 'a'} ${row.noun} that does not exist`;
    problems.push({ pointer: childPointer(`/${group}`, name), atKey: true, message, hint: `Did you mean "${near}"?` });
  }
  return builtins
    .filter((each) => each.kind === row.kind && !isOff(each) && !Object.hasOwn(mentioned, each.name))
    .map(({ name }) => name)
    .map((name) => ({ group, kind: row.kind, name, plugin: name, pointer: `/${group}/${name}`, value: {} }));
}

function listPlugins(members: Json | undefined, lookup: Lookup, problems: ProblemAt[]): readonly RawInstance[] {
  if (!Array.isArray(members)) return [];
  return members.flatMap((spec: Json, index): readonly RawInstance[] => {
    const pointer = `/plugins/${index}`;
    const plugin = readSpec(spec, pointer, lookup, problems);
    return plugin ? [{ group: 'plugins', kind: 'policy', name: plugin, plugin, pointer, value: {} }] : [];
  });
}

function listGroup(
  group: Group,
  members: Readonly<Record<string, Json>>,
  lookup: Lookup,
  problems: ProblemAt[],
): readonly RawInstance[] {
  const { kind, noun } = GROUPS[group];
  return Object.entries(members).flatMap(([name, member]): readonly RawInstance[] => {
    const pointer = childPointer(`/${group}`, name);
    if (!INSTANCE_NAME.test(name)) {
      const message = `is not a valid ${noun} name`;
      const hint = `Use 1 to 63 of a-z, 0-9, ".", "_" and "-"${/[./@]/.test(name) ? ', and set the package or path as "plugin:"' : ''}.`;
      problems.push({ pointer, atKey: true, message, hint });
      return [];
    }
    if (member === false) return [];
    const options = member === true || member === null ? {} : member;
    if (!isObject(options)) {
      problems.push({ pointer, message: 'must be a map of options, true or false' });
      return [];
    }
    const { plugin: spec = name, ...value } = options as JsonMap;
    const plugin = readSpec(spec, childPointer(pointer, 'plugin'), lookup, problems);
    return plugin ? [{ group, kind, name, plugin, pointer, value }] : [];
  });
}

/** Reads the import target and replaces its references. */
function readSpec(spec: Json, pointer: string, lookup: Lookup, problems: ProblemAt[]): string | undefined {
  if (typeof spec !== 'string' || spec === '') {
    problems.push({ pointer, message: 'must be text: the name of a built-in plugin, an npm package or a path' });
    return undefined;
  }
  const tree = interpolateTree(spec, { type: 'string' }, pointer, lookup);
  problems.push(...tree.problems);
  return typeof tree.value === 'string' ? tree.value : undefined;
}
