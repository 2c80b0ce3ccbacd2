import { expect } from 'chai';
import { pino } from 'pino';
import { logFields } from '../../contract/log-fields.ts';
import { createLogger } from '../../core/logger.ts';

const FIELDS = { request_id: 'req_1', status: 200, dur_ms: 1.25, stream: false, model: 'a"b\\c\u0007\u202eé' };
const JSON_FIELDS = JSON.stringify(FIELDS).slice(1, -1);

function linesOf(level: 'info' | 'warn' = 'info') {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { lines, log: createLogger({ level, destination }).child({ plugin: 'access-log' }) };
}

const withoutTime = (line: string | undefined): string | undefined => line?.replace(/"time":"[\d:.TZ-]+"/, '"time"');

describe('a log line with fields that are already JSON', () => {
  it('equals the logger’s line for the same fields', () => {
    const { lines, log } = linesOf();
    log.info(FIELDS, 'request');
    logFields(log, JSON_FIELDS, 'request');
    expect(lines).to.have.length(2);
    expect(withoutTime(lines[1])).to.equal(withoutTime(lines[0]));
    expect(lines[1]).to.match(/"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/);
  });

  it('is not written below the level', () => {
    const { lines, log } = linesOf('warn');
    logFields(log, JSON_FIELDS, 'request');
    expect(lines).to.deep.equal([]);
  });

  it('uses the normal path in the log of an embedding program', () => {
    const lines: string[] = [];
    const log = pino({ messageKey: 'message', base: null }, { write: (line: string) => void lines.push(line) });
    logFields(log, JSON_FIELDS, 'request');
    expect(JSON.parse(lines[0] ?? '')).to.include({ ...FIELDS, message: 'request', level: 30 });
  });
});
