import { expect } from 'chai';
import { isGatewayError, type PluginApi } from '../../../../core/index.ts';
import { accountCommand } from '../../../../plugins/policies/accounts/commands.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { makeFaulty } from '../../../support/charged-calls.ts';
import { fakeIo } from '../../../support/fake-io.ts';

describe('tollgate accounts credit', () => {
  it('tells how to repeat a credit safely when the store did not say whether it was written', async () => {
    const store = await openMemory();
    const faulty = makeFaulty(store.ledger);
    const command = accountCommand(
      { ledger: faulty.ledger, settings: { plans: {} } } as unknown as PluginApi,
      store.keyv('accounts'),
    );
    const credit = command.subcommands?.find(({ name }) => name === 'credit');
    const notes: string[] = [];
    const io = fakeIo({ note: (text) => void notes.push(text) });
    const run = (id?: string) =>
      credit?.run({
        args: ['ann', '5'],
        options: { id },
        io,
        signal: new AbortController().signal,
        actor: { via: 'cli' },
      });

    faulty.fault = 'loses answers';
    const error = await run()?.catch((thrown: unknown) => thrown);
    expect(isGatewayError(error) && error.code).to.equal('store_unavailable');
    const id = /--id (\S+?):/.exec(notes.join(''))?.[1];
    expect(id).to.be.a('string');

    faulty.fault = 'none';
    await run(id);
    expect((await store.ledger.balance('ann')).balance).to.equal(5_000_000);
    await store.close();
  });
});
