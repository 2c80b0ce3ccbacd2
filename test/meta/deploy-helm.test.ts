import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { renderTemplates } from './helm-template.ts';

// Checks that are possible without Helm: the chart renders in a subset of its language, and the result is consistent
// and matches the gateway.

const CHART = path.join(PACKAGE_ROOT, 'deploy/helm/tollgate');
const read = (file: string): string => readFileSync(path.join(CHART, file), 'utf8');
const templates = Object.fromEntries(
  readdirSync(path.join(CHART, 'templates')).map((name) => [name, read(`templates/${name}`)]),
);
const chart = parse(read('Chart.yaml')) as { version: string; appVersion: string };
const defaults = parse(read('values.yaml')) as Record<string, unknown>;
const validate = new Ajv({ strict: false }).compile(JSON.parse(read('values.schema.json')));

/** Kubernetes objects have too many shapes for types here. */
// biome-ignore lint/suspicious/noExplicitAny: read by path, in tests alone.
type Manifest = any;

const SECRETS = { existingSecrets: ['tollgate'] };

function render(more: Record<string, unknown> = SECRETS): Readonly<Record<string, Manifest>> {
  const values = { ...defaults, ...more };
  expect(validate(values), JSON.stringify(validate.errors)).to.equal(true);
  const Chart = { Name: 'tollgate', Version: chart.version, AppVersion: chart.appVersion };
  const scope = { Values: values, Chart, Release: { Name: 'prod', Namespace: 'ai', Service: 'Helm' } };
  const rendered = renderTemplates(templates, scope);
  const manifests = Object.entries(rendered).filter(([name]) => name.endsWith('.yaml'));
  return Object.fromEntries(
    manifests.flatMap(([name, text]) =>
      // Helm reads YAML 1.1.
      parseAllDocuments(text, { version: '1.1' }).flatMap((document) => {
        expect(document.errors, name).to.deep.equal([]);
        const value = document.toJS() as Manifest;
        return value === null ? [] : [[value.kind, value]];
      }),
    ),
  );
}

