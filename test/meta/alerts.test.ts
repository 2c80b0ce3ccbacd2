import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { ERRORS } from '../../contract/errors.ts';
import { startGateway } from '../support/gateways/gateway.ts';

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Labels of each metric in the table of the docs. */
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

/** Name of a metric as in the docs, without the suffixes of a histogram's series. */
const plain = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '');
/** Labels that Prometheus adds to every scrape. */
const OF_SCRAPES = ['instance', 'job', 'le'];

/** Metrics of Node and the process; the page lists only their prefixes. */
const OF_NODE = /^tollgate_(?:nodejs|process)_/;

/** Metrics in a rule's expression, and the labels that it selects or groups by. */
function namesIn(expr: string) {
  const metrics = [...expr.matchAll(/\btollgate_\w+/g)].map(([name]) => plain(name));
  const selected = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, inner = '']) =>
    [...inner.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  );
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inner = '']) => inner.split(/,\s*/));
  return { metrics, labels: [...selected, ...grouped] };
}

interface GrafanaPanel {
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

describe('deploy/grafana/dashboard.json', () => {
  const { panels } = JSON.parse(read('deploy/grafana/dashboard.json')) as { readonly panels: readonly GrafanaPanel[] };
  const shown = panels.filter(({ type }) => type !== 'row');

  it('has panels with unique titles, each with a query', () => {
    expect(shown.length).to.be.at.least(15);
    expect(new Set(panels.map(({ title }) => title)).size).to.equal(panels.length);
    for (const { title, targets = [] } of shown) expect(targets.length, title).to.be.at.least(1);
  });

  for (const { title, targets = [] } of shown)
    it(`"${title}" queries existing metrics and labels`, () => {
      for (const { expr, legendFormat } of targets) {
        const { metrics, labels } = namesIn(expr);
        expect(metrics.length, expr).to.be.at.least(1);
        for (const metric of metrics.filter((name) => !OF_NODE.test(name)))
          expect(documented.has(metric), metric).to.equal(true);
        const known = new Set([...OF_SCRAPES, ...metrics.flatMap((name) => documented.get(name) ?? [])]);
        const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
        for (const label of [...labels, ...named]) expect(known.has(label), `${label} in ${expr}`).to.equal(true);
        for (const [, codes = ''] of expr.matchAll(/error=~"([^"]+)"/g))
          for (const code of codes.split('|')) expect(ERRORS, code).to.have.property(code);
      }
    });

  it('queries metrics that a gateway has after one call', async () => {
    const gateway = await startGateway();
    const text = await gateway
      .post('/v1/chat/completions', { model: 'echo/echo', messages: [{ role: 'user', content: 'Hello' }] })
      .then((response) => response.text())
      .then(() => gateway.get('/metrics'))
      .then((response) => response.text())
      .finally(() => gateway.stop());
    const requests = shown.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => namesIn(expr).metrics));
    for (const name of requests) expect(text).to.include(`# TYPE ${name} `);
  });
});

describe('deploy/prometheus/alerts.yaml', () => {
  const { groups } = parse(read('deploy/prometheus/alerts.yaml')) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  it('has rules with unique names, a severity, and instructions', () => {
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
    it(`${alert} queries existing metrics and labels`, async () => {
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

  it('queries Node metrics that a gateway has', async () => {
    const gateway = await startGateway();
    const text = await (await gateway.get('/metrics')).text().finally(() => gateway.stop());
    const ofNode = rules.flatMap(({ expr }) => namesIn(expr).metrics.filter((name) => name.includes('_nodejs_')));
    expect(ofNode).not.to.deep.equal([]);
    for (const name of ofNode) expect(text).to.include(`\n${name} `);
  });

  it('is described in docs/operate.md', () => {
    const page = read('docs/operate.md');
    for (const { alert } of rules) expect(page, alert).to.include(`\`${alert}\``);
  });
});
