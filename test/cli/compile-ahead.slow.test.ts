import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { type CompiledSet, compileAhead } from '../../cli/generate/compile-ahead.ts';
import { type CompiledModule, createAjv, fingerprint, type SchemaSet } from '../../config/ajv.ts';
import { validateValue } from '../../config/validate.ts';
import type { Schema } from '../../contract/json.ts';
import { FORMATS } from '../../contract/schema-formats.ts';
import { valueOfSchema } from '../support/formats/values-of-schema.ts';

const VALUES = 300;

const SETS: readonly SchemaSet[] = ['requests', 'settings'];

/** Evaluates the module of a compiled set without a file. */
function evaluate({ code }: CompiledSet): ReturnType<CompiledModule> {
  const module: { exports?: CompiledModule } = {};
  new Function('module', 'require', code)(module, createRequire(import.meta.url));
  assert.ok(module.exports);
  return module.exports(FORMATS);
}

type Judge = (validate: ValidateFunction, schema: Schema, value: unknown) => unknown;

/** Return the problems that a validator finds in a value, as callers or operators read them. */
const JUDGES: Readonly<Record<SchemaSet, Judge>> = {
  requests: (validate, _schema, value) => (validate(value) ? [] : validate.errors),
  settings: (validate, schema, value) => {
    const place = { plugin: 'sample', pointer: '/here', baseDir: '/base', isHidden: () => false };
    return validateValue(value, schema, place, () => validate);
  },
};

describe('the schemas that the build compiles', () => {
  let compiled: Awaited<ReturnType<typeof compileAhead>>;
  before(async () => {
    compiled = await compileAhead();
  });

  for (const set of SETS) {
    it(`judge every value of the ${set} as Ajv does at run time, with the same messages`, () => {
      const validators = evaluate(compiled[set]);
      const slow = createAjv(set);
      const counts = { fitting: 0, others: 0 };
      for (const text of compiled[set].texts) {
        const schema = JSON.parse(text) as Schema;
        const validate = slow.compile(schema);
        const ahead = validators[fingerprint(text)];
        assert.ok(ahead, text.slice(0, 200));
        const agrees = fc.property(fc.noBias(fc.nat()), (seed) => {
          const judge = (validator: ValidateFunction): string => {
            const value = valueOfSchema(schema, seed);
            const problems = JUDGES[set](validator, schema, value);
            return JSON.stringify({ value, problems });
          };
          assert.equal(judge(ahead), judge(validate));
          counts[validate.errors ? 'others' : 'fitting'] += 1;
        });
        fc.assert(agrees, { numRuns: VALUES });
      }
      assert.ok(counts.fitting > VALUES && counts.others > VALUES, JSON.stringify(counts));
    });
  }
});
