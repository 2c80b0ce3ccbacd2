import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { ERRORS } from '../../core/contract/errors.ts';
import { startGateway } from '../support/gateways/gateway.ts';

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The labels of each metric in the table of the docs. */
const documented = new Map(
  read('docs/operate.md')
    .split('\n')
    .filter((line) => line.startsWith('| `tollgate_'))
    .map((line) => {
      const [name = '', labels = ''] = line.slice(2, -2).split(' | ');
      const before = labels.split(':')[0] ?? '';
      return [name.replaceAll('`', ''), [...before.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)] as const;
    }),
);

/** The name of a metric as the docs have it: a histogram's series have endings. */
const plain = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '');
/** Those that Prometheus gives to all that it scrapes. */
const OF_SCRAPES = ['instance', 'job', 'le'];

/** What a rule's expression names: metrics, and the labels that it selects or groups them by. */
function namesIn(expr: string) {
  const metrics = [...expr.matchAll(/\btollgate_\w+/g)].map(([name]) => plain(name));
  const selected = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, inner = '']) =>
    [...inner.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  );
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inner = '']) => inner.split(/,\s*/));
  return { metrics, labels: [...selected, ...grouped] };
}

describe('deploy/prometheus/alerts.yaml', () => {
  const { groups } = parse(read('deploy/prometheus/alerts.yaml')) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  it('has rules with names of their own, a severity, and words that say what to do', () => {
    expect(rules.length).to.be.at.least(10);
    expect(new Set(rules.map(({ alert }) => alert)).size).to.equal(rules.length);
    for (const { alert, for: span = '1m', labels, annotations, ...rest } of rules) {
      expect(Object.keys(rest), alert).to.deep.equal(['expr']);
      expect(alert).to.match(/^Tollgate[A-Z]\w+$/);
      expect(span, alert).to.match(/^\d+[smh]$/);
      expect(labels['severity'], alert).to.be.oneOf(['info', 'warning', 'critical']);
      expect(annotations['summary'], alert).to.match(/\S{3}/);
      expect(annotations['description'], alert).to.match(/\.$/);
    }
  });

  for (const { alert, expr, annotations } of rules)
    it(`${alert} asks for metrics and labels that there are`, async () => {
      const { metrics, labels } = namesIn(expr);
      for (const metric of metrics.filter((name) => !name.startsWith('tollgate_nodejs_')))
        expect(documented.has(metric), metric).to.equal(true);
      const known = new Set([...OF_SCRAPES, ...metrics.flatMap((name) => documented.get(name) ?? [])]);
      const shown = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label);
      for (const label of [...labels, ...shown]) expect(known.has(label), label).to.equal(true);
      for (const [, codes = ''] of expr.matchAll(/error=~?"([^"]+)"/g))
        for (const code of codes.split('|')) expect(ERRORS, code).to.have.property(code);
      for (const pair of ['()', '{}', '[]'])
        expect(expr.split(pair[0] ?? '').length, `${pair} in ${expr}`).to.equal(expr.split(pair[1] ?? '').length);
    });

  it('asks for metrics of Node that a gateway gives', async () => {
    const gateway = await startGateway();
    const text = await (await gateway.get('/metrics')).text().finally(() => gateway.stop());
    const ofNode = rules.flatMap(({ expr }) => namesIn(expr).metrics.filter((name) => name.includes('_nodejs_')));
    expect(ofNode).not.to.deep.equal([]);
    for (const name of ofNode) expect(text).to.include(`\n${name} `);
  });

  it('is what docs/operate.md tells of', () => {
    const page = read('docs/operate.md');
    for (const { alert } of rules) expect(page, alert).to.include(`\`${alert}\``);
  });
});
