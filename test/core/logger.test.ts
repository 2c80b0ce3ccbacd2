import { expect } from 'chai';
import fc from 'fast-check';
import { createLogger } from '../../core/logger.ts';
import { anyText } from '../support/arbitrary-text.ts';

type Write = (log: ReturnType<typeof createLogger>) => void;

/** Captures the written output as text. */
function captureText(write: Write): string {
  let text = '';
  const destination = {
    write(line: string) {
      text += line;
    },
  };
  write(createLogger({ level: 'info', destination }));
  return text;
}

const capture = (write: Write) => JSON.parse(captureText(write)) as Record<string, unknown>;

describe('the log', () => {
  const SECRET = 'sk-very-secret';
  const names = ['authorization', 'x-api-key', 'apiKey', 'api_key', 'cookie', 'headers', 'secret', 'pepper'];
  for (const name of names) {
    it(`never shows "${name}", as a field, one or two levels deeper, of an error or of a child logger`, () => {
      const error = Object.assign(new Error('failed'), { [name]: SECRET });
      const lines = [
        capture((log) => log.info({ [name]: SECRET }, 'x')),
        capture((log) => log.info({ deep: { [name]: SECRET, ok: 1 } }, 'x')),
        capture((log) => log.info({ deep: { deeper: { [name]: SECRET, ok: 1 }, ok: 1 } }, 'x')),
        capture((log) => log.info({ list: [{ [name]: SECRET }] }, 'x')),
        capture((log) => log.info({ cause: error, deep: { error } }, 'x')),
        capture((log) => log.error({ err: error }, 'x')),
        capture((log) => log.child({ [name]: SECRET }).info({}, 'x')),
      ];
      for (const line of lines) {
        expect(JSON.stringify(line)).to.not.contain(SECRET);
        expect(JSON.stringify(line)).to.contain('[redacted]');
      }
    });
  }

  it('does not modify its arguments', () => {
    const fields = { deep: { secret: SECRET, deeper: { secret: SECRET } } };
    capture((log) => log.info(fields, 'x'));
    expect(fields).to.deep.equal({ deep: { secret: SECRET, deeper: { secret: SECRET } } });
  });

  it('adds nothing to objects without secrets', () => {
    const fields = { deep: { deeper: { ok: 1 }, list: [{ ok: 2 }, 'x', null] } };
    expect(capture((log) => log.info(fields, 'x'))).to.deep.include(fields);
  });

  const OWN = ['level', 'time', 'plugin', 'msg', 'err', '__proto__', 'toJSON', ...names];
  const PLAIN = fc.dictionary(
    anyText().filter((name) => !OWN.includes(name)),
    fc.oneof(anyText(), fc.double(), fc.boolean(), fc.constant(undefined)),
  );

  it('writes plain fields unchanged, and the message after them', () =>
    fc.assert(
      fc.property(PLAIN, anyText(), (fields, message) => {
        const expected = JSON.parse(JSON.stringify({ level: 'info', plugin: 'p', ...fields, msg: message })) as object;
        const { time, ...plain } = capture((log) => log.child({ plugin: 'p' }).info(fields, '%s', message));
        expect(plain).to.deep.equal(expected);
        expect(time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      }),
    ));

  it('has control and bidi characters of any field, name and message as escapes only', () => {
    const words = 'a\u0000\u0007\u001b[2J\u007f\u0085\u009b\u2028\u202a\u202e\u2066\u2069\n\tz';
    const text = captureText((log) => log.info({ model: words, deep: { [words]: words } }, words));
    expect(text).to.match(/^[^\p{Cc}\u202a-\u202e\u2066-\u2069]+\n$/u);
    expect(JSON.parse(text)).to.deep.include({ model: words, deep: { [words]: words }, msg: words });
  });

  it('contains the current time', () => {
    const before = Date.now();
    const { time } = capture((log) => log.info({}, 'x'));
    expect(Date.parse(String(time))).to.be.within(before, Date.now());
  });

  it('writes values that JSON cannot represent', () => {
    const circle: Record<string, unknown> = { name: 'circle' };
    circle['self'] = circle;
    expect(capture((log) => log.info({ circle }, 'x'))['circle']).to.deep.include({ name: 'circle' });
    expect(capture((log) => log.info({ big: 12n }, 'x'))['big']).to.equal(12);
  });

  it('writes nothing below its level', () => {
    expect(() => capture((log) => log.debug({ a: 1 }, 'x'))).to.throw(SyntaxError);
  });
});
