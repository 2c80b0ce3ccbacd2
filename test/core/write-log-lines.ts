/** Process that logs: `write-log-lines.ts <writer> <lines> [stay]`; the writer `alone` is the only one. */
import { flushLog } from '../../cli/program-log.ts';
import { createLogger } from '../../core/logger.ts';

const [writer = '', lines = '', stay] = process.argv.slice(2);
const log = createLogger({ level: 'info', isShared: writer !== 'alone' });
for (let at = 0; at < Number(lines); at++) {
  log.info({ writer, at, text: '–'.repeat(at % 100) }, 'line');
  if (at % 10 === 0) await new Promise(setImmediate);
}
if (stay) setInterval(() => undefined, 1000);
else {
  await flushLog(log);
  process.exit();
}