describe('the Helm chart', () => {
  after(removeFolders);

  it('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(chart).to.include({ version, appVersion: version });
  });

  it('renders to consistent objects', () => {
    const { Deployment, Service, ConfigMap, PodDisruptionBudget, Ingress } = render();
    const { template, selector } = Deployment.spec;
    expect(Ingress).to.equal(undefined);
    expect(template.metadata.labels).to.include(selector.matchLabels);
    expect(Service.spec.selector).to.deep.equal(selector.matchLabels);
    expect(PodDisruptionBudget.spec.selector).to.deep.equal(selector);
    const [container] = template.spec.containers;
    expect(container.ports).to.deep.equal([{ name: 'http', containerPort: 8787 }]);
    expect(Service.spec.ports[0].targetPort).to.equal('http');
    expect(template.spec.volumes[0].configMap.name).to.equal(ConfigMap.metadata.name);
    expect(container.envFrom).to.deep.equal([{ secretRef: { name: 'tollgate' } }]);
    expect(container.image).to.equal(`tollgate:${chart.appVersion}`);
    const volumes = template.spec.volumes.map(({ name }: Manifest) => name);
    expect(container.volumeMounts.map(({ name }: Manifest) => name)).to.have.members(volumes);
    for (const { metadata } of Object.values(render())) expect(metadata.name).to.equal('prod-tollgate');
  });

  it('runs as an unprivileged user', () => {
    const { spec } = render()['Deployment'].spec.template;
    expect(spec.securityContext).to.include({ runAsNonRoot: true, runAsUser: 1000 });
    expect(spec.automountServiceAccountToken).to.equal(false);
    expect(spec.containers[0].securityContext).to.deep.include({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('probes existing paths of a gateway, and gives it time to drain', async () => {
    const { spec } = render()['Deployment'].spec.template;
    const [container] = spec.containers;
    const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => container[name].httpGet);
    const gateway = await startGateway();
    try {
      for (const { path: at, port, scheme } of probes) {
        expect({ port, scheme }).to.deep.equal({ port: 'http', scheme: 'HTTP' });
        expect((await gateway.get(at)).status, at).to.equal(200);
      }
    } finally {
      await gateway.stop();
    }
    const { server } = defaults['config'] as Manifest;
    expect(spec.terminationGracePeriodSeconds).to.be.above(
      Number.parseInt(server.drainDelay, 10) + Number.parseInt(server.drainTimeout, 10) + 15,
    );
  });

  it('keeps a stopping pod available until endpoints and the ingress have removed it (G40)', async () => {
    const { Deployment, Ingress } = render({
      ...SECRETS,
      ingress: { ...(defaults['ingress'] as object), enabled: true, host: 'ai.example' },
    });
    const { rollingUpdate } = Deployment.spec.strategy;
    expect(rollingUpdate).to.deep.equal({ maxSurge: 1, maxUnavailable: 0 });
    const { server } = defaults['config'] as Manifest;
    const { periodSeconds } = Deployment.spec.template.spec.containers[0].readinessProbe;
    // Replaces a preStop hook with a sleep: the gateway accepts calls while it is not ready.
    expect(Number.parseInt(server.drainDelay, 10)).to.be.at.least(periodSeconds);
    // Without `non_idempotent`: a call that reached a gateway is not sent again.
    expect(Ingress.metadata.annotations['nginx.ingress.kubernetes.io/proxy-next-upstream']).to.equal('error timeout');
  });

  it('probes below the base path of the configuration', () => {
    const config = defaults['config'] as Manifest;
    const below = { ...config, server: { ...config.server, basePath: '/llm' } };
    const [container] = render({ ...SECRETS, config: below })['Deployment'].spec.template.spec.containers;
    const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => container[name].httpGet.path);
    expect(paths).to.deep.equal(['/llm/livez', '/llm/livez', '/llm/readyz']);
  });

  it('allows ingress only to the gateways’ port, and egress to DNS, vendors and the store, not to the metadata service', () => {
    const { NetworkPolicy, Deployment } = render();
    const { podSelector, policyTypes, ingress, egress } = NetworkPolicy.spec;
    expect(Deployment.spec.template.metadata.labels).to.include(podSelector.matchLabels);
    expect(policyTypes).to.deep.equal(['Ingress', 'Egress']);
    expect(ingress).to.deep.equal([{ ports: [{ port: 'http' }] }]);
    const [names, others, ...more] = egress;
    expect(names.ports.map(({ port }: Manifest) => port)).to.deep.equal([53, 53]);
    expect(others.ports).to.deep.equal([443, 5432, 6379, 6380].map((port) => ({ port })));
    expect(others.to[0].ipBlock).to.deep.equal({ cidr: '0.0.0.0/0', except: ['169.254.0.0/16'] });
    expect(more).to.deep.equal([]);
    const peers = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress' } } }];
    const rule = { ports: [{ port: 8000 }] };
    const narrow = { enabled: true, from: peers, egressPorts: [443], extraEgress: [rule] };
    const { spec } = render({ ...SECRETS, networkPolicy: narrow })['NetworkPolicy'];
    expect(spec.ingress[0].from).to.deep.equal(peers);
    expect(spec.egress.slice(2)).to.deep.equal([rule]);
    const none = { enabled: false, egressPorts: [443] };
    expect(render({ ...SECRETS, networkPolicy: none })).to.not.have.property('NetworkPolicy');
  });

  it('passes the gateway a configuration that tollgate check accepts', async () => {
    const text = render()['ConfigMap'].data['tollgate.config.yaml'] as string;
    const env = {
      STORE_URL: 'redis://redis:6379',
      TOLLGATE_PEPPER: randomBytes(32).toString('hex'),
      OPENAI_API_KEY: 'k',
    };
    const { config } = await loadConfig({ cwd: makeFolder({ 'tollgate.config.yaml': text }), env });
    expect(config.store.plugin).to.equal('redis');
    expect(config.server).to.include({ host: '0.0.0.0', port: 8787, trustProxy: 1 });
  });

  it('has an ingress, gateway TLS and names if requested', () => {
    const { Ingress, Deployment } = render({
      ...SECRETS,
      fullnameOverride: 'gate',
      tlsSecret: 'gate-tls',
      ingress: {
        ...(defaults['ingress'] as object),
        enabled: true,
        className: 'nginx',
        host: 'ai.example',
        tlsSecret: 'ai',
      },
      extraEnv: [{ name: 'A', value: 'b' }],
    });
    expect(Ingress.spec.rules[0].http.paths[0].backend.service).to.deep.equal({ name: 'gate', port: { name: 'http' } });
    expect(Ingress.spec.tls).to.deep.equal([{ hosts: ['ai.example'], secretName: 'ai' }]);
    expect(Ingress.spec.ingressClassName).to.equal('nginx');
    const [container] = Deployment.spec.template.spec.containers;
    expect(container.readinessProbe.httpGet.scheme).to.equal('HTTPS');
    expect(container.env).to.deep.equal([{ name: 'A', value: 'b' }]);
    expect(Deployment.spec.template.spec.volumes).to.deep.include({
      name: 'tls',
      secret: { secretName: 'gate-tls', defaultMode: 0o440 },
    });
  });

  it('has every other value in its place', () => {
    const lists = {
      tolerations: [{ key: 'a' }],
      imagePullSecrets: [{ name: 'b' }],
      topologySpreadConstraints: [{ maxSkew: 1 }],
    };
    const maps = { nodeSelector: { a: 'b' }, affinity: { podAntiAffinity: {} }, resources: {} };
    const { Deployment, Service } = render({
      ...{ ...SECRETS, ...lists, ...maps, podLabels: { team: 'ai' }, podAnnotations: { note: 'x' } },
      service: { type: 'LoadBalancer', port: 80, annotations: { scheme: 'internal' } },
    });
    const { spec, metadata } = Deployment.spec.template;
    expect(spec).to.deep.include({ ...lists, nodeSelector: { a: 'b' }, affinity: { podAntiAffinity: {} } });
    expect(spec.containers[0]).to.not.have.property('resources');
    expect(metadata.labels).to.include({ team: 'ai' });
    expect(metadata.annotations).to.include({ note: 'x' });
    expect(Service.metadata.annotations).to.deep.equal({ scheme: 'internal' });
    expect(Service.spec).to.deep.include({ type: 'LoadBalancer' });
  });

  it('rolls its pods when the configuration changes', () => {
    const sum = (more: object) =>
      render({ ...SECRETS, ...more })['Deployment'].spec.template.metadata.annotations['checksum/config'];
    const { config } = defaults as { config: object };
    expect(sum({ config: { ...config, billing: 'off' } })).to.not.equal(sum({}));
  });

  it('uses every value of values.yaml, and its schema contains them all', () => {
    const used = Object.values(templates).join('\n');
    for (const name of Object.keys(defaults)) expect(used, name).to.include(`.Values.${name}`);
    expect(validate(defaults), JSON.stringify(validate.errors)).to.equal(true);
  });

  for (const [title, more, reported] of [
    [
      'several gateways on a store of one pod',
      { config: { ...(defaults['config'] as object), store: 'sqlite:./data' } },
      /config\.store lives in one pod/,
    ],
    ['no secret', { existingSecrets: [] }, /existingSecrets needs/],
  ] as const)
    it(`refuses ${title}`, () => {
      expect(() => render({ ...SECRETS, ...more })).to.throw(reported);
    });

  for (const [title, more] of [
    ['an unknown value', { replicas: 3 }],
    ['no replicas', { replicaCount: 0 }],
    ['an ingress without a host', { ingress: { enabled: true, host: '' } }],
    [
      'a gateway that listens to its own pod alone',
      { config: { server: { host: '127.0.0.1', port: 8787 }, store: 'x' } },
    ],
  ] as const)
    it(`has a schema that refuses ${title}`, () => {
      expect(validate({ ...defaults, ...more })).to.equal(false);
    });
});
