import { definePlugin, GatewayError } from 'tollgate';

/** Lets each user make so many calls a process, and tells how many are left. */
export default definePlugin({
  name: 'my-plugin',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      calls: { type: 'integer', minimum: 1, default: 100, description: 'How many calls each user may make.' },
    },
  },
  setup(api, { calls }) {
    const made = new Map<string, number>();
    api.hook('admit', (call) => {
      const { userId } = call.principal;
      const before = made.get(userId) ?? 0;
      if (before >= calls) throw new GatewayError('rate_limited', `${calls} calls were made: ask for more.`);
      made.set(userId, before + 1);
      call.headers.set('x-my-plugin-left', String(calls - before - 1));
    });
  },
});
