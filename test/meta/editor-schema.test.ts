import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { parse } from 'yaml';

const root = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

/**
 * Validates as an editor does with the generated schema: it knows only the names of our keyword and formats, and no
 * variables.
 */
const validate = new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(
  JSON.parse(read('config/tollgate.schema.json')) as object,
);

function findProblems(text: string): readonly string[] {
  validate(parse(text));
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe('the schema for editors', () => {
  it('D45: accepts the shipped default.yaml', () => {
    expect(findProblems(read('config/default.yaml'))).to.deep.equal([]);
  });

  it('D45: accepts variables in place of numbers, booleans and lists, and $import', () => {
    const text =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: variables of a configuration
      'server: { port: "${PORT:-8787}", workers: "${WORKERS:-1}" }\n$import: ./other.yaml\nproviders: { echo: {} }\n';
    expect(findProblems(text)).to.deep.equal([]);
  });

  it('marks an unknown key and an invalid port', () => {
    expect(findProblems('server: { prot: 1 }\n')).not.to.deep.equal([]);
    expect(findProblems('server: { port: much }\n')).not.to.deep.equal([]);
  });
});
