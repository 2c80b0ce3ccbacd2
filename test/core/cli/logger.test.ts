import { expect } from 'chai';
import fc from 'fast-check';
import { createLogger } from '../../../core/cli/logger.ts';

function capture(write: (log: ReturnType<typeof createLogger>) => void): Record<string, unknown> {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  write(createLogger({ level: 'info', format: 'json', isTerminal: false, destination }));
  return JSON.parse(lines.join('')) as Record<string, unknown>;
}

describe('the log', () => {
  const SECRET = 'sk-very-secret';
  const names = ['authorization', 'x-api-key', 'apiKey', 'api_key', 'cookie', 'headers', 'secret', 'pepper'];
  for (const name of names) {
    it(`never shows "${name}", as a field, inside of one, of an error or of a child logger`, () => {
      const error = Object.assign(new Error('failed'), { [name]: SECRET });
      const lines = [
        capture((log) => log.info({ [name]: SECRET }, 'x')),
        capture((log) => log.info({ deep: { [name]: SECRET, ok: 1 } }, 'x')),
        capture((log) => log.error({ err: error }, 'x')),
        capture((log) => log.child({ [name]: SECRET }).info({}, 'x')),
      ];
      for (const line of lines) {
        expect(JSON.stringify(line)).to.not.contain(SECRET);
        expect(JSON.stringify(line)).to.contain('[redacted]');
      }
    });
  }

  it('leaves the objects that it is given as they are', () => {
    const fields = { deep: { secret: SECRET } };
    capture((log) => log.info(fields, 'x'));
    expect(fields).to.deep.equal({ deep: { secret: SECRET } });
  });

  const OWN = ['level', 'time', 'plugin', 'msg', 'err', '__proto__', 'toJSON', ...names];
  const PLAIN = fc.dictionary(
    fc.string({ unit: 'binary' }).filter((name) => !OWN.includes(name)),
    fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.boolean(), fc.constant(undefined)),
  );

  it('tells plain fields as they are, also beside one that is not plain', () =>
    fc.assert(
      fc.property(PLAIN, fc.string({ unit: 'binary' }), (fields, message) => {
        const expected = JSON.parse(JSON.stringify({ level: 'info', plugin: 'p', ...fields, msg: message })) as object;
        const { time, ...plain } = capture((log) => log.child({ plugin: 'p' }).info(fields, '%s', message));
        expect(plain).to.deep.equal(expected);
        expect(time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        const {
          time: _,
          list,
          ...same
        } = capture((log) => log.child({ plugin: 'p' }).info({ ...fields, list: [1] }, '%s', message));
        expect({ ...same, list }).to.deep.equal({ ...expected, list: [1] });
      }),
    ));

  it('tells the time of now', () => {
    const before = Date.now();
    const { time } = capture((log) => log.info({}, 'x'));
    expect(Date.parse(String(time))).to.be.within(before, Date.now());
  });

  it('tells what JSON has no words for', () => {
    const circle: Record<string, unknown> = { name: 'circle' };
    circle['self'] = circle;
    expect(capture((log) => log.info({ circle }, 'x'))['circle']).to.deep.include({ name: 'circle' });
    expect(capture((log) => log.info({ big: 12n }, 'x'))['big']).to.equal(12);
  });

  it('says nothing below its level', () => {
    expect(() => capture((log) => log.debug({ a: 1 }, 'x'))).to.throw(SyntaxError);
  });
});
