/**
 * Imported before a gateway (`node --import`): shifts its clock by the milliseconds in a file, as if the machine's
 * clock was set. Timers and `performance.now()` continue, as they do in that case.
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
