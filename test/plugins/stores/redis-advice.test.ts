import { expect } from 'chai';
import { adviseOn } from '../../../plugins/stores/redis/connection.ts';

describe('advice about a redis server', () => {
  const cases: readonly (readonly [string, string, readonly RegExp[]])[] = [
    ['that keeps everything', 'maxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n', []],
    ['that cannot be full', 'maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n', []],
    ['that evicts', 'maxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n', [/allkeys-lru.*noeviction/]],
    [
      'that writes snapshots only',
      'maxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:0\r\n',
      [/appendonly is off/],
    ],
    ['that tells nothing', '', []],
  ];
  for (const [title, info, expected] of cases) {
    it(`${expected.length === 0 ? 'is silent about one' : 'warns of one'} ${title}`, () => {
      const advice = adviseOn(info);
      expect(advice).to.have.length(expected.length);
      for (const [index, pattern] of expected.entries()) expect(advice[index]).to.match(pattern);
    });
  }
});
