import * as runner from 'node:test';
import { testPolicy } from 'tollgate/conformance';
import plugin from '../src/index.ts';

testPolicy({ plugin, hides: ['Orion'], refuses: ['Project Orion'], lets: ['The constellations of winter.'], runner });
