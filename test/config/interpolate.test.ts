// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts that a configuration holds.
import { expect } from 'chai';
import { interpolate, type Lookup } from '../../config/interpolate.ts';

const VARIABLES: Readonly<Record<string, string>> = { PORT: '8080', NAME: 'gate', EMPTY: '', TRICKY: '${PORT}' };
const FILES: Readonly<Record<string, string>> = { '/run/secrets/key': 'sk-1', 'gate.txt': 'by name' };

const lookup: Lookup = {
  env: (name) => VARIABLES[name],
  file(path) {
    const text = FILES[path];
    if (text === undefined) throw new Error('does not exist');
    return text;
  },
  secret(manager, name) {
    if (manager !== 'vault') throw new Error(`needs the secret manager "${manager}", which is not under "secrets"`);
    return `of ${name}`;
  },
};

describe('interpolate', () => {
  const texts: readonly [text: string, expected: string | undefined][] = [
    ['plain', 'plain'],
    ['${PORT}', '8080'],
    ['http://${NAME}:${PORT}/v1', 'http://gate:8080/v1'],
    ['${NOPE:-other}', 'other'],
    ['${vault:secret/data/${NAME}#key}', 'of secret/data/gate#key'],
    ['${vault:a:b}', 'of a:b'],
    ['${vault:-other}', 'other'],
    ['${NOPE:-}', ''],
    ['${EMPTY:-other}', 'other'],
    ['${EMPTY}', ''],
    ['${PORT:-other}', '8080'],
    ['${NOPE:-${NAME}-${PORT}}', 'gate-8080'],
    ['${NOPE:-a:-b}', 'a:-b'],
    ['${PORT:?needed}', '8080'],
    ['${NOPE}', undefined],
    ['a ${NOPE} b', undefined],
    ['$${PORT}', '${PORT}'],
    ['$$${PORT}', '$${PORT}'],
    ['cost: $5 {x}', 'cost: $5 {x}'],
    ['$PORT', '$PORT'],
    ['${file:/run/secrets/key}', 'sk-1'],
    ['Bearer ${file:/run/secrets/key}', 'Bearer sk-1'],
    ['${file:${NAME}.txt}', 'by name'],
    ['${TRICKY}', '${PORT}'],
  ];
  for (const [text, expected] of texts) {
    it(`returns ${JSON.stringify(expected)} for ${JSON.stringify(text)}`, () => {
      const result = interpolate(text, lookup);
      expect(result.text).to.equal(expected);
      expect(result.errors).to.deep.equal([]);
    });
  }

  const malformed = [
    '${',
    '${}',
    '${PORT',
    '${1A}',
    '${PORT-x}',
    '${PORT:=x}',
    '${A B}',
    '${file:}',
    '${NOPE:-${PORT}',
    'x ${ y',
  ];
  for (const text of malformed) {
    it(`refuses ${JSON.stringify(text)} and shows the forms`, () => {
      const { errors } = interpolate(text, lookup);
      expect(errors).to.have.length(1);
      expect(errors[0]?.message).to.equal('has a "${" without a valid reference');
      expect(errors[0]?.hint).to.include('${NAME:-default}');
    });
  }

  it('reports the missing variables', () => {
    expect(interpolate('${A1}${PORT}${B2}', lookup).unset).to.deep.equal(['A1', 'B2']);
  });

  it('reports the message of a required variable, also when it is empty', () => {
    for (const name of ['NOPE', 'EMPTY']) {
      expect(interpolate(`\${${name}:?request it from the operator}`, lookup).errors[0]?.message).to.equal(
        `needs the environment variable ${name}, which is not set: request it from the operator`,
      );
    }
  });

  it('names an unreadable file and the reason', () => {
    expect(interpolate('${file:/nope}', lookup).errors[0]?.message).to.equal(
      'needs the file /nope, which does not exist',
    );
  });

  it('reports if the text is one reference, and its source', () => {
    expect(interpolate('${PORT}', lookup)).to.include({ whole: true });
    expect(interpolate(':${PORT}', lookup)).to.include({ whole: false });
    expect(interpolate('${NAME}${file:/run/secrets/key}', lookup).sources).to.deep.equal([
      'env NAME',
      'file /run/secrets/key',
    ]);
  });

  it('refuses references nested deeper than ten levels', () => {
    expect(interpolate(`${'${A:-'.repeat(10)}x${'}'.repeat(10)}`, lookup).text).to.equal('x');
    expect(interpolate(`${'${A:-'.repeat(11)}x${'}'.repeat(11)}`, lookup).errors).to.have.length(1);
    expect(interpolate('${A:-'.repeat(100_000), lookup).errors).to.have.length(1);
  });
});
