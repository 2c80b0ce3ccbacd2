import type { MutatedFile } from './mutants.ts';

/** Mutants of policies, keys, and the ledger that stores share. */
export const POLICIES: readonly MutatedFile[] = [
  {
    room: 'ledger',
    file: 'plugins/stores/kit/ledger.ts',
    tests: ['test/plugins/stores/memory.test.ts'],
    mutants: [
      [
        'what is held does not count against the balance',
        'account.balance - account.held - amount < floor',
        'account.balance - amount < floor',
      ],
      ['the last nano-dollar cannot be spent', 'account.held - amount < floor', 'account.held - amount <= floor'],
      ['what is held does not count against a budget', 'budget.spent + budget.held', 'budget.spent'],
      ['a request is reserved twice', "if (rows.request) return { result: { outcome: 'duplicate' } };", ''],
      ['a hold is not given back', 'held: held - request.amount,', 'held: held - cost,'],
      ['a budget that is to be uncharged is charged', '(free.includes(id) ? 0 : cost)', 'cost'],
      [
        'a credit is given twice',
        'if (request) return { result: false };\n  const { balance, credited }',
        'const { balance, credited }',
      ],
      [
        'holds are swept before they expire',
        "if (!account || hold?.state !== 'held' || hold.until >= now)",
        "if (!account || hold?.state !== 'held')",
        ['test/plugins/stores/kit/versioned-ledger.test.ts'],
      ],
      [
        'the late end of a swept call corrects nothing',
        "if (request.state === 'swept') return correct(rows, account, request, ending, storeNow);",
        "if (request.state === 'swept') return { result: storeNow > 0 };",
      ],
      ['a correction does not take back what was spent', 'spent: account.spent - back', 'spent: account.spent'],
      [
        'an account may spend more than its sums can hold',
        'account.spent + account.held + amount > MOST_MONEY',
        'account.spent + account.held + amount < 0',
      ],
      [
        'a call is counted when it ends',
        'record: facts && { facts: cleanFacts(facts), cost, at, countedAt },',
        'record: facts && { facts: cleanFacts(facts), cost, at, countedAt: at },',
      ],
    ],
  },
  {
    room: 'ledger',
    file: 'plugins/stores/kit/versioned-ledger.ts',
    tests: ['test/plugins/stores/kit/versioned-ledger.test.ts'],
    mutants: [
      ['what others changed is overwritten', 'this.#expected.set(id, version);', ''],
      ['a change waits for ever', 'if (job.since > since) return true;', 'if (job.since > 0) return true;'],
    ],
  },
  {
    room: 'ledger',
    file: 'plugins/stores/kit/check.ts',
    tests: ['test/plugins/stores/memory.test.ts', 'test/plugins/stores/kit/key.test.ts'],
    mutants: [
      [
        'one budget is held twice by one call',
        '(budgets.length > 1 && new Set(budgets.map(({ id }) => id)).size < budgets.length)',
        'false',
      ],
      [
        'amounts may be broken',
        'if (!Number.isSafeInteger(amount) || amount < 0) throw noAmount();',
        'if (amount < 0) throw noAmount();',
      ],
      [
        'long names meet in one key',
        "createHash('sha256').update(Buffer.from(text, 'utf16le'))",
        "createHash('sha256').update(Buffer.from(text.slice(0, 200), 'utf16le'))",
      ],
    ],
  },
  {
    room: 'holds and charges',
    file: 'plugins/policies/accounts/charges.ts',
    tests: ['test/app/billing-rules.test.ts', 'test/app/lowered-limits.test.ts', 'test/app/accounts.test.ts'],
    mutants: [
      [
        'balances are not enforced',
        'floor: rules.isEnforced && !isUnlimited ? 0 : Number.NEGATIVE_INFINITY',
        'floor: Number.NEGATIVE_INFINITY',
      ],
      [
        'an unknown price is free where money is limited',
        'if (cost === undefined && hold.isLimited && !rules.allowsUnknownPrice) throw unknownPrice(call);',
        '',
      ],
      [
        'a limit that the caller named is lowered',
        'namedLimit(call) !== undefined || most < leastOf',
        'most < leastOf',
      ],
      ['other calls’ holds are told as an empty account', 'if (fitsLater)\n    throw', 'if (amount < 0)\n    throw'],
      [
        'a user’s budget is not held',
        "if (userLimits?.budget !== undefined)\n    budgets.push({ whose: 'user'",
        "if (userLimits?.budget === null)\n    budgets.push({ whose: 'user'",
        ['test/app/key-limits.test.ts'],
      ],
      [
        'budgets of another provider are charged',
        '.filter((budget) => isByTarget(budget.rule) && !(target && countsTarget(budget, target)))',
        '.filter(() => false)',
        ['test/plugins/policies/accounts/budgets/call-budgets.test.ts'],
      ],
      [
        'refused calls fill the store',
        'if (count > MAX_REFUSED || (',
        'if ((',
        ['test/plugins/policies/accounts/refusal-count.test.ts'],
      ],
      [
        'what a plugin answered is rounded down',
        'const amount = Math.ceil(outcome.cost ?? 0);',
        'const amount = Math.floor(outcome.cost ?? 0);',
        ['test/plugins/policies/accounts/charge-answered.test.ts'],
      ],
    ],
  },
  {
    room: 'budgets',
    file: 'plugins/policies/accounts/budgets/budget-window.ts',
    tests: [
      'test/plugins/policies/accounts/budgets/call-budgets.test.ts',
      'test/plugins/policies/accounts/budgets/spending.test.ts',
    ],
    mutants: [
      [
        'a raise that has ended counts',
        'raises.filter(({ until }) => until > now)',
        'raises.filter(({ until }) => until > 0)',
        ['test/plugins/policies/accounts/budgets/find-budgets.test.ts'],
      ],
      [
        'the window of the first call is the last one',
        'if (known && now >= from && now < to) return known;',
        'if (known && now >= from) return known;',
      ],
      [
        'a budget of one provider counts all',
        'if (rule.provider !== undefined && rule.provider !== target.provider) return false;',
        '',
      ],
    ],
  },
  {
    room: 'budgets',
    file: 'plugins/policies/accounts/budgets/find-budgets.ts',
    tests: ['test/plugins/policies/accounts/budgets/call-budgets.test.ts'],
    mutants: [
      [
        'a budget of a tag counts calls without it',
        'if (tag !== undefined && !tags.includes(tag)) return false;',
        '',
        ['test/plugins/policies/accounts/budgets/find-budgets.test.ts'],
      ],
      [
        'a budget of a plan counts all plans',
        'if (rule.plan !== undefined && rule.plan !== plan?.name) return false;',
        '',
        ['test/plugins/policies/accounts/budgets/find-budgets.test.ts'],
      ],
      [
        'a rotated key begins its budget anew',
        'return own.includes(keyIdOf(key)) || (limitsId !== undefined && own.includes(limitsId));',
        'return own[0] === keyIdOf(key);',
      ],
    ],
  },
  {
    room: 'budgets',
    file: 'plugins/policies/accounts/budgets/notices.ts',
    tests: ['test/plugins/policies/accounts/budgets/call-budgets.test.ts', 'test/app/budgets.test.ts'],
    mutants: [
      [
        'each process tells a notice',
        "if ((await sets.add(TOLD, member)) !== 'added') return;",
        'await sets.add(TOLD, member);',
      ],
    ],
  },
  {
    room: 'webhooks',
    file: 'plugins/policies/kit/deliveries.ts',
    tests: ['test/plugins/policies/accounts/budgets/webhook.test.ts'],
    mutants: [
      ['the time of a webhook is not signed', 'secret).update(`$', 'secret).update(`'],
      [
        'a webhook is signed without the secret',
        "createHmac('sha256', secret).update(",
        "createHmac('sha256', '').update(",
      ],
      [
        'a refused notice is sent again and again',
        'if (statusCode < 500 && !AGAIN.has(statusCode)) return { isTaken: false, said };',
        '',
      ],
      ['notices wait without a bound', 'if (waiting.length >= maxWaiting) {', 'if (waiting.length < 0) {'],
    ],
  },
  {
    room: 'limits',
    file: 'plugins/policies/limits/leases.ts',
    tests: ['test/plugins/policies/limits/leases.test.ts'],
    mutants: [
      [
        'a part of a window is used beyond its end',
        '|| slice.limit !== limit || slice.endsAt <= now)',
        '|| slice.limit !== limit)',
      ],
      ['a part of a window is overdrawn', 'left < amount || slice.limit', 'left < 0 || slice.limit'],
      [
        'small windows are leased',
        'return part > 0 && part >= LEAST_CALLS * amount ? part : undefined;',
        'return part > 0 ? part : undefined;',
      ],
      [
        'what no call used is not given back',
        'if (left > 0 && endsAt > now) work.push(',
        'if (left > 0 && endsAt < 0) work.push(',
      ],
      ['all places are kept for calls to come', 'if (idle.length >= most) return false;', ''],
      [
        'a place that was refused keeps the others',
        'await Promise.allSettled(places.map((place) => this.release(place)));',
        '',
      ],
      ['a full window is asked again and again', 'if (refusing?.amount === 1) {', 'if (refusing?.amount === -1) {'],
    ],
  },
  {
    room: 'limits',
    file: 'plugins/policies/limits/index.ts',
    tests: ['test/plugins/policies/limits/collect-limits.test.ts', 'test/plugins/policies/limits/limit-holds.test.ts'],
    mutants: [
      ['a call that is larger than the limit is refused for ever', 'Math.min(wanted, tokens.limit)', 'wanted'],
      ['what was sent without a usage is given back', ': sent ? amount : 0;', ': 0;'],
      [
        'a refused call keeps its places',
        'await Promise.allSettled(places.map((place) => leases.release(place)));',
        '',
      ],
      [
        'a user’s limits are not counted',
        "if (userLimits) sources.push(sourceOf('owner'",
        "if (userLimits === null) sources.push(sourceOf('owner'",
        ['test/app/key-limits.test.ts'],
      ],
    ],
  },
  {
    room: 'overload',
    file: 'plugins/policies/overload.ts',
    tests: ['test/plugins/policies/overload.test.ts'],
    mutants: [
      [
        'E31: other processes’ work refuses calls',
        'const busyMs = Math.min(now - last, ownMs);',
        'const busyMs = Math.max(now - last, ownMs);',
      ],
      ['the only call is refused', "(reason === 'lag' && inFlight === 0)", "(reason === 'lag' && inFlight < 0)"],
      ['probes are refused', "if (ctx.state['isProbe'] === true) return next();", ''],
    ],
  },
  {
    room: 'stores that are away',
    file: 'plugins/policies/kit/write-queue.ts',
    tests: ['test/plugins/policies/kit/write-queue.test.ts'],
    mutants: [
      ['changes wait for ever', 'if (until < now) waiting.delete(pending);', 'if (until < 0) waiting.delete(pending);'],
      ['changes wait without a bound', 'if (waiting.size < maxWaiting) {', 'if (waiting.size >= 0) {'],
      [
        'what the store refuses is tried again',
        'if (isStoreFailure(error)) return onAway();',
        'if (error) return onAway();',
      ],
    ],
  },
  {
    room: 'keys and scopes',
    file: 'plugins/auth/api-key/verify-key.ts',
    tests: ['test/plugins/auth/api-key/verify.test.ts'],
    mutants: [
      [
        'a key that has expired is taken',
        'if (expiresAt !== undefined && now >= expiresAt)',
        'if (expiresAt !== undefined && now < 0)',
      ],
      [
        'a blocked key is taken',
        'if (blockedAt !== undefined)',
        'if (blockedAt === null)',
        ['test/plugins/auth/api-key/verify.test.ts', 'test/app/admin-keys.test.ts'],
      ],
      [
        'strangers learn that a key is revoked',
        'if ((credential !== undefined && !matchesHash(key, credential)) || !key.principal) throw invalidKey();',
        'if (!key.principal) throw invalidKey();',
      ],
      [
        'what was read before a revocation is kept',
        'if (loading.get(id) === promise) {\n            loading.delete(id);',
        'if (loading.get(id) !== null) {\n            loading.delete(id);',
      ],
      ['a clock that was set back keeps a key for ever', 'return age >= 0 && age < maxAgeMs', 'return age < maxAgeMs'],
    ],
  },
  {
    room: 'keys and scopes',
    file: 'plugins/auth/api-key/key-limits.ts',
    tests: ['test/plugins/auth/api-key/key-limits.test.ts'],
    mutants: [
      ['a key gets more than its maker has', 'if (wanted <= own) return wanted;', 'return wanted;'],
      [
        'a key gets models that its maker has not',
        'if (beyond === -1) return wanted;',
        'if (beyond >= -1) return wanted;',
      ],
      [
        'no list of tools allows all',
        "narrowList('server_tools', wanted, own ?? [],",
        "narrowList('server_tools', wanted, own,",
      ],
    ],
  },
  {
    room: 'keys and scopes',
    file: 'plugins/policies/kit/scopes.ts',
    tests: ['test/app/scopes.test.ts'],
    mutants: [
      [
        'an operator makes a key that may more',
        'scopes?.find((scope) => !hasScope(own, scope))',
        'scopes?.find(() => false)',
      ],
      [
        'an operator makes an admin key',
        "return others.isAdmin === true ? 'admin' :",
        "return others.isAdmin === null ? 'admin' :",
      ],
    ],
  },
  {
    room: 'keys and scopes',
    file: 'plugins/policies/kit/versions.ts',
    tests: ['test/app/admin-accounts.test.ts', 'test/app/admin-users.test.ts', 'test/app/admin-keys.test.ts'],
    mutants: [['a lost update goes through', 'throw changedMeanwhile();\n}', 'return true;\n}']],
  },
  {
    room: 'budgets',
    file: 'plugins/policies/kit/calendar-windows.ts',
    tests: ['test/plugins/policies/kit/budget-windows.test.ts'],
    mutants: [
      [
        'a month that begins on the 15th begins on the 1st',
        'date.getUTCDate() < day ? 1 : 0), day)',
        'date.getUTCDate() < day ? 1 : 0), 1)',
      ],
    ],
  },
  {
    room: 'kept documents',
    file: 'plugins/stores/kit/kept.ts',
    tests: ['test/plugins/stores/memory.test.ts', 'test/plugins/stores/kit/kept.test.ts'],
    mutants: [
      [
        'E29: an account keeps as much as it likes',
        'entry.expiresAt > now && bytes + entry.bytes <= room && count < MAX_ENTRIES',
        'entry.expiresAt > now',
      ],
      ['what was written last goes first', 'const newestFirst = entries.reverse();', 'const newestFirst = entries;'],
      ['sessions go with the rest', "expiresAt.toString(36) + (lasting ? LASTING : '')", 'expiresAt.toString(36)'],
      ['one document takes all', 'if (bytes > maxBytes * DOCUMENT_SHARE) return false;', ''],
    ],
  },
];
