import { expect } from 'chai';
import type { LedgerEntry } from '../../contract/index.ts';
import { chargesOf, findWrongCharges } from './charges.ts';
import type { Tried } from './client.ts';
import type { Served } from './vendor.ts';

const ID = 'c-0000001-0';
const tried = (came: Tried['came']): Tried => ({
  ...{ id: ID, node: 0, came, status: 200, hadContent: false, fromMs: 0, toMs: 1, firstMs: 1, attempts: 1 },
  ...{ words: '', shouldRetry: undefined, retryAfterMs: undefined },
});
const served = (kind: Served['kind'], more: Partial<Served> = {}): Served => ({
  ...{ id: ID, kind, mood: 'live', promptTokens: 104, textBytes: 0, usage: undefined, ...more },
});
const good = served('served', { usage: { prompt_tokens: 50, completion_tokens: 10 }, textBytes: 40 });

/** Returns true if the charge of one request is accepted. */
const isRight = (came: Tried['came'], by: readonly Served[], charged: number, isCutOff = false): boolean =>
  findWrongCharges([tried(came)], new Map([[ID, by]]), new Map([[ID, charged]]), () => isCutOff).length === 0;

describe('the judge of charges of a chaos run', () => {
  it('expects the vendor’s usage of a response, whatever failed before', () => {
    expect(isRight('whole', [served('silent'), good], 70)).to.equal(true);
    for (const charged of [0, 69, 71, 104, 174, 140])
      expect(isRight('whole', [served('silent'), good], charged)).to.equal(false);
  });

  it('expects the estimate of a response without usage', () => {
    const uncounted = served('served', { textBytes: 40 });
    expect(isRight('whole', [uncounted], 124)).to.equal(true);
    for (const charged of [0, 104, 130]) expect(isRight('whole', [uncounted], charged)).to.equal(false);
  });

  it('expects nothing for refusals, the prompt for silence, and the text of an interrupted stream in addition', () => {
    expect(isRight('error', [served('refused'), served('refused')], 0)).to.equal(true);
    expect(isRight('error', [served('refused')], 104)).to.equal(false);
    expect(isRight('error', [served('refused'), served('silent')], 104)).to.equal(true);
    expect(isRight('error', [served('silent')], 0)).to.equal(false);
    expect(isRight('broken', [served('broken', { textBytes: 40 })], 124)).to.equal(true);
    expect(isRight('broken', [served('broken', { textBytes: 40 })], 140)).to.equal(false);
  });

  it('accepts the reservation of a request whose worker was killed, and nothing if it never started', () => {
    expect(isRight('lost', [good], 504)).to.equal(true);
    expect(isRight('lost', [good], 70)).to.equal(true);
    expect(isRight('lost', [], 0)).to.equal(true);
    expect(isRight('lost', [good], 0)).to.equal(false);
    expect(isRight('error', [good], 504)).to.equal(false);
  });

  it('accepts the reservation of a response whose worker was killed before its cost was written', () => {
    expect(isRight('whole', [good], 504, true)).to.equal(true);
    expect(isRight('whole', [good], 70, true)).to.equal(true);
    expect(isRight('whole', [good], 0, true)).to.equal(false);
    expect(isRight('whole', [good], 504)).to.equal(false);
  });

  it('adds up the entries of a call, and finds entries without a call', () => {
    const entry = (ref: string, amount: number, kind: LedgerEntry['kind'] = 'charge'): LedgerEntry => ({
      ...{ id: `${ref}${amount}`, account: 'chaos', kind, amount, reason: '', ref, at: 0 },
    });
    const entries = [entry('call', -504), entry('call', 434), entry('other', -1), entry('paid', 5, 'credit')];
    const { byRequest, strange } = chargesOf(entries, (call) => (call === 'call' ? ID : undefined));
    expect([...byRequest]).to.deep.equal([[ID, 70]]);
    expect(strange.map(({ ref }) => ref)).to.deep.equal(['other']);
  });
});
