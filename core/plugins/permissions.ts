import type { Services } from '../../contract/call.ts';
import type { Permission, Plugin, PluginApi } from '../../contract/plugin.ts';
import type { Offer } from '../../contract/provider.ts';
import { REDACTED } from '../../contract/secret-pattern.ts';
import { PluginError, type Registry } from './registry.ts';

/** Instance whose definition declares its permissions. */
interface Declared {
  readonly name: string;
  readonly plugin: Plugin;
}

/** Permissions that a plugin's definition declares. */
export interface Permit {
  has(permission: Permission): boolean;
  /** Throws if the permission is not declared; `what` describes the use. */
  assert(permission: Permission, what: string): void;
}

export function permit({ name, plugin: { kind, permissions = [] } }: Declared): Permit {
  // Auth plugins may always read credentials of callers.
  const has = (permission: Permission): boolean => permissions.includes(permission);
  return {
    has,
    assert(permission, what) {
      if (has(permission) || (permission === 'credentials' && kind === 'auth')) return;
      throw new PluginError(
        name,
        `uses ${what}, which its definition does not declare: permissions: ['${permission}']`,
      );
    },
  };
}

/** Returns the platform's `fetch`, limited to these hosts; undefined allows all. */
export function boundFetch(
  fetchAny: typeof fetch,
  hosts: () => ReadonlySet<string> | undefined,
  { name }: Pick<Declared, 'name'>,
): typeof fetch {
  return async (input, init) => {
    const known = hosts();
    const { host } = new URL(input instanceof Request ? input.url : input);
    if (known && !known.has(host))
      throw new PluginError(
        name,
        `fetches from ${host}, but its definition declares ${[...known].join(', ') || 'no host'}: hosts: ['${host}'], or permissions: ['hosts'] for hosts that are known only at run time`,
      );
    return await fetchAny(input, init);
  };
}

/** Returns the offers of instances without their secrets. */
export function withoutKeys<O extends Offer>(offers: ReadonlyMap<string, O>): ReadonlyMap<string, O> {
  return new Map(
    [...offers].map(([name, offer]) => {
      const { credential } = offer;
      const hidden = credential && {
        header: credential.header,
        required: credential.required,
        value: credential.value === undefined ? undefined : REDACTED,
      };
      // The methods of a class are not own properties of its objects.
      const shown = { credential: { value: hidden }, keys: { value: undefined }, headers: { value: undefined } };
      return [name, Object.freeze(Object.create(offer, shown) as O)];
    }),
  );
}

/** Services of plugins for each other. */
export function servicesApi(registry: Registry, { name, plugin }: Declared): Pick<PluginApi, 'provide' | 'require'> {
  return {
    provide(service: string, implementation: unknown) {
      if (!plugin.provides?.includes(service))
        throw new PluginError(
          name,
          `provides "${service}", which its definition does not declare: provides: ['${service}']`,
        );
      registry.claim(registry.services, 'service', service, name, implementation);
    },
    require<N extends keyof Services>(service: N): Services[N] {
      if (!plugin.requires?.includes(service))
        throw new PluginError(
          name,
          `requires "${service as string}", which its definition does not declare: requires: ['${service as string}']`,
        );
      const found = registry.services.get(service);
      if (!found) throw new PluginError(name, `requires "${service as string}", which no plugin provides`);
      // A service registered under a name has that name's type.
      return found.value as Services[N];
    },
  };
}
