import { expect } from 'chai';
import { readSources, type SourceFile } from './source-tree.ts';

/**
 * An ended call must not stay reachable. V8 promotes objects that survive two young collections, and each promoted call
 * slows later ones. Two constructs retained calls; these tests forbid them on the path of a call.
 */
const FOLDERS = [
  'contract',
  'core',
  'egress',
  'routing',
  'models',
  'plugins/auth',
  'plugins/dialects',
  'plugins/formats',
  'plugins/providers',
  'plugins/policies',
];

/**
 * Maps and Sets with deletions. V8 replaces their table after some deletions. The old table, once in old space, retains
 * all entries that passed through it, so work in flight uses a `LinkedList`. The listed ones hold no work in flight, or
 * only few calls use them.
 */
const WITH_DELETIONS: Readonly<Record<string, string>> = {
  'core/http/memory.ts moving': 'accounts with many requests at once',
  'core/http/memory.ts queues': 'accounts with bodies over 64 KB',
  'core/http/memory.ts this.#byOwner': 'only when there are too many owners',
  'core/http/serve.ts this.#closing': 'generations',
  'core/http/serve.ts this.#former': 'generations',
  'core/http/server.ts open': 'TLS handshakes',
  'core/http/upgrades.ts this.#open': 'websockets',
  'core/plugins/foundation.ts this.#users': 'instances',
  'core/plugins/foundation.ts this.#values': 'instances',
  'core/plugins/foundation.ts users': 'instances',
  'contract/fresh-reads.ts known': 'records of operators',
  'contract/fresh-reads.ts pending': 'records of operators',
  'core/plugins/operation-routes.ts left': 'files of one form, while it is read',
  'core/plugins/plugin-secrets.ts redactors': 'configurations',
  'core/plugins/registry.ts this.routes': 'at start',
  'core/plugins/stream-changes.ts this.#held': 'choices of one stream, as long as it lives',
  'core/calls/failover.ts rivals': 'attempts of one hedged call',
  'core/calls/failover.ts attempt.rivals': 'attempts of one hedged call',
  'egress/egress.ts known': 'secrets, while exchanges are recorded',
  'egress/upstream.ts this.#all': 'connections',
  'models/catalog.ts this.#known': 'only when there are too many names',
  'routing/choose-targets.ts this.#targets': 'only when there are too many conversations',
  'routing/health-book.ts openElsewhere': 'targets that open and close',
  'routing/health-book.ts ours': 'targets that open and close',
  'routing/health-book.ts this.#unconfirmed': 'once for each name',
  'routing/target-health.ts this.#waiting': 'only when there are too many names',
  'plugins/auth/api-key/manage-keys.ts running': 'changes of keys',
  'plugins/auth/api-key/verify-key.ts loading': 'keys that are read from the store, every two seconds at most',
  'plugins/auth/api-key/verify-key.ts writing': 'times of last use, written once in a while',
  'plugins/auth/jwt/index.ts found': 'words of one token',
  'plugins/dialects/ollama/index.ts calls': 'tool calls of one stream',
  'plugins/dialects/responses/socket.ts stored': 'responses of one websocket',
  'plugins/dialects/responses/websockets.ts this.#open': 'websockets',
  'plugins/formats/anthropic/native.ts signatures': 'blocks of one stream',
  'plugins/formats/bedrock/read-response.ts this.#blocks': 'blocks of one stream',
  'plugins/formats/google/read-contents.ts open': 'tool calls of one request',
  'plugins/formats/native-change.ts names': 'fields of one request',
  'plugins/providers/ai-sdk/read-result.ts blocks': 'thoughts of one response',
  'plugins/formats/openai-chat/request.ts known': 'only when there are too many models',
  'plugins/policies/accounts/budgets/budget-table.ts known': 'only when there are too many accounts',
  'plugins/policies/accounts/budgets/openings.ts opened': 'while the store is away',
  'plugins/policies/accounts/budgets/shares.ts this.#byId': 'budgets without a call in the last ten minutes',
  'plugins/policies/accounts/holds/leases.ts all':
    'places of a limit of calls at once, which are kept for the next call',
  'plugins/policies/accounts/holds/leases.ts .all':
    'places of a limit of calls at once, which are kept for the next call',
  'plugins/policies/accounts/holds/leases.ts this.#places': 'limits of calls at once',
  'plugins/policies/accounts/holds/leases.ts this.#requesting': 'windows, when a part is asked for',
  'plugins/policies/accounts/holds/leases.ts this.#slices': 'windows that ended',
  'plugins/policies/accounts/holds/provider-limits.ts this.#waiting': 'calls that wait for a limit of a provider',
  'plugins/policies/admin/audit-export.ts pauses': 'receivers of the audit log',
  'plugins/policies/cache/index.ts booked': 'accounts with responses in the cache',
  'plugins/policies/cache/index.ts own': 'responses in the cache',
  'plugins/policies/notices/watches.ts gone': 'notices',
  'plugins/policies/notices/watches.ts open': 'notices',
  'plugins/policies/usage/follow-calls.ts reported': 'readers of the live list',
  'plugins/policies/kit/calendar-windows.ts FORMATS': 'only when there are too many time zones',
  'plugins/policies/kit/local-counters.ts places': 'while the store is away',
  'plugins/policies/kit/local-counters.ts values': 'while the store is away',
  'plugins/policies/kit/write-queue.ts waiting': 'while the store is away',
};

