import { definePlugin } from '../../../core/index.ts';
import { bodyRules, CALLS_CONFIG, checkCalls } from './bodies/config.ts';
import { BODIES, type KeptBodies, keepBodies } from './bodies/keep-bodies.ts';
import { callsCommand } from './calls-command.ts';
import { callsRoutes } from './calls-routes.ts';
import { usageCommand } from './usage-command.ts';
import { usageRoutes } from './usage-routes.ts';

/** Who used what, and which calls there were: reports and lists of what the ledger records. */
export default definePlugin({
  name: 'usage',
  kind: 'policy',
  apiVersion: 1,
  section: 'calls',
  commands: [
    { name: 'usage', summary: 'Who used and spent what' },
    { name: 'calls', summary: 'Recent calls, one by one or as they come' },
  ],
  configSchema: CALLS_CONFIG,
  check: checkCalls,
  setup(api, config) {
    const [problem] = checkCalls(config);
    if (problem) throw new TypeError(`calls${problem.path ?? ''} ${problem.message}. ${problem.hint ?? ''}`);
    const findBodies = (id: string): Promise<KeptBodies | undefined> => api.keyv<KeptBodies>(BODIES).get(id);
    for (const route of usageRoutes(api, config.permission)) api.route(route);
    for (const route of callsRoutes(api, config.permission, findBodies)) api.route(route);
    api.command(usageCommand(api.ledger));
    api.command(callsCommand(api.ledger, findBodies));
    const rules = bodyRules(config);
    if (rules) keepBodies(api, rules);
  },
});
