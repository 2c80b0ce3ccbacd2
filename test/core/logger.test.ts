import { expect } from 'chai';
import { createLogger } from '../../core/logger.ts';

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
});
