import type { Gateway, GatewayOptions } from './app.ts';

/**
 * Starts a gateway inside another program: reads the configuration (`configPath`, else the search in `cwd`), boots the
 * plugins and listens. `cwd` and `env` are the process's own unless given; without a `log` it logs as `tollgate start` does.
 * Rejects with every fault named before anything listens. The server's code is loaded on the first call.
 */
export async function createGateway(options: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const [{ createGateway: create }, { createLogger }] = await Promise.all([
    import('./app.ts'),
    import('./cli/logger.ts'),
  ]);
  const log = options.log ?? createLogger({ level: 'info', format: 'auto', isTerminal: process.stdout.isTTY });
  return create({ cwd: process.cwd(), env: process.env, ...options, log });
}
