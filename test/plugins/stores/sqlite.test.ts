import { openSqlite } from '../../../plugins/stores/sqlite/index.ts';
import { testStore } from '../../conformance/store.ts';
import { useTempFolder } from '../../support/temp-folder.ts';

describe('sqlite store', () => {
  const folder = useTempFolder('sqlite');
  testStore('sqlite', () => openSqlite({ folder }));
});
