import type { ErrorObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Schema } from '../contract/json.ts';
import type { Route } from '../contract/plugin.ts';
import { PluginFault } from '../plugins/registry.ts';

/** The first fault of a body or query; undefined when it has none. */
export type Validate = (value: unknown) => ErrorObject | undefined;

/** Makes what checks the bodies and queries of routes. */
export interface RouteValidators {
  /** Throws a PluginFault, now or at the first request, for a schema that does not compile. */
  create(schema: Schema, owner: string, route: Route, what: 'body' | 'query'): Validate;
  /** Compiles what nobody has asked for yet, one in each turn of the event loop. */
  compileRest(): Promise<void>;
}

export interface RouteValidatorOptions {
  /** Schemas that others refer to by their `$id`. */
  readonly schemas: readonly Schema[];
  /**
   * For schemas that the tests of this package have compiled: they are not checked, and not compiled before they are
   * needed, which takes Ajv and a quarter of the time out of the start.
   */
  readonly areKnownGood?: boolean;
}

export function createRouteValidators({ schemas, areKnownGood = false }: RouteValidatorOptions): RouteValidators {
  let ajv = areKnownGood ? undefined : createAjv(schemas, true);
  const waiting: (() => void)[] = [];

  function compile(schema: Schema, owner: string, route: Route, what: string): ValidateFunction {
    try {
      ajv ??= createAjv(schemas, false);
      return ajv.compile(schema);
    } catch (cause) {
      const message = `the ${what} schema of ${route.method} ${route.path} does not compile: ${(cause as Error).message}`;
      throw new PluginFault(owner, message, { cause });
    }
  }

  return {
    create(schema, owner, route, what) {
      let compiled: ValidateFunction | undefined;
      const ready = (): ValidateFunction => (compiled ??= compile(schema, owner, route, what));
      if (areKnownGood) waiting.push(ready);
      else ready();
      return (value) => {
        const validate = compiled ?? ready();
        return validate(value) ? undefined : validate.errors?.[0];
      };
    },
    async compileRest() {
      for (const ready of waiting.splice(0)) {
        await new Promise(setImmediate);
        ready();
      }
    },
  };
}

function createAjv(schemas: readonly Schema[], validateSchema: boolean): Ajv2020 {
  // `ownProperties`: a `required` name such as `constructor` must not be satisfied by a prototype.
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    validateSchema,
    allErrors: false,
    ownProperties: true,
    coerceTypes: false,
    allowUnionTypes: true,
    validateFormats: false,
  });
  for (const schema of schemas) ajv.addSchema(schema);
  return ajv;
}
