import { definePlugin, type UserRecord } from '../../../core/index.ts';
import { USERS } from '../../../core/operators.ts';
import { auditCommand, auditRoute } from './audit.ts';
import { userCommand } from './user-command.ts';
import { createUserOperations } from './user-operations.ts';
import { userRoutes } from './user-routes.ts';

/** What operators do with users, and the log of what operators did: over the admin API and on the command line. */
export default definePlugin({
  name: 'admin',
  kind: 'policy',
  apiVersion: 1,
  commands: [
    { name: 'users', summary: 'Show, block and unblock users' },
    { name: 'audit', summary: 'List what operators changed' },
  ],
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    const operations = createUserOperations(api.records<UserRecord>(USERS), api.audit);
    for (const route of userRoutes(operations)) api.route(route);
    api.route(auditRoute(api));
    api.command(userCommand(operations));
    api.command(auditCommand(api));
  },
});
