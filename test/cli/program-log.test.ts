import { expect } from 'chai';
import { createProgramLog } from '../../cli/program-log.ts';

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
  const show = (write: (log: ReturnType<typeof createProgramLog>) => void, level: 'debug' | 'info' = 'info') => {
    let text = '';
    const destination = {
      write(line: string) {
        text += line;
      },
    };
    write(createProgramLog({ level, format: 'pretty', isTerminal: false, destination }));
    return text.replace(/^\d\d:\d\d:\d\d\.\d{3} /, '');
  };

  it('has one line per request, with the most important fields first', () => {
    expect(show((log) => log.info(REQUEST, 'request'))).to.equal(
      'INFO: POST /v1/chat/completions 200 12 ms echo/echo key=UXiy req_1\n',
    );
  });

  it('shows the error of a request, and the path if no route matched', () => {
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
