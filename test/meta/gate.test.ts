import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');

/** SHA-256 of the yardstick: a cheaper or more expensive one would change every figure. */
const YARDSTICK = 'f9e428963896b49d5cc8967518e94a94b5a76b05d9e5aeaa76692725773c30e8';

describe('the cost gate', () => {
  it('measures against the yardstick for which the limits were set', () => {
    expect(createHash('sha256').update(read('bench/plain-gateway.mjs')).digest('hex')).to.equal(YARDSTICK);
  });

  it('has limits for CI’s measurements', () => {
    const bounds = JSON.parse(read('bench/gate-bounds.json')) as Record<string, Record<string, number>>;
    for (const body of [2, 32])
      for (const figure of ['cpu', 'alloc', 'old'])
        expect(bounds[`Node 24, chat, ${body} KB, 32 callers`]?.[figure], `${body} KB: ${figure}`).to.be.above(0);
    expect(read('.ci/run')).to.include('bench/gate.mjs --node "$bin/node" --check');
  });
});
