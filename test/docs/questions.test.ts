import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const HOW = 'docs/how-to/';

/** Questions of operators, newcomers and plugin authors, each with the page and words of its answer. */
const QUESTIONS: readonly (readonly [question: string, page: string, words: RegExp])[] = [
  ['who spent what last week', `${HOW}see-spending.md`, /--period last-week/],
  ['why did this call fail', `${HOW}find-why-a-call-failed.md`, /tollgate calls show/],
  ['which key is leaking', `${HOW}stop-a-leaking-key.md`, /--by key/],
  ['what happens when a budget ends', `${HOW}set-a-budget.md`, /402 `insufficient_balance`/],
  ["rotate a vendor's key", `${HOW}rotate-a-vendor-key.md`, /tollgate reload/],
  ['add an alias with a fallback', `${HOW}add-a-model-alias.md`, /smart: \[/],
  ['stop one user', `${HOW}stop-a-user.md`, /tollgate users block/],
  ['what does this plugin do and cost', `${HOW}inspect-a-plugin.md`, /PERMISSIONS/],
  ['upgrade', `${HOW}upgrade.md`, /tollgate check/],
  ['back up and restore', `${HOW}back-up-and-restore.md`, /pg_dump/],
  ['move to Postgres or Redis', `${HOW}move-to-postgres-or-redis.md`, /store export/],
  ['three replicas behind nginx', `${HOW}run-replicas-behind-nginx.md`, /upstream tollgate/],
  ['alert when a vendor is down', `${HOW}alert-when-a-vendor-is-down.md`, /target\.opened/],
  ['behind a company proxy', `${HOW}use-an-https-proxy.md`, /HTTPS_PROXY/],
  ['Claude Code for 50 people with company sign-in', `${HOW}claude-code-with-company-sign-in.md`, /managed-settings/],
  ['limit a team', `${HOW}limit-a-team.md`, /--tag team=search/],
  ['CSV for finance', `${HOW}export-csv-for-finance.md`, /--csv/],
  ["delete a person's data", `${HOW}erase-a-user.md`, /users erase/],
  ['set the price of a new model', `${HOW}set-a-model-price.md`, /prices:/],
  ['read and export the audit log', `${HOW}read-the-audit-log.md`, /tollgate audit/],
  ['what is it', 'README.md', /self-hosted gateway/],
  ['why not LiteLLM', 'README.md', /LiteLLM/],
  ['how do I install it', 'README.md', /npm start/],
  ['first answer', 'README.md', /"stream":true/],
  ['how do I add my vendor', `${HOW}add-a-provider.md`, /apiKey/],
  ['is it safe with my keys', 'docs/security.md', /## Are my keys safe/],
  ['first provider', 'docs/plugins/1-provider.md', /tollgate plugins new/],
  ['change a request', 'docs/plugins/4-life-of-a-call.md', /prepare/],
  ['hold text back in a stream', 'docs/plugins/5-streams.md', /push/],
  ['store something', 'docs/plugins.md', /api\.keyv/],
  ['test it', 'docs/plugins/12-testing.md', /testProvider/],
  ['publish it', 'docs/plugins/13-publishing.md', /npm publish|npm pack/],
];

const MOST_CLICKS = 2;
const MEASUREMENTS = 'docs/measurements.md';

function readPage(page: string): string {
  return readFileSync(path.join(PACKAGE_ROOT, page), 'utf8');
}

function linksOf(page: string): readonly string[] {
  const links = readPage(page).matchAll(/\]\((?!https?:)([^)#\s]+\.md)/g);
  return [...links].map(([, file = '']) => path.join(path.dirname(page), file));
}

/** Minimum number of links to follow from the README to each page. */
function countClicks(): ReadonlyMap<string, number> {
  const clicks = new Map([['README.md', 0]]);
  let pages = ['README.md'];
  for (let away = 1; away <= MOST_CLICKS; away += 1) {
    pages = [...new Set(pages.flatMap(linksOf))].filter((page) => !clicks.has(page));
    for (const page of pages) clicks.set(page, away);
  }
  return clicks;
}

describe('questions of operators, newcomers and authors', () => {
  const clicks = countClicks();
  for (const [question, page, words] of QUESTIONS)
    it(`"${question}" is answered by ${page}, at most ${MOST_CLICKS} clicks from the README`, () => {
      expect(readPage(page)).to.match(words);
      expect(clicks.get(page)).to.be.at.most(MOST_CLICKS);
    });

  it('are listed in docs/measurements.md with page and clicks', () => {
    const rows = QUESTIONS.map(([question, page]) => {
      const link = path.relative('docs', page);
      return `| ${question} | [${path.basename(page, '.md')}](${link}) | ${clicks.get(page)} |`;
    });
    const table = `| Question | Page | Clicks |\n|---|---|---|\n${rows.join('\n')}\n`;
    const shown = readPage(MEASUREMENTS);
    const updated = shown.replace(/\| Question \| Page \| Clicks \|\n(?:\|.*\n)+/, () => table);
    if (process.env['UPDATE']) writeFileSync(path.join(PACKAGE_ROOT, MEASUREMENTS), updated);
    else expect(shown, 'UPDATE=1 npx mocha test/docs/questions.test.ts').to.equal(updated);
    expect(updated).to.include(table);
  });
});
