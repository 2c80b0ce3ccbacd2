/** Any value that JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** An object read from JSON whose fields nobody has checked yet. */
export type JsonObject = Record<string, unknown>;

/** A JSON Schema (2020-12) as plain data. */
export type Schema = Readonly<Record<string, unknown>>;