/** Object literals with getters, which get a new shape per object. The listed ones are created once or rarely. */
const WITH_GETTERS: Readonly<Record<string, string>> = {
  'core/calls/generation.ts catalog': 'once a generation',
  'core/app.ts openApi': 'once a gateway',
  'core/plugins/plugin-api.ts catalog': 'once an instance',
  'core/plugins/plugin-api.ts operators': 'once an instance',
  'core/plugins/plugin-api.ts kind': 'once an instance',
  'core/plugins/plugin-api.ts stored': 'once an instance',
  'core/plugins/plugin-api.ts gateway': 'once an instance',
  'core/plugins/plugin-api.ts ledger': 'once an instance',
  'plugins/policies/kit/write-queue.ts size': 'once an instance',
  'plugins/formats/openai-responses/write-output.ts isClosed': 'items of a stream in the Responses format',
};

/** Names of the Maps and Sets in a file with deletions. */
function deletionsOf({ name, code }: SourceFile): readonly string[] {
  return [...code.matchAll(/([\w#.]+)\??\.(?:delete|clear)\(/g)].flatMap(([, owner = '']) => {
    const field = owner.split('.').at(-1) ?? '';
    const isTable = new RegExp(`${field}\\b[^;{}]*\\b(?:new )?(?:Map|Set)\\b`).test(code);
    return isTable ? [`${name} ${owner}`] : [];
  });
}

/** Getters in object literals: those outside classes, judged by indentation. */
function getterLiteralsOf({ name, code }: SourceFile): readonly string[] {
  const lines = code.split('\n');
  return lines.flatMap((line, at) => {
    const [, indent = '', getter] = /^(\s+)get (\w+)\(\)/.exec(line) ?? [];
    if (getter === undefined) return [];
    const opening = lines
      .slice(0, at)
      .findLast((each) => each.trim() !== '' && /^\s*/.exec(each)?.[0].length === indent.length - 2);
    return /^\s*(?:export )?(?:default )?(?:abstract )?class\b/.test(opening ?? '') ? [] : [`${name} ${getter}`];
  });
}

describe('ended calls are released', () => {
  const sources = readSources(...FOLDERS);

  it('because no work in flight is an entry of a Map or a Set', () => {
    const found = new Set(sources.flatMap(deletionsOf));
    expect([...found].filter((each) => !(each in WITH_DELETIONS))).to.deep.equal([]);
    expect(
      Object.keys(WITH_DELETIONS).filter((each) => !found.has(each)),
      'no longer there',
    ).to.deep.equal([]);
  });

  it('because no object literal of a call has a getter', () => {
    const found = new Set(sources.flatMap(getterLiteralsOf));
    expect([...found].filter((each) => !(each in WITH_GETTERS))).to.deep.equal([]);
    expect(
      Object.keys(WITH_GETTERS).filter((each) => !found.has(each)),
      'no longer there',
    ).to.deep.equal([]);
  });
});
