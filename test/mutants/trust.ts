import type { MutatedFile } from './mutants.ts';

const room = 'what others may take';

/** Wrong lines for those of E25 to E41, E54 to E58 and E67 that the other lists lack, in place of their fixes. */
export const TRUST: readonly MutatedFile[] = [
  {
    ...{ room, file: 'core/http/memory.ts', tests: ['test/core/http/memory.test.ts'] },
    mutants: [
      ['E30: an account has all its requests go on at once', 'before < AT_ONCE ?', 'before >= 0 ?'],
      ['E30: large bodies of an account rest by no bytes', ', bytes / BYTES_PER_MS);', ', 0);'],
      ['E30: large bodies of an account wait for as long as they like', 'waitMs > LONGEST_WAIT_MS &&', 'waitMs < 0 &&'],
      [
        'E30: who had a request a moment ago counts as nobody',
        'beside.changes !== before || pools',
        'beside.changes < before || pools',
      ],
    ],
  },
  {
    ...{
      room,
      file: 'plugins/dialects/responses/websockets.ts',
      tests: ['test/plugins/dialects/responses/websockets.test.ts'],
    },
    mutants: [
      [
        'E26: a key has as many websockets as it likes',
        'if ([...this.#open].filter((entry) => entry.key === key).length >= perKey)',
        'if ([...this.#open].filter((entry) => entry.key === key).length < 0)',
      ],
    ],
  },
  {
    ...{ room, file: 'core/plugins/audit.ts', tests: ['test/core/plugins/audit.test.ts'] },
    mutants: [
      [
        'E27: a page reads all that a moment has',
        'if (isMore && endMs - fromMs > 1) {',
        'if (isMore && endMs < fromMs) {',
      ],
    ],
  },
  {
    ...{
      room,
      file: 'plugins/stores/sqlite/ledger.ts',
      tests: ['test/plugins/stores/sqlite-lists.test.ts', 'test/plugins/policies/usage/calls-query.test.ts'],
    },
    mutants: [
      [
        'E27: a page looks at all records',
        'looked < MOST_LOOKED_AT && (looked === 0 || performance.now() < until)',
        'looked < Number.POSITIVE_INFINITY',
      ],
    ],
  },
  {
    ...{ room, file: 'core/http/read-body.ts', tests: ['test/core/http/slow-bodies.test.ts'] },
    mutants: [
      [
        'E25: files of forms fill the disk before they are booked',
        '+ chunk.length * heapPerByte',
        '+ chunk.length * 0',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/stores/kit/kept.ts', tests: ['test/plugins/stores/kit/kept.test.ts'] },
    mutants: [
      ['E29: all accounts together have no end', 'bounds.ofAll - sumOfKnown()', 'bounds.ofAll - 0 * sumOfKnown()'],
    ],
  },
  {
    ...{ room, file: 'plugins/stores/redis/index.ts', tests: ['test/plugins/stores/kit/kept.test.ts'] },
    mutants: [['E29: a Redis without maxmemory has no end', " || read('total_system_memory') * MACHINE_SHARE;", ';']],
  },
  {
    ...{ room, file: 'plugins/stores/sqlite/index.ts', tests: ['test/plugins/stores/kit/kept.test.ts'] },
    mutants: [['E29: what is kept fills the disk', '() => findDiskRoom(options.folder),', '']],
  },
  {
    ...{ room, file: 'core/http/koa.ts', tests: ['test/app/limits.test.ts'] },
    mutants: [
      [
        'E30: limits are asked when a body was read and parsed',
        'await deps.arrive(principal);',
        'await Promise.resolve(principal);',
      ],
      [
        'E57: connections are kept while it drains',
        "if (lifecycle.draining) res.setHeader('connection', 'close');",
        '',
        ['test/app/drain-delay.test.ts'],
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/agents/medical/index.ts', tests: ['test/app/medical-refusals.test.ts'] },
    mutants: [
      [
        'E31: who is refused gets no emergency number',
        'return noticesFor(language, patient?.country ?? country, crisisLine).unanswered;',
        'return noticesFor(language, patient?.country ?? country, crisisLine).unanswered.slice(0, 0);',
      ],
    ],
  },
  {
    ...{
      room,
      file: 'core/plugins/hook-guard.ts',
      tests: ['test/core/plugins/hook-guard.test.ts', 'test/app/plugin-hooks.test.ts'],
    },
    mutants: [
      [
        'E32: a hook that hangs holds every caller anew',
        'counts.pausedUntilMs = performance.now() + PAUSE_MS;',
        'counts.pausedUntilMs = 0;',
      ],
    ],
  },
  {
    ...{ room, file: 'deploy/nginx/tollgate.conf', tests: ['test/meta/proxy-logs.test.ts'] },
    mutants: [['E37: a key in a query stands in the log', '"$request_method $uri $server_protocol"', '"$request"']],
  },
  {
    ...{
      room,
      file: 'plugins/formats/anthropic/thinking.ts',
      tests: ['test/plugins/dialects/messages/native.test.ts', 'test/ingress/isolation.test.ts'],
    },
    mutants: [
      [
        'E38: signatures go out as the vendor made them',
        'return mark ? { ...block, [markField(typed)]: seal(mark) } : block;',
        'return mark ? { ...block, [markField(typed)]: mark, ...(seal && {}) } : block;',
      ],
    ],
  },
  {
    ...{ room, file: 'plugins/auth/api-key/request.ts', tests: ['test/app/admin-keys.test.ts'] },
    mutants: [
      ['E39: invisible characters are part of an id', 'if (hidden === undefined) return;', 'if (hidden !== 0) return;'],
    ],
  },
  {
    ...{ room, file: 'config/ajv.ts', tests: ['test/plugins-contract/formats.test.ts'] },
    mutants: [
      [
        'E40: a format that nobody knows is accepted',
        'if (!format) throw new Error(`unknown format',
        'if (!format) return; if (!format) throw new Error(`unknown format',
      ],
    ],
  },
  {
    ...{ room, file: 'core/calls/chat-stream.ts', tests: ['test/app/broken-streams.test.ts'] },
    mutants: [
      [
        'E54: streams that break off say nothing of their target',
        'if (!this.#said || this.#said.reported !== thrown) reportBroken(this.#deps, this.#call, target, failed);',
        'if (this.#said === null) reportBroken(this.#deps, this.#call, target, failed);',
      ],
    ],
  },
  {
    ...{
      room,
      file: 'plugins/stores/kit/write-watch.ts',
      tests: ['test/plugins/stores/write-watch.test.ts'],
    },
    mutants: [
      ['E55: a store that takes no writes is ready', 'if (this.#failure !== undefined) throw this.#failure;', ''],
    ],
  },
  {
    ...{
      room: 'company networks',
      file: 'egress/way.ts',
      tests: ['test/egress/way.test.ts', 'test/app/company-proxy.test.ts'],
    },
    mutants: [
      [
        'E67: the proxy of the environment is passed over',
        'const found = isTls ? environment?.https : environment?.http;',
        'const found = isTls ? undefined : undefined;',
      ],
      ['E67: this machine is asked for at the proxy', 'isOwnMachine(hostname) ||', 'false ||'],
      ['E67: the proxy of a provider is passed over', 'if (proxy !== undefined) return proxy || undefined;', ''],
      [
        'E67: certificates of the configuration are passed over',
        'rejectUnauthorized: true, ...rules.tls }',
        'rejectUnauthorized: true }',
      ],
      [
        'E67: a proxy is not told who asks',
        "...(authorization !== undefined && { 'proxy-authorization': authorization })",
        '',
      ],
      [
        'E67: what a proxy refuses is taken for a connection',
        'if (statusCode === 200) {',
        'if (statusCode !== undefined) {',
      ],
    ],
  },
  {
    ...{ room: 'company networks', file: 'egress/upstream.ts', tests: ['test/egress/addresses.test.ts'] },
    mutants: [
      [
        'E67: a connection has no end while calls go by it',
        'const isOld = performance.now() - connection.openedMs >= this.#limits.maxAgeMs;',
        'const isOld = false;',
      ],
    ],
  },
];
