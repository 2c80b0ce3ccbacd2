/** Lets a bounded number in at once, and a bounded number wait. */
export interface Gate {
  /** Resolves with what gives the place back, or undefined when too many wait. Throws the signal's reason on abort. */
  enter(signal: AbortSignal): Promise<(() => void) | undefined>;
}

export function createGate(places: number, waitingPlaces: number): Gate {
  let free = places;
  const waiting: (() => void)[] = [];

  function leaveOnce(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    };
  }

  return {
    async enter(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return leaveOnce();
      }
      if (waiting.length >= waitingPlaces) return undefined;
      await new Promise<void>((resolve, reject) => {
        const admit = () => {
          signal.removeEventListener('abort', give);
          resolve();
        };
        const give = () => {
          const index = waiting.indexOf(admit);
          if (index >= 0) waiting.splice(index, 1);
          reject(signal.reason as Error);
        };
        waiting.push(admit);
        signal.addEventListener('abort', give, { once: true });
      });
      return leaveOnce();
    },
  };
}
