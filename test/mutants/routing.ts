import type { MutatedFile } from './mutants.ts';

/** Mutants of the choice of the first and the next target. */
export const ROUTING: readonly MutatedFile[] = [
  {
    room: 'health of targets',
    file: 'routing/target-health.ts',
    tests: ['test/routing/target-health.test.ts'],
    mutants: [
      [
        'calls hang also where responses come',
        'if (waiting.respondedAt >= latest) return false;',
        '',
        ['test/routing/waiting-attempts.test.ts'],
      ],
      [
        'E59: the cool-down has no maximum',
        'failures: { first: 5_000, longest: 60_000 }',
        'failures: { first: 5_000, longest: 6_000_000 }',
      ],
      [
        'E59: a later 429 shortens a wait',
        'openUntil: Math.max(health.openUntil ?? 0, now + ms)',
        'openUntil: now + ms',
      ],
      [
        'E59: a 429 begins "three in a row" anew',
        'failures: health.failures + (counts ? 1 : 0)',
        'failures: counts ? health.failures + 1 : 0',
      ],
      [
        'E59: a test that ends without a verdict is never over',
        'return health.test?.id === id ? { ...health, test: undefined } : health;',
        'return id < 0 ? { ...health, test: undefined } : health;',
        ['test/routing/target-health.test.ts', 'test/app/broken-streams.test.ts'],
      ],
      [
        'any attempt that ends without a verdict ends the test',
        'return health.test?.id === id ? { ...health, test: undefined } : health;',
        'return id > 0 ? { ...health, test: undefined } : health;',
      ],
      ['it takes four failures in a row', 'inARow: 3,', 'inARow: 4,'],
      ['the share of failures is looked at too late', 'errorRate: 0.5, attempts: 20', 'errorRate: 0.5, attempts: 200'],
      ['an old success closes what was opened since', 'if (attempt.startedAt < health.openedAt) return counted;', ''],
      [
        'one success ends a wait that the vendor asked for',
        "return stateOf(health, now) === 'open' && health.cause !== 'failures';",
        "return stateOf(health, now) === 'half-open' && health.cause !== 'failures';",
      ],
      [
        'openings are never forgotten',
        'return Math.max(openings - Math.floor((now - closedAt) / coolDownMs), 0);',
        'return closedAt > now ? 0 : openings;',
      ],
      [
        'a target that returns gets all calls at once',
        'return closedAt <= openedAt ? 1 : Math.min(',
        'return closedAt > 0 ? 1 : Math.min(',
      ],
      ['a slow target keeps its share', 'if (isSlowBeside(pace?.ms, pace?.usualMs)) return LEAST_SHARE;', ''],
      [
        'another key does not open what the former one closed',
        "if (health.cause !== 'credential' && health.cause !== 'shared') return health;",
        "if (health.cause !== 'shared') return health;",
        ['test/routing/share-health.test.ts'],
      ],
    ],
  },
  {
    room: 'health of targets',
    file: 'routing/health-book.ts',
    tests: ['test/routing/health-book.test.ts'],
    mutants: [
      [
        'E58: names that callers make up take the places of targets',
        'const hasPlace = this.#deserves(name, health);',
        'const hasPlace = name !== "" || this.#deserves(name, health);',
      ],
    ],
  },
  {
    room: 'retries and failover',
    file: 'routing/retries.ts',
    tests: ['test/routing/retries.test.ts'],
    mutants: [
      [
        'a prompt that was sent is sent again without the caller’s leave',
        "return phase === 'connect' && !isSent ? true : isIdempotent;",
        "return phase === 'connect' ? true : isIdempotent;",
      ],
      ['a caller waits however long a vendor asks for', 'retryAfterMs > LONGEST_WAIT_MS || ', ''],
      [
        'a key that is refused is tried again',
        'if (kind === undefined || MEANT.has(kind)) return false;',
        'if (kind === undefined) return false;',
      ],
      [
        'retries have no budget',
        'if (this.#running < this.#allowed) this.#running += 1;',
        'if (this.#running >= 0) this.#running += 1;',
      ],
      [
        'an alias asks twice as often as it likes',
        'if (saved < 1 - 1e-9) return false;',
        '',
        ['test/routing/hedges.test.ts'],
      ],
    ],
  },
  {
    room: 'retries and failover',
    file: 'core/calls/failover.ts',
    tests: ['test/app/retries.test.ts'],
    mutants: [
      ['a target is tried a third time', '|| this.wasRetried ||', '||'],
      [
        'E56: what a caller sent opens a target',
        'invalid_request: undefined,\n});',
        "invalid_request: 'failures',\n});",
        ['test/app/target-health.test.ts'],
      ],
      [
        'a prompt that is too long does not go to the target for long ones',
        "if (failed.class === 'context_length' && this.#overflow) {",
        "if (failed.class === 'billing' && this.#overflow) {",
        ['test/app/balancing.test.ts'],
      ],
      [
        'a missing key hides what a vendor said',
        "if (!this.#error || (failed.error.code !== 'provider_not_configured' && !failed.isRefusal))",
        'if (failed)',
      ],
    ],
  },
  {
    room: 'retries and failover',
    file: 'core/calls/attempt.ts',
    tests: ['test/core/calls/failures.test.ts'],
    mutants: [
      [
        'E28: an answer is parsed however many values it holds',
        'if (exceeded !== undefined) throw invalidResponse(EXCEEDED[exceeded]);',
        '',
        ['test/app/vendor-answers.test.ts'],
      ],
    ],
  },
  {
    room: 'retries and failover',
    file: 'contract/failures.ts',
    tests: ['test/core/calls/failures.test.ts'],
    mutants: [
      [
        'what one vendor’s policy refused is sent to the next',
        "content_filter: row('content_filtered', undefined, false)",
        "content_filter: row('content_filtered', undefined)",
      ],
    ],
  },
];
