import { expect } from 'chai';
import { type Command, isGatewayError } from '../../../../contract/index.ts';
import { createRecordBook } from '../../../../core/plugins/instance-store.ts';
import { registerAccounts } from '../../../../plugins/policies/accounts/accounts.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { fakeIo } from '../../../support/plugins/fake-io.ts';
import { makeFailing } from './charged-calls.ts';

describe('tollgate accounts credit', () => {
  it('explains how to repeat a credit safely after an unknown result of the store', async () => {
    const store = await openMemory();
    const failing = makeFailing(store.ledger);
    const commands: Command[] = [];
    registerAccounts({
      books: { ledger: failing.ledger, records: createRecordBook(store) },
      stores: { stored: store.stored('accounts'), shared: (name) => store.keyv(name) as never },
      settings: { plans: {} } as never,
      operators: { audit: async () => undefined },
      route: () => undefined,
      command: (command) => void commands.push(command),
    });
    const credit = commands[0]?.subcommands?.find(({ name }) => name === 'credit');
    const io = fakeIo();
    const run = (id?: string) =>
      credit?.run({
        args: ['ann', '5'],
        options: { id },
        io,
        signal: new AbortController().signal,
        actor: { via: 'cli' },
      });

    failing.failure = 'loses responses';
    const error = await run()?.catch((thrown: unknown) => thrown);
    expect(isGatewayError(error) && error.code).to.equal('store_unavailable');
    const id = /the id "(\S+?)"/.exec(String(error))?.[1];
    expect(id).to.be.a('string');

    failing.failure = 'none';
    await run(id);
    expect((await store.ledger.balance('ann')).balance).to.equal(5_000_000_000);
    await store.close();
  });
});
