import { expect } from 'chai';
import { isRelativeClause, readCommentSentences, readComments } from './comments.ts';

const ALL = [
  ...['contract', 'core', 'config', 'cli', 'egress', 'models', 'openapi', 'plugins', 'routing'],
  ...['bench', 'test'],
];

/** Highest share of comment sentences that begin with a relative clause, in percent. It only falls; the aim is 5. */
const MOST_CLAUSES = 1;
/** Highest share in a folder whose comments are plain. */
const MOST_IN_PLAIN = 5;
/** Folders whose comments are plain. Every folder belongs here in the end. */
const PLAIN: readonly string[] = [
  'bench',
  'cli',
  'config',
  'contract',
  'core',
  'egress',
  'models',
  'openapi',
  'plugins/agents',
  'plugins/auth',
  'plugins/console',
  'plugins/dialects',
  'plugins/formats',
  'plugins/guardrails',
  'plugins/operations',
  'plugins/policies/access-log.ts',
  'plugins/policies/accounts',
  'plugins/policies/admin',
  'plugins/policies/alias-parameters.ts',
  'plugins/policies/cache',
  'plugins/policies/feature-hints.ts',
  'plugins/policies/kit',
  'plugins/policies/limits',
  'plugins/policies/metrics',
  'plugins/policies/mirror.ts',
  'plugins/policies/model-refresh',
  'plugins/policies/notices',
  'plugins/policies/otel',
  'plugins/policies/overload.ts',
  'plugins/policies/reconcile',
  'plugins/policies/usage',
  'plugins/providers',
  'plugins/secrets',
  'plugins/stores',
  'plugins/tts',
  'routing',
  'test/app/',
  'test/chaos/',
  'test/cli/',
  'test/clients/',
  'test/config/',
  'test/conformance/',
  'test/contract/',
  'test/core/',
  'test/docs/',
  'test/egress/',
  'test/exchanges/',
  'test/failures/',
  'test/fixtures/',
  'test/ingress/',
  'test/meta/',
  'test/models/',
  'test/mutants/',
  'test/openapi/',
  'test/plugins-contract/',
  'test/plugins/',
  'test/routing/',
  'test/support/',
];

const sentences = readCommentSentences(...ALL);

function shareOf(folder: string): number {
  const inFolder = sentences.filter(({ file }) => file.startsWith(folder));
  return (100 * inFolder.filter(isRelativeClause).length) / inFolder.length;
}

describe('comments', () => {
  it('begin with a noun or a verb: the share of relative clauses does not grow', () => {
    expect(shareOf('')).to.be.at.most(MOST_CLAUSES);
  });

  for (const folder of PLAIN)
    it(`are plain in ${folder}`, () => {
      expect(shareOf(folder)).to.be.at.most(MOST_IN_PLAIN);
    });

  it('are split into sentences, whatever marks them', () => {
    const text = [
      '/** What a hook did. Returns nothing. */',
      'const a = 1; // Where it stands',
      '  // One comment',
      '  // of two lines.',
      '/**',
      ' * The thing that counts: 2.',
      ' * @param name What it is',
      ' */',
    ].join('\n');
    expect(readComments(text).map(({ line, text: comment }) => [line, comment])).to.deep.equal([
      [1, 'What a hook did. Returns nothing.'],
      [2, 'Where it stands'],
      [3, 'One comment of two lines.'],
      [5, 'The thing that counts: 2. @param name What it is'],
    ]);
  });
});
