import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { isGatewayError } from '../../../core/contract/errors.ts';
import { type BodyHold, createBodyBudget } from '../../../core/http/body-budget.ts';

const response = (closed = false) => Object.assign(new EventEmitter(), { closed }) as unknown as ServerResponse;

function codeOf(hold: BodyHold, bytes: number): string {
  try {
    hold.grow(bytes);
    return 'fits';
  } catch (error) {
    return isGatewayError(error) ? error.code : String(error);
  }
}

describe('the memory that bodies share', () => {
  it('is refused to the one who comes when it is used up, until a response is over', () => {
    const budget = createBodyBudget(100);
    const first = response();
    expect(codeOf(budget.open(first), 60)).to.equal('fits');
    const second = budget.open(response());
    expect(codeOf(second, 40)).to.equal('fits');
    expect(codeOf(second, 1)).to.equal('overloaded');
    first.emit('close');
    expect(codeOf(second, 60)).to.equal('fits');
    expect(codeOf(budget.open(response()), 1)).to.equal('overloaded');
  });

  it('is refused for good to a body that needs more than there is', () => {
    const hold = createBodyBudget(100).open(response());
    expect(codeOf(hold, 90)).to.equal('fits');
    expect(codeOf(hold, 20)).to.equal('request_too_large');
  });

  it('is not taken by a request whose response is over', () => {
    const budget = createBodyBudget(100);
    expect(codeOf(budget.open(response(true)), 100)).to.equal('fits');
    const late = response();
    const hold = budget.open(late);
    late.emit('close');
    expect(codeOf(hold, 100)).to.equal('fits');
    expect(codeOf(budget.open(response()), 100)).to.equal('fits');
  });

  it('lets large bodies be parsed one in each turn of the event loop, and small ones at once', async () => {
    const hold = createBodyBudget().open(response());
    expect(hold.turn(1000)).to.equal(undefined);
    const order: string[] = [];
    const large = ['first', 'second'].map(async (name) => {
      await hold.turn(1_000_000);
      order.push(name);
    });
    setImmediate(() => order.push('others'));
    await Promise.all(large);
    expect(order.indexOf('others')).to.be.oneOf([0, 1]);
  });
});
