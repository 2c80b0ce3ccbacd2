import { expect } from 'chai';
import fc from 'fast-check';
import { createLogger, type LoggerOptions } from '../../core/logger.ts';

type Options = Pick<LoggerOptions, 'format' | 'level'>;
type Write = (log: ReturnType<typeof createLogger>) => void;

/** What is written, as text. */
function captureText(write: Write, options: Options = { format: 'json', level: 'info' }): string {
  let text = '';
  const destination = {
    write(line: string) {
      text += line;
    },
  };
  write(createLogger({ ...options, isTerminal: false, destination }));
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

  it('leaves the objects that it is given as they are', () => {
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
    fc.string({ unit: 'binary' }).filter((name) => !OWN.includes(name)),
    fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.boolean(), fc.constant(undefined)),
  );

  it('tells plain fields as they are, and the message after them', () =>
    fc.assert(
      fc.property(PLAIN, fc.string({ unit: 'binary' }), (fields, message) => {
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

describe('the log for a person', () => {
  const REQUEST = {
    plugin: 'access-log',
    request_id: 'req_1',
    method: 'POST',
    route: 'POST /v1/chat/completions',
    ip: '127.0.0.1',
    user: 'local',
    key: 'UXiy',
    provider: 'echo',
    model: 'echo',
    tokens_in: 2,
    status: 200,
    dur_ms: 11.65,
  };
  const show = (write: Write, level: LoggerOptions['level'] = 'info') =>
    captureText(write, { format: 'pretty', level }).replace(/^\d\d:\d\d:\d\d\.\d{3} /, '');

  it('is one line a request with what a person looks for first', () => {
    expect(show((log) => log.info(REQUEST, 'request'))).to.equal(
      'INFO: POST /v1/chat/completions 200 12 ms echo/echo key=UXiy req_1\n',
    );
  });

  it('shows the error of a request, and the path where no route matched', () => {
    const { key: _key, provider: _provider, model: _model, ...rest } = REQUEST;
    const fields = { ...rest, route: 'none', path: '/nowhere', status: 404, error: 'not_found' };
    expect(show((log) => log.info(fields, 'request'))).to.equal('INFO: POST /nowhere 404 not_found 12 ms req_1\n');
  });

  it('shows every field of a request at level debug', () => {
    expect(show((log) => log.info(REQUEST, 'request'), 'debug')).to.match(
      /^INFO: request plugin=access-log .*tokens_in=2/,
    );
  });

  it('shows the fields of any other line, and the stack of its error, without secrets', () => {
    const error = new Error('no\u202e\u001b[2J way');
    const text = show((log) => log.warn({ err: error, deep: { secret: 's', ok: 1 } }, 'failed'));
    expect(text).to.match(/^WARN: failed deep=\{"secret":"\[redacted\]","ok":1\}\nError: no\?\?\[2J way\n {4}at /);
  });
});
