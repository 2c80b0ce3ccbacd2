import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openDatabase, openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { NOW } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/folders.ts';

describe('the file of the sqlite store, when its process is killed', () => {
  const folder = useTempFolder('sqlite-killed');

  it('loses nothing that was acknowledged when its process is killed, ten times', async () => {
    const acknowledged = new Set<string>();
    for (let round = 0; round < 10; round++) {
      const script = fileURLToPath(new URL('./credit-writer.ts', import.meta.url));
      const child = fork(script, [JSON.stringify({ folder, by: `r${round}` })], { execArgv: ['--import', 'tsx'] });
      const gone = new Promise((resolve) => child.once('exit', resolve));
      const enough = acknowledged.size + 20 + Math.floor(Math.random() * 200);
      child.on('message', ({ id }: { id?: string }) => {
        if (id !== undefined) acknowledged.add(id);
        if (acknowledged.size >= enough) child.kill('SIGKILL');
      });
      await gone;
    }
    const store = await openSqlite({ folder });
    for (const id of acknowledged) expect(await store.ledger.credit('account', id, 1, 'test', NOW), id).to.equal(false);
    const { balance } = await store.ledger.balance('account');
    expect(balance).to.be.at.least(acknowledged.size);
    await store.close();
    const database = await openDatabase({ folder });
    expect(database.prepare('PRAGMA integrity_check').get()?.['integrity_check']).to.equal('ok');
    expect(database.prepare('SELECT sum(amount) AS sum FROM entries').get()?.['sum']).to.equal(balance);
    database.close();
  });
});
