/**
 * The TypeScript type of a JSON Schema written as a literal, for the keywords that plugin configurations and request bodies
 * use: type, properties, required, default, additionalProperties, items, enum, const, anyOf, oneOf. Others are `unknown`.
 * A property is there when it is required or has a default; the loader fills defaults in.
 *
 * Our own, because json-schema-to-ts takes 75 seconds to check one plugin here (docs/decisions/schema-types.md).
 */
export type FromSchema<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer A)[] }
      ? FromSchema<A>
      : S extends { readonly oneOf: readonly (infer O)[] }
        ? FromSchema<O>
        : S extends { readonly type: readonly (infer T)[] }
          ? FromType<T, S>
          : S extends { readonly type: infer T }
            ? FromType<T, S>
            : unknown;

interface Scalars {
  readonly string: string;
  readonly number: number;
  readonly integer: number;
  readonly boolean: boolean;
  readonly null: null;
}

type FromType<T, S> = T extends keyof Scalars
  ? Scalars[T]
  : T extends 'array'
    ? readonly (S extends { readonly items: infer I } ? FromSchema<I> : unknown)[]
    : T extends 'object'
      ? FromObject<S>
      : unknown;

type FromObject<S> = S extends { readonly properties: infer P }
  ? { readonly [K in keyof P as IsPresent<S, P, K> extends true ? K : never]: FromSchema<P[K]> } & {
      readonly [K in keyof P as IsPresent<S, P, K> extends true ? never : K]?: FromSchema<P[K]>;
    }
  : S extends { readonly additionalProperties: infer A }
    ? Readonly<Record<string, A extends boolean ? unknown : FromSchema<A>>>
    : Readonly<Record<string, unknown>>;

type IsPresent<S, P, K extends keyof P> = P[K] extends { readonly default: unknown }
  ? true
  : S extends { readonly required: readonly (infer R)[] }
    ? K extends R
      ? true
      : false
    : false;
