/** Plugins as text, for files that a test's gateway loads like third-party plugins. */
import { startGateway, type TestGateway, type TestGatewayOptions } from '../gateways/gateway.ts';

export interface PluginText {
  readonly name?: string;
  readonly kind?: string;
  /** Body of `setup(api, config)`. */
  readonly setup: string;
  /** Further members, such as `requires: ['x'],`. */
  readonly more?: string;
}

/** Plugin that imports `tollgate` by name, as one in its own project does. */
export function pluginFile({ name = 'probe', kind = 'policy', setup, more = '' }: PluginText): string {
  return `import { GatewayError, definePlugin } from 'tollgate';
export default definePlugin({ name: '${name}', kind: '${kind}', apiVersion: 1, ${more} async setup(api, config) { ${setup} } });
`;
}

/** Route of a plugin, without authentication by default. */
export const routeText = (path: string, body: string, auth = `'none'`): string =>
  `api.route({ method: 'POST', path: '${path}', summary: 'x', auth: ${auth}, responses: { 200: 'x' }, async handler(ctx) { ${body} } });`;

/** Gateway with one policy from a file, `probe`. */
export function startProbe(
  setup: string,
  config: Record<string, unknown> = {},
  options: TestGatewayOptions = {},
  more = '',
): Promise<TestGateway> {
  const { policies, ...rest } = config as { policies?: object };
  return startGateway(
    { ...rest, policies: { ...policies, probe: { plugin: './probe.mjs' } } },
    { ...options, files: { 'probe.mjs': pluginFile({ setup, more }), ...options.files } },
  );
}

/** Error of a failed start. */
export function startError(started: Promise<TestGateway>): Promise<string> {
  return started.then(
    async (gateway) => {
      await gateway.stop();
      throw new Error('it started');
    },
    (error: Error) => error.message,
  );
}

export const CHAT = '/v1/chat/completions';

/** Chat request to the built-in echo provider. */
export const chatOf = (content: string, rest: object = {}) => ({
  model: 'echo/echo',
  messages: [{ role: 'user', content }],
  ...rest,
});

/** Text of a JSON response or of a stream, and the finish reason. */
export async function readText(response: Response): Promise<string> {
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const { choices } = JSON.parse(text) as { choices?: readonly { message: { content: string } }[] };
    return choices?.[0]?.message.content ?? text;
  }
  return framesOf(text)
    .map((frame) => (frame['choices'] as { delta: { content?: string } }[] | undefined)?.[0]?.delta.content ?? '')
    .join('');
}

/** Events of a stream that are JSON. */
export function framesOf(text: string): readonly Record<string, unknown>[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)) as Record<string, unknown>);
}
