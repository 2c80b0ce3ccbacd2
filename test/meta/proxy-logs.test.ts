import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

// test/app/proxies.slow.test.ts checks the logs of running proxies.
describe('the log of the nginx in deploy/', () => {
  it('contains no query, where some clients send their key (E37)', () => {
    const text = readFileSync(path.join(PACKAGE_ROOT, 'deploy/nginx/tollgate.conf'), 'utf8');
    const [, name = '', format = ''] = /^log_format (\w+) '(.*)';$/m.exec(text) ?? [];
    expect(format)
      .to.match(/\$uri\b/)
      .and.not.match(/\$(?:request|request_uri|args|query_string|arg_\w+|http_\w+)\b(?!_)/);
    expect([...text.matchAll(/^\s*access_log\s+\S+\s*(\w*);/gm)].map(([, used]) => used)).to.deep.equal([name]);
  });
});
