/** Separate process that takes part in races: `node --import tsx store-worker.ts <address as JSON>`. */
import { openStore, type Race, runRace } from './store-race.ts';

interface Order {
  readonly race: Race;
  readonly name: string;
  readonly by: string;
  readonly count: number;
}

const store = await openStore(JSON.parse(process.argv[2] ?? ''));
process.on('message', ({ race, name, by, count }: Order) => {
  runRace(store, race, name, by, count).then(
    (got) => process.send?.({ got }),
    (error) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => {
  void store.close().then(() => process.exit(0));
});
process.send?.({ ready: true });
