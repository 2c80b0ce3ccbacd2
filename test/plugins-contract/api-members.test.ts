import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { definePlugin } from '../../contract/index.ts';
import { createGateway } from '../../core/gateway.ts';

/**
 * Members of `api` at the first level: those that authors of providers, guardrails and document stores use. Others belong
 * to a group.
 */
const FIRST = [
  ...['instance', 'log', 'settings'],
  ...['route', 'upgrade', 'use', 'hook', 'command'],
  ...['keyv', 'stores', 'http', 'fetch', 'chat', 'keep', 'provide', 'require', 'redact'],
  ...['onRegistered', 'onReady', 'onClose'],
  ...['models', 'books', 'operators'],
];

/** Registrations of plugins of one kind. */
const OF_KINDS = ['provider', 'offer', 'operation', 'dialect', 'schema', 'agent', 'agents', 'store'];

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  stores: ['kind', 'sets', 'counters', 'stored', 'health', 'share', 'shared', 'personalData'],
  models: [
    ...['list', 'catalog', 'aliases', 'alias', 'problemOf', 'hasServer'],
    ...['routing', 'offers', 'listAtProvider', 'tables'],
    ...['call', 'draft', 'sendTo', 'checkEffects'],
  ],
  books: ['estimate', 'limitOutput', 'ledger', 'records'],
  operators: [
    ...['gateway', 'audit', 'auditLog', 'renameInAuditLog', 'allPersonalData', 'validate', 'useModelTable', 'gather'],
    ...['gauge', 'gauges'],
    ...['reportParts', 'watchStore', 'watchRefusals', 'announce', 'offerSignIn'],
  ],
};

describe('the members of api', () => {
  let members: Readonly<Record<string, readonly string[]>>;

  before(async () => {
    const look = definePlugin({
      name: 'look',
      kind: 'policy',
      apiVersion: 1,
      permissions: ['operators'],
      setup(api) {
        const groups = Object.keys(GROUPS) as readonly ('stores' | 'models' | 'books' | 'operators')[];
        members = {
          first: Object.keys(api),
          ...Object.fromEntries(groups.map((group) => [group, Object.keys(api[group])])),
        };
      },
    });
    const gateway = await createGateway({
      config: { providers: { echo: {} }, logging: { level: 'silent' } },
      ...{ plugins: [look], listen: false, env: {} },
    });
    await gateway.close();
  });

  it('are few at the first level', () => {
    expect(members['first']).to.have.members([...FIRST, ...OF_KINDS]);
  });

  for (const [group, names] of Object.entries(GROUPS))
    it(`are these in the group ${group}, and docs/plugins.md names each`, () => {
      expect(members[group]).to.have.members(names);
      const page = readFileSync(path.join(PACKAGE_ROOT, 'docs/plugins.md'), 'utf8');
      const shown = group === 'stores' ? names.filter((name) => /share|personal/.test(name)) : names;
      expect(shown.filter((name) => !new RegExp(`\`[^\`]*\\b${name}\\b[^\`]*\``).test(page))).to.deep.equal([]);
    });
});
