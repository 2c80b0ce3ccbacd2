import { openMemory } from '../../../plugins/stores/memory/index.ts';
import { testStore } from '../../conformance/store.ts';

testStore({ name: 'memory', open: openMemory });
