/** Process that `testStore` kills: opens a store by a module, writes, reports that and waits. */
import type { Store } from '../../contract/index.ts';
import { write } from './store-processes.ts';

const [module = '', name = ''] = process.argv.slice(2);
const { default: open } = (await import(module)) as { readonly default: () => Promise<Store> };
await write(await open(), name);
process.send?.('written');
// Waits until it is killed, and ends if the test has ended.
process.on('disconnect', () => process.exit());
setInterval(() => undefined, 60_000);
