import type { Json } from '../contract/json.ts';
import type { FaultAt } from './faults.ts';
import { GROUP_NAMES, GROUPS, type Group, INSTANCE_NAME } from './groups.ts';
import type { Lookup } from './interpolate.ts';
import { interpolateTree } from './interpolate-tree.ts';
import { nearest } from './nearest.ts';
import { childPointer } from './pointer.ts';
import type { InstanceRef } from './types.ts';

/** A plugin's name as the loader knows it. */
export interface BuiltinName {
  readonly kind: InstanceRef['kind'];
  readonly name: string;
}

/** An instance as the file has it, before interpolation. */
export interface RawInstance extends InstanceRef {
  readonly value: { readonly [key: string]: Json };
}

type JsonMap = { readonly [key: string]: Json };

/**
 * The plugins that a configuration names, in its own order, and the faults of naming: impossible names, plugins that
 * do not exist. `false` switches one off; the built-in policies are on without being named and come first.
 */
export function listInstances(
  value: JsonMap,
  builtins: readonly BuiltinName[],
  lookup: Lookup,
): { readonly instances: readonly RawInstance[]; readonly faults: readonly FaultAt[] } {
  const faults: FaultAt[] = [];
  const named = Object.entries(value).flatMap(([section, members]) => {
    if (section === 'plugins') return listPlugins(members, lookup, faults);
    return isGroup(section) && isMap(members) ? listGroup(section, members, lookup, faults) : [];
  });
  faults.push(...misspeltSwitches(value, builtins));
  return { instances: [...implicitPolicies(value, builtins), ...named], faults };
}

/** A built-in policy whose name is misspelt where it is switched off would stay on, and nobody would know. */
function misspeltSwitches({ policies }: JsonMap, builtins: readonly BuiltinName[]): readonly FaultAt[] {
  if (!isMap(policies)) return [];
  const known = builtins.filter(({ kind }) => kind === 'policy').map(({ name }) => name);
  return Object.keys(policies).flatMap((name): readonly FaultAt[] => {
    const near = policies[name] === false && !known.includes(name) ? nearest(name, known) : [];
    if (near.length === 0) return [];
    const pointer = childPointer('/policies', name);
    const message = 'switches off a policy that is not there';
    return [{ pointer, atKey: true, message, hint: `Did you mean "${near[0]}"?` }];
  });
}

/** Built-in policies that the file does not mention. */
function implicitPolicies(value: JsonMap, builtins: readonly BuiltinName[]): readonly RawInstance[] {
  const mentioned = value['policies'];
  return builtins
    .filter(({ kind, name }) => kind === 'policy' && !(isMap(mentioned) && Object.hasOwn(mentioned, name)))
    .map(({ kind, name }) => ({
      group: 'policies',
      kind,
      name,
      plugin: name,
      pointer: `/policies/${name}`,
      value: {},
    }));
}

function listPlugins(members: Json | undefined, lookup: Lookup, faults: FaultAt[]): readonly RawInstance[] {
  if (!Array.isArray(members)) return [];
  return members.flatMap((spec: Json, index): readonly RawInstance[] => {
    const pointer = `/plugins/${index}`;
    const plugin = readSpec(spec, pointer, lookup, faults);
    return plugin ? [{ group: 'plugins', kind: 'policy', name: plugin, plugin, pointer, value: {} }] : [];
  });
}

function listGroup(group: Group, members: JsonMap, lookup: Lookup, faults: FaultAt[]): readonly RawInstance[] {
  const { kind, noun } = GROUPS[group];
  return Object.entries(members).flatMap(([name, member]): readonly RawInstance[] => {
    const pointer = childPointer(`/${group}`, name);
    if (!INSTANCE_NAME.test(name)) {
      const message = `is not a name that a ${noun} can have`;
      const hint = `Use 1 to 63 of a-z, 0-9, ".", "_" and "-"${/[./@]/.test(name) ? ', and name the package or path with "plugin:"' : ''}.`;
      faults.push({ pointer, atKey: true, message, hint });
      return [];
    }
    if (member === false) return [];
    if (member !== true && member !== null && !isMap(member)) {
      faults.push({ pointer, message: 'must be a map of options, true or false' });
      return [];
    }
    const { plugin: spec = name, ...value } = isMap(member) ? member : {};
    const plugin = readSpec(spec, childPointer(pointer, 'plugin'), lookup, faults);
    return plugin ? [{ group, kind, name, plugin, pointer, value }] : [];
  });
}

/** What to import, with its references replaced. */
function readSpec(spec: Json, pointer: string, lookup: Lookup, faults: FaultAt[]): string | undefined {
  if (typeof spec !== 'string' || spec === '') {
    faults.push({ pointer, message: 'must be text: the name of a built-in plugin, an npm package or a path' });
    return undefined;
  }
  const tree = interpolateTree(spec, { type: 'string' }, pointer, lookup);
  faults.push(...tree.faults);
  return typeof tree.value === 'string' ? tree.value : undefined;
}

function isGroup(section: string): section is Group {
  return (GROUP_NAMES as readonly string[]).includes(section);
}

function isMap(value: Json | undefined): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
