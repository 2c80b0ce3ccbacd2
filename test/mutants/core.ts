import type { MutatedFile } from './mutants.ts';

/** Mutants of core: the handling of a request, and its price. */
export const CORE: readonly MutatedFile[] = [
  {
    room: 'idempotency',
    file: 'core/http/idempotency.ts',
    tests: ['test/app/idempotency.test.ts'],
    mutants: [
      [
        'E59: `Accept` is not part of what makes two requests the same',
        "headers.accept ?? ''",
        "headers.accept ? '' : ''",
      ],
      [
        'E59: of a long stream not its tail is looked at for an error',
        'body?.subarray(-LAST_FRAMES)',
        'body?.subarray(0, LAST_FRAMES)',
      ],
      [
        'another request under the same key gets the first one’s response',
        'if (!found || found.fingerprint === fingerprint) return found;',
        'if (!found || fingerprint) return found;',
      ],
      ['users of one account share keys', '[account, userId, path, key]', '[account, path, key]'],
      ['errors are kept', 'if (statusCode < 200 || statusCode > 299) return undefined;', ''],
      ['E33: a replay is not checked as a call', 'await checkAgain(deps, state, principal, opened);', ''],
      ['a replay tells a cost', "ctx.set('x-tollgate-cost-usd', '0');", "ctx.set('x-tollgate-lane', 'native');"],
      [
        'a key stays taken when its request failed',
        '    } finally {\n      await opened();',
        '    } finally {\n      await Promise.resolve();',
      ],
    ],
  },
  {
    room: 'memory in flight',
    file: 'core/http/memory.ts',
    tests: ['test/core/http/memory.test.ts'],
    mutants: [
      ['E25: one owner may hold nearly all', 'const HELD_PER_FREE = 2;', 'const HELD_PER_FREE = 200;'],
      ['nothing is kept for small bodies', 'const FLOOR_SHARE = 1 / 8;', 'const FLOOR_SHARE = 0;'],
      [
        'large bodies use the part for small ones',
        'else if (next <= smallBytes && floor.fits',
        'else if (next >= 0 && floor.fits',
      ],
      [
        'a hold that ends is not given back',
        'this.#pool.add(this.#owner, -this.#bytes);',
        'this.#pool.add(this.#owner, 0);',
      ],
      [
        'who is over the own share is told that the gateway is full',
        "? new GatewayError('rate_limited', OWN_SHARE",
        "? new GatewayError('overloaded', OWN_SHARE",
      ],
      [
        'E25: a body may come as slowly as it likes',
        'if (each.bytes < bytes) {',
        'if (each.bytes < 0) {',
        ['test/core/http/slow-bodies.test.ts', 'test/core/http/memory.test.ts'],
      ],
    ],
  },
  {
    room: 'facts of a request',
    file: 'contract/facts.ts',
    tests: ['test/contract/facts.test.ts'],
    mutants: [
      ['`__proto__` is a name like any', "if (name === '__proto__') throw", "if (name === '__prot__') throw"],
      ['1e400 is taken', '&& !Number.isFinite(value))', '&& Number.isNaN(value))'],
      [
        'a field in the guise of another is not noticed',
        'return field.toUpperCase().toLowerCase();',
        'return field;',
        ['test/core/calls/disguised-fields.test.ts', 'test/contract/facts.test.ts'],
      ],
      [
        'addresses are not looked for',
        'this.#notes.media.push({ address: text, param: toParam(place, at) });',
        'return;',
      ],
      [
        'fields that act at the vendor are not noted',
        'this.#notes.needs.push({ ...effect, param: toParam(place, at) });',
        'return;',
        ['test/contract/facts.test.ts', 'test/ingress/messages-native.test.ts'],
      ],
      [
        'tools cost nothing',
        'if (!UNREAD.has(name)) notes.inputTokens += tokens;',
        'return;',
        ['test/core/calls/tokens.test.ts'],
      ],
    ],
  },
  {
    room: 'facts of a request',
    file: 'contract/json.ts',
    tests: ['test/contract/json-bounds.test.ts'],
    mutants: [
      ['depth has no bound', "if (depth > maxDepth) exceeded = 'depth';", ''],
      ['an escaped quote ends a text', 'if ((quote - first) % 2 === 0) return at;', 'if (quote >= first) return at;'],
    ],
  },
  {
    room: 'gate of effects',
    file: 'core/calls/ingress.ts',
    tests: ['test/app/server-tools.test.ts'],
    mutants: [
      [
        'every key may use every tool of a vendor',
        'if (!refused) return beyondPlan.map(',
        'if (refused !== null) return beyondPlan.map(',
      ],
      ['a plan does not allow tools', '!isToolAllowed(plan?.plan.serverTools, tool)', '!isToolAllowed([], tool)'],
      ['versions of a tool are other tools', "allowed.includes(name.replace(VERSION, ''))", 'allowed.includes(name)'],
      [
        'a key may ask for any model by a field',
        "for (const { provider } of kind === 'model' ? targets : [])",
        "for (const { provider } of kind === 'native' ? targets : [])",
        ['test/ingress/vendor-effects.test.ts'],
      ],
      [
        'what a vendor would keep passes',
        "if (does === 'stores') throw keptThere(field, provider);",
        '',
        ['test/core/calls/effects.test.ts'],
      ],
      [
        'files in the operator’s account are everybody’s',
        "if (kind === 'reference' && row?.references !== true)",
        "if (kind === 'reference' && row === undefined)",
        ['test/ingress/messages-native.test.ts'],
      ],
      [
        'a condition is left out like a wish',
        'if (CONDITIONS.get(field)?.test(',
        'if (CONDITIONS.get(field.toUpperCase())?.test(',
        ['test/ingress/conditions.test.ts'],
      ],
      [
        'addresses of the inner network are passed on',
        'if (!refused) return;\n  const { param } = refused;\n  throw new GatewayError(',
        'if (refused !== null) return;\n  const { param } = refused;\n  throw new GatewayError(',
        ['test/ingress/cases.test.ts', 'test/app/bad-input.test.ts'],
      ],
    ],
  },
  {
    room: 'gate of effects',
    file: 'contract/hosts.ts',
    tests: ['test/contract/facts.test.ts'],
    mutants: [
      ['link-local addresses are public', "'127.0.0.0/8', '169.254.0.0/16', ", "'127.0.0.0/8', "],
      ['E35: 6to4 addresses are public', "'2002::/16', ", ''],
      ['`.lan` is public', 'localdomain|lan|corp', 'localdomain|corp'],
    ],
  },
  {
    room: 'gate of effects',
    file: 'core/calls/seals.ts',
    tests: ['test/ingress/isolation.test.ts'],
    mutants: [
      [
        'a seal opens in every account',
        "tag(key, ['seal', account, deployment, data]), mark)",
        "tag(key, ['seal', account, deployment, data]).length ? mark : '', mark)",
        ['test/ingress/isolation.test.ts', 'test/ingress/messages-native.test.ts'],
      ],
    ],
  },
  {
    room: 'paths and credentials',
    file: 'core/http/paths.ts',
    tests: ['test/core/http/paths.test.ts', 'test/app/paths.test.ts'],
    mutants: [
      [
        'E36: routes of operators have many spellings',
        'matched.length > 0 && matched.every((layer) => !exact.has(layer.path))',
        'matched.length > 0',
      ],
      [
        'a hint tells strangers of operators’ routes',
        "if (role === 'admin' || path.startsWith(OF_OPERATORS)) hidden.add(path);",
        '',
      ],
    ],
  },
  {
    room: 'paths and credentials',
    file: 'core/http/failed-credentials.ts',
    tests: ['test/core/http/failed-credentials.test.ts', 'test/app/failed-credentials.test.ts'],
    mutants: [
      [
        'E34: wrong keys of one address are not limited',
        'if (minute.failed <= limit) throw error;',
        'if (minute.failed >= 0) throw error;',
      ],
      [
        'an address over the limit looks keys up for ever',
        'if (minute.lookups >= limit * LOOKUPS) throw tooMany(minute);',
        '',
      ],
    ],
  },
  {
    room: 'paths and credentials',
    file: 'contract/hosts.ts',
    tests: ['test/core/http/failed-credentials.test.ts', 'test/app/failed-credentials.test.ts'],
    mutants: [['each address of an IPv6 network counts alone', '.slice(0, 4)', '.slice(0, 8)']],
  },
  {
    room: 'paths and credentials',
    file: 'core/http/lifecycle.ts',
    tests: ['test/core/http/client-address.test.ts'],
    mutants: [
      ['a caller says its own address', 'return chain.at(-hops) ?? chain[0] ?? own;', 'return chain[0] ?? own;'],
    ],
  },
  {
    room: 'paths and credentials',
    file: 'contract/scopes.ts',
    tests: ['test/core/http/operator-rights.test.ts'],
    mutants: [
      ['E41: any scope opens any route', "return scope === 'any' || (", 'return scope !== undefined || ('],
      [
        'what is for admins alone is for every operator',
        "if (isAdmin === true || scopes === undefined) return isAdmin === true;\n  return scope === 'any' ||",
        "if (isAdmin === true || scopes === undefined) return isAdmin === true;\n  return scope === 'any' || scope === undefined ||",
      ],
    ],
  },
  {
    room: 'redaction',
    file: 'config/redact.ts',
    tests: ['test/core/plugins/redact-text.test.ts'],
    mutants: [
      [
        'keys of vendors are shown',
        'for (const shape of CREDENTIAL_SHAPES) shown = shown.replace(shape, REDACTED);',
        '',
      ],
    ],
  },
  {
    room: 'redaction',
    file: 'contract/secret-pattern.ts',
    tests: ['test/core/plugins/redact-text.test.ts'],
    mutants: [
      ['a secret in a URL is shown', 'encodeURIComponent(value), ', ''],
      [
        'of two secrets the shorter one is cut first',
        'sort((a, b) => b.length - a.length)',
        'sort((a, b) => a.length - b.length)',
      ],
    ],
  },
  {
    room: 'redaction',
    file: 'contract/redaction.ts',
    tests: ['test/core/calls/failures.test.ts', 'test/faults/secrets.test.ts'],
    mutants: [
      [
        'a vendor’s error shows addresses',
        "for (const secret of SECRETS) shown = shown.replace(secret, '[redacted]');",
        '',
      ],
      [
        'a vendor’s error shows the key it was sent',
        'return pattern ? text.replace(pattern, REDACTED) : text;',
        'return text;',
      ],
    ],
  },
  {
    room: 'prices',
    file: 'contract/price-rows.ts',
    tests: ['test/contract/price-rows.test.ts'],
    mutants: [
      [
        'a price holds at the moment at which it ends',
        'if (at < from || at >= until ||',
        'if (at < from || at > until ||',
      ],
      [
        'a row for certain hours does not come before the one of all hours',
        '(windows === undefined && found)',
        '(windows !== undefined && found)',
      ],
      ['Sunday is the first day', 'getUTCDay() + 6) % DAYS.length', 'getUTCDay()) % DAYS.length'],
    ],
  },
  {
    room: 'prices',
    file: 'contract/prices.ts',
    tests: ['test/models/pricing.test.ts'],
    mutants: [
      [
        'a unit without a price is free',
        'if (pico === undefined) bill.isKnown = false;',
        'if (pico === undefined) bill.isKnown = true;',
      ],
      ['a tier holds from the tokens on that it is above', 'if (prompt > above) {', 'if (prompt >= above) {'],
      [
        'cached tokens are counted twice',
        'input: prompt - cached - written, cached',
        'input: prompt - written, cached',
      ],
      ['the region costs nothing', 'factor = region === undefined ? 1 :', 'factor = region !== null ? 1 :'],
      [
        'the dearest tier is not reserved',
        "const isAny = tier === undefined || tier === null || tier === 'auto';",
        'const isAny = tier === null;',
        ['test/models/pricing.test.ts', 'test/app/vendor-bills.test.ts'],
      ],
      [
        'the lowest tier comes first',
        'rows.sort((a, b) => b.above - a.above)',
        'rows.sort((a, b) => a.above - b.above)',
      ],
    ],
  },
  {
    room: 'drain',
    file: 'core/http/lifecycle.ts',
    tests: ['test/core/http/lifecycle.test.ts'],
    mutants: [
      [
        'E59: requests without an end keep a drain',
        'for (const { controller } of this.#endless.toArray()) controller.abort(SHUTDOWN);',
        '',
      ],
      [
        'E59: requests without an end begin while it drains',
        '(isEndless && this.draining)',
        '(isEndless && this.#expired)',
      ],
      ['running calls do not end at the deadline', 'of [this.#running, this.#endless])', 'of [this.#endless])'],
      ['what does not end at the deadline is never cut', 'server.closeAllConnections();', ''],
      [
        'the listener closes at once',
        'await new Promise((resolve) => setTimeout(resolve, delayMs));',
        '',
        ['test/core/http/lifecycle.test.ts', 'test/app/drain-delay.test.ts'],
      ],
    ],
  },
  {
    room: 'upstream',
    file: 'egress/attempt.ts',
    tests: ['test/egress/answers.test.ts', 'test/egress/response-budget.test.ts'],
    mutants: [
      [
        'redirects are taken',
        'if (status >= 300 && status < 400)',
        'if (status >= 300 && status < 300)',
        ['test/egress/answers.test.ts'],
      ],
      [
        'E28: answers of vendors may need all memory',
        'if (budget.reservedBytes + bytes > budget.limitBytes)',
        'if (budget.reservedBytes + bytes < 0)',
        ['test/egress/response-budget.test.ts'],
      ],
      [
        'an answer has no end',
        "if (attempt.dueMs <= performance.now()) attempt.expire('total');\n      else",
        '',
        ['test/egress/body.test.ts', 'test/egress/upstream.test.ts'],
      ],
    ],
  },
];
