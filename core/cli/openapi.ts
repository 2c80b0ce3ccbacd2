import { createGateway } from '../app.ts';
import type { CommandContext } from './commands.ts';
import { createLogger } from './logger.ts';

/** `tollgate openapi`: the document that a gateway of this configuration serves under `/openapi.json`. */
export async function run({ terminal, globals }: CommandContext): Promise<void> {
  const log = createLogger({ level: 'warn', format: 'auto', isTerminal: terminal.isTty, destination: process.stderr });
  const gateway = await createGateway({
    cwd: process.cwd(),
    env: process.env,
    configPath: globals.config,
    host: '127.0.0.1',
    port: 0,
    log,
  });
  await gateway.close();
  terminal.out.write(`${JSON.stringify(gateway.openApi, null, 2)}\n`);
}
