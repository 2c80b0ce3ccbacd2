import { fileURLToPath } from 'node:url';
import standalone from 'ajv/dist/standalone/index.js';
import { createAjv, fingerprint, type SchemaSet } from '../../config/ajv.ts';
import { coreSchema, sectionNames } from '../../config/check.ts';
import { COMBINATORS, sealPluginSchema } from '../../config/compose-schema.ts';
import { type LoadedConfig, loadConfig, readBuiltinSchemas } from '../../config/load-config.ts';
import { readRawConfig } from '../../config/read.ts';
import { isObject, type Schema } from '../../contract/json.ts';
import { PLAN_SCHEMA } from '../../contract/plan-schema.ts';
import { createGeneration } from '../../core/calls/generation.ts';
import { InnerRequests } from '../../core/http/inner-requests.ts';
import { Lifecycle } from '../../core/http/lifecycle.ts';
import { createMemory } from '../../core/http/memory.ts';
import { createAdminRate } from '../../core/http/operator-rights.ts';
import { serveGeneration } from '../../core/http/serve.ts';
import { createLogger } from '../../core/logger.ts';
import { openFoundation } from '../../core/plugins/foundation.ts';
import { REFERS_TO_OTHERS } from '../../core/plugins/registry.ts';

/** Schemas, and the compiled module that `config/ajv.ts` loads for them. */
export interface CompiledSet {
  /** Schemas as JSON. */
  readonly texts: readonly string[];
  /** Source of a CommonJS module that exports a `CompiledModule`. */
  readonly code: string;
}

const HERE = fileURLToPath(new URL('../../config/', import.meta.url));

/** Additions to the defaults: built-in plugins with routes whose set-up needs neither files nor a network. */
const MORE = Object.freeze({
  store: 'memory:',
  auth: { 'api-key': {}, openid: { issuer: 'https://id.example', clientId: 'x', publicUrl: 'https://gate.example' } },
  agents: { team: { model: 'echo/echo' }, medical: { model: 'echo/echo' } },
});

/**
 * Compiles the schemas of requests and of the configuration for a gateway with the built-in plugins. Opens no port and
 * writes no file.
 */
export async function compileAhead(): Promise<Readonly<Record<SchemaSet, CompiledSet>>> {
  const raw = await readRawConfig({ cwd: HERE, env: {}, configPath: 'default.yaml' });
  const loaded = await loadConfig({ raw: { ...raw, value: { ...raw.value, ...MORE } } });
  return {
    requests: compileTexts('requests', await listRequestSchemas(loaded)),
    settings: compileTexts('settings', await listSettingsSchemas(loaded)),
  };
}

/** Lists the schemas that a gateway compiles when it is assembled. */
async function listRequestSchemas(loaded: LoadedConfig): Promise<readonly string[]> {
  const log = createLogger({ level: 'silent' });
  const foundation = await openFoundation(loaded, log);
  const generation = await createGeneration(foundation, loaded);
  serveGeneration(generation, {
    lifecycle: new Lifecycle(),
    memory: createMemory(),
    countAdmin: createAdminRate(),
    inner: new InnerRequests(),
  });
  await generation.close();
  await foundation.close();
  return generation.requests.texts();
}

async function listSettingsSchemas({ plugins, builtins }: LoadedConfig): Promise<readonly string[]> {
  const builtin = await readBuiltinSchemas();
  const core = coreSchema(sectionNames(builtins, plugins));
  return [core, PLAN_SCHEMA, ...builtin.map(sealPluginSchema)].map((schema) => JSON.stringify(schema));
}

function compileTexts(set: SchemaSet, wanted: readonly string[]): CompiledSet {
  const texts = [...new Set(wanted)].filter((text) => !REFERS_TO_OTHERS.test(text));
  const schemas = texts.map((text) => JSON.parse(text) as Schema);
  // Options are not shared in request schemas: they are validated on every call, and a function call per option is not
  // worth it.
  const { members, shared } = set === 'settings' ? shareOptions(schemas) : { members: schemas, shared: [] };
  // Without `inlineRefs: false` Ajv inlines a shared option at each reference.
  const ajv = createAjv(set, { code: { source: true }, ...(set === 'settings' && { inlineRefs: false }) });
  for (const option of shared) ajv.addSchema(option);
  const names = texts.map(fingerprint);
  for (const [at, name] of names.entries()) ajv.addSchema(members[at] ?? {}, name);
  const code = standalone.default(ajv, Object.fromEntries(names.map((name) => [name, name])));
  // The parentheses make V8 compile the function at once in place of parsing it twice; this takes half the time.
  return {
    texts,
    code: `'use strict';\nmodule.exports = (function (formats) {\nconst exports = {};\n${code}\nreturn exports;\n});\n`,
  };
}

/**
 * Turns options of several schemas into separate schemas, which the others refer to. Most options of a provider are
 * shared by all providers, so each is compiled to one function. An error of such an option has a `schemaPath` that
 * begins at the option. `config/validate.ts` compares the paths of errors below one combinator, so schemas with a
 * combinator at the top are unchanged.
 */
function shareOptions(schemas: readonly Schema[]): {
  readonly members: readonly Schema[];
  readonly shared: readonly Schema[];
} {
  const counts = new Map<string, number>();
  for (const option of schemas.flatMap(optionsOf)) counts.set(option, (counts.get(option) ?? 0) + 1);
  const ids = new Map<string, string>();
  const refer = (option: unknown): unknown => {
    const text = JSON.stringify(option);
    // Ajv applies a default only where the option is declared, not behind a reference.
    if ((counts.get(text) ?? 0) < 2 || !isObject(option) || 'default' in option) return option;
    const id = ids.get(text) ?? `urn:tollgate:option:${ids.size}`;
    ids.set(text, id);
    return { $ref: id };
  };
  const members = schemas.map((schema) => {
    if (optionsOf(schema).length === 0) return schema;
    const options = Object.entries(schema['properties'] ?? {}).map(([name, option]) => [name, refer(option)]);
    return { ...schema, properties: Object.fromEntries(options) };
  });
  return { members, shared: [...ids].map(([text, $id]) => ({ ...(JSON.parse(text) as Schema), $id })) };
}

/** Options of a schema as texts; empty if it also has a combinator. */
function optionsOf(schema: Schema): readonly string[] {
  if (COMBINATORS.some((keyword) => keyword in schema)) return [];
  return Object.values(schema['properties'] ?? {}).map((option) => JSON.stringify(option));
}
