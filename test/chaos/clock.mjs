/**
 * Imported before a gateway (`node --import`): its clock is off by what a file says, in milliseconds, as when somebody sets that of
 * the machine. Timers and `performance.now()` go on as they do then.
 */
import { readFileSync } from 'node:fs';

const FILE = process.env.CHAOS_CLOCK ?? '';
const TrueDate = Date;
const trueNow = Date.now.bind(Date);
let offsetMs = 0;

const read = () => {
  try {
    offsetMs = Number(readFileSync(FILE, 'utf8')) || 0;
  } catch {
    offsetMs = 0;
  }
};
read();
setInterval(read, 100).unref();

const now = () => trueNow() + offsetMs;
globalThis.Date = new Proxy(TrueDate, {
  construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
  apply: () => new TrueDate(now()).toString(),
  get: (target, name, of) => (name === 'now' ? now : Reflect.get(target, name, of)),
});
