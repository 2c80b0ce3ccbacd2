import { definePlugin, GatewayError, type Route } from '../../contract/index.ts';

/** Features that this configuration has not enabled: their routes explain how, in place of a 404. */
const FEATURES: readonly {
  readonly method: Route['method'];
  readonly path: string;
  readonly name: string;
  readonly how: string;
}[] = [
  {
    method: 'POST',
    path: '/api/core/agent',
    name: 'The agent team',
    how: 'agents: { team: { model: provider/model } }',
  },
  {
    method: 'DELETE',
    path: '/api/core/agent/memory',
    name: 'The agent team',
    how: 'agents: { team: { model: provider/model } }',
  },
  {
    method: 'POST',
    path: '/api/core/agent/medical',
    name: 'The medical team',
    how: 'agents: { medical: { model: provider/model } }',
  },
  { method: 'GET', path: '/api/core/rag', name: 'The knowledge base', how: 'agents: { rag: { folder: ./knowledge } }' },
];

/**
 * Responds on the routes of disabled built-in features: 503 `feature_disabled` with the missing line of configuration.
 */
export default definePlugin({
  name: 'feature-hints',
  kind: 'policy',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    for (const { method, path, name, how } of FEATURES) {
      api.route({
        method,
        path,
        isFallback: true,
        summary: `${name}, which is not enabled`,
        auth: ['key'],
        responses: { 503: 'The feature is not configured.' },
        handler() {
          throw new GatewayError(
            'feature_disabled',
            `${name} is not enabled here. The operator enables it in the configuration: ${how}`,
          );
        },
      });
    }
  },
});
