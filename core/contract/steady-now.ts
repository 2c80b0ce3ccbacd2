/** Unix milliseconds by a clock that neither jumps nor goes back when somebody sets that of the machine: for windows, leases, and how long something lasts. */
export const steadyNow = (): number => Math.round(performance.timeOrigin + performance.now());
