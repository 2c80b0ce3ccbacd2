import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Finished, runCli } from '../support/processes/cli.ts';

const CONFIG = "# the team’s gateway\nstore: 'memory:'\nproviders:\n  echo: {} # needs no key\n";

/** Module of a policy; `more` is further members of its definition. */
const policy = (more = '', setup = '') => `
import { definePlugin } from 'tollgate';
export default definePlugin({ name: 'guard', kind: 'policy', apiVersion: 1, ${more} setup(api) { ${setup} } });
`;

describe('tollgate plugins add', () => {
  const root = useTempFolder('add');
  const canary = path.join(root, 'canary');
  const env = {
    npm_config_offline: 'true',
    npm_config_cache: path.join(root, 'cache'),
    npm_config_update_notifier: 'false',
  };
  let count = 0;

  /** Creates a folder with a package. */
  const makePackage = (code: string, manifest: object = {}): string => {
    const folder = path.join(root, `package-${++count}`);
    mkdirSync(folder);
    writeFileSync(path.join(folder, 'index.js'), code);
    const own = { name: 'tollgate-plugin-guard', version: '1.2.3', license: 'MIT', type: 'module', main: 'index.js' };
    const whole = { ...own, keywords: ['tollgate-plugin'], description: 'Guards.', ...manifest };
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify(whole));
    return folder;
  };
  const pack = (folder: string): string => {
    const options = { cwd: folder, env: { ...process.env, ...env }, encoding: 'utf8' } as const;
    return path.join(folder, execFileSync('npm', ['pack', '--silent', '--ignore-scripts'], options).trim());
  };
  const makeProject = (config = CONFIG, file = 'tollgate.config.yaml'): string => {
    const folder = path.join(root, `project-${++count}`);
    mkdirSync(folder);
    writeFileSync(path.join(folder, file), config);
    return folder;
  };
  const add = (project: string, ...words: readonly string[]): Promise<Finished> =>
    runCli(['plugins', 'add', ...words], project, { env });
  const read = (project: string, file = 'tollgate.config.yaml') => readFileSync(path.join(project, file), 'utf8');

  it('describes a package, installs it without its scripts, and adds it to the configuration', async () => {
    const tarball = pack(
      makePackage(
        policy(
          `hosts: ['guard.example'], permissions: ['ledger'], commands: [{ name: 'guard', summary: 'x' }],`,
          `api.command({ name: 'guard', summary: 'x', run() {} });`,
        ),
        {
          scripts: { postinstall: `touch ${canary}` },
        },
      ),
    );
    const project = makeProject();
    const { code, stdout, stderr } = await add(project, tarball, '--yes');
    expect({ code, stderr: code === 0 ? '' : stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(/installed tollgate-plugin-guard, and wrote policies\.guard into tollgate\.config\.yaml/);
    for (const fact of [
      /^tollgate-plugin-guard 1\.2\.3$/m,
      /what +Guards\.$/m,
      /plugin +policy "guard", plugin API 1$/m,
      /licence +MIT$/m,
      /from +\/.*tollgate-plugin-guard-1\.2\.3\.tgz$/m,
      /provenance +unknown for a file$/m,
      /scripts +not run: postinstall$/m,
      /hosts +guard\.example$/m,
      /permissions +ledger$/m,
      /commands +guard$/m,
      /rights +runs in the gateway’s process with all its rights$/m,
    ])
      expect(stderr).to.match(fact);
    expect(existsSync(canary)).to.equal(false);
    expect(read(project)).to.equal(`${CONFIG}policies:\n  guard:\n    plugin: tollgate-plugin-guard\n`);
    const listed = await runCli(['plugins', '--json'], project);
    expect(listed.stdout).to.include('tollgate-plugin-guard').and.include('1.2.3');
  });

  it('G68: runs no code of a package with the environment of the shell before it is confirmed', async () => {
    const seen = path.join(root, 'seen.json');
    const spy = `import { writeFileSync } from 'node:fs';
      const secret = process.env.OPENAI_API_KEY;
      try { if (secret) writeFileSync(${JSON.stringify(seen)}, secret); } catch {}
      ${policy(`hosts: [secret ?? 'none.example'],`)}`;
    const project = makeProject();
    const { code, stderr } = await runCli(['plugins', 'add', makePackage(spy)], project, {
      env: { ...env, OPENAI_API_KEY: 'sk-of-the-shell' },
    });
    expect(stderr)
      .to.match(/hosts +none\.example$/m)
      .and.include('there is no terminal to confirm it');
    expect(code).to.equal(2);
    expect(existsSync(seen)).to.equal(false);
  });

  it('G68: refuses a package that declares other rights once it is installed', async () => {
    const project = makeProject();
    const code = policy(`permissions: process.env.HOME ? ['ledger', 'records'] : [],`);
    const added = await add(project, makePackage(code), '--yes');
    expect(added.stderr).to.include('declares other permissions than before it was installed: ["ledger","records"]');
    expect(added.code).to.equal(3);
    expect(read(project)).to.equal(CONFIG);
    expect(existsSync(path.join(project, 'node_modules', 'tollgate-plugin-guard'))).to.equal(false);
  });

  it('G68: refuses a package that ends the process that imports it', async () => {
    const { code, stderr } = await add(makeProject(), makePackage(`process.exit(0);\n${policy()}`), '--yes');
    expect(stderr).to.include('it ended the process that imported it');
    expect(code).to.equal(2);
  });

  it('accepts a folder, a custom name and options, and preserves the format of a JSON file', async () => {
    const schema = `configSchema: { type: 'object', additionalProperties: false, required: ['word'], properties: { word: { type: 'string', description: 'A word.' } } },`;
    const folder = makePackage(policy(schema));
    const project = makeProject(
      '{\n    "store": "memory:",\n    "providers": { "echo": {} }\n}\n',
      'tollgate.config.json',
    );
    const missing = await add(project, folder, '--yes');
    expect(missing.code).to.equal(3);
    expect(missing.stderr).to.match(/was not added: .*policies\.guard.*word[\s\S]*--options/);
    expect(read(project, 'tollgate.config.json')).to.include('    "store"').and.not.include('guard');
    expect(existsSync(path.join(project, 'package.json'))).to.equal(false);
    expect(existsSync(path.join(project, 'node_modules', 'tollgate-plugin-guard'))).to.equal(false);
    const { code, stderr } = await add(project, folder, '--yes', '--as', 'mine', '--options', '{"word":"x"}');
    expect({ code, stderr: code === 0 ? '' : stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(read(project, 'tollgate.config.json')).to.match(
      /^ {4}"policies": \{\n {8}"mine": \{\n {12}"plugin": "tollgate-plugin-guard",\n {12}"word": "x"/m,
    );
  });

  it('installs from a registry, and shows its provenance there', async () => {
    const tarball = pack(makePackage(policy()));
    let registry: Server | undefined;
    try {
      registry = createServer((request, response) => {
        if (request.url?.endsWith('.tgz')) return void response.end(readFileSync(tarball));
        const dist = {
          tarball: `http://${request.headers.host}/guard.tgz`,
          attestations: {
            url: 'https://registry.example/attested',
            provenance: { predicateType: 'https://slsa.dev/provenance/v1' },
          },
        };
        const version = { name: 'tollgate-plugin-guard', version: '1.2.3', dist };
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({ name: version.name, 'dist-tags': { latest: '1.2.3' }, versions: { '1.2.3': version } }),
        );
      });
      await new Promise<void>((resolve) => registry?.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
      const online = { ...env, npm_config_offline: 'false', npm_config_registry: url };
      const project = makeProject();
      const { code, stderr } = await runCli(['plugins', 'add', 'tollgate-plugin-guard', '--yes'], project, {
        env: online,
      });
      expect(stderr).to.match(
        /provenance +attested \(https:\/\/slsa\.dev\/provenance\/v1\); verify it with npm audit signatures/,
      );
      expect(code).to.equal(0);
      expect(JSON.parse(read(project, 'package.json'))).to.have.nested.property(
        'dependencies.tollgate-plugin-guard',
        '1.2.3',
      );
    } finally {
      registry?.close();
    }
  });

  it('undoes all changes when the gateway cannot be set up with the plugin', async () => {
    const project = makeProject();
    const own = '{ "name": "ours", "private": true }';
    writeFileSync(path.join(project, 'package.json'), own);
    const { code, stderr } = await add(project, makePackage(policy('', `throw new Error('no luck');`)), '--yes');
    expect(code).to.equal(3);
    expect(stderr).to.match(/was not added: plugin "guard": setup failed: no luck/);
    expect(read(project)).to.equal(CONFIG);
    expect(read(project, 'package.json')).to.equal(own);
    expect(existsSync(path.join(project, 'package-lock.json'))).to.equal(false);
    expect(existsSync(path.join(project, 'node_modules', 'tollgate-plugin-guard'))).to.equal(false);
  });

  const writesCanary = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(canary)}, 'ran'); export default {};`;
  const REFUSED: readonly (readonly [
    what: string,
    make: () => readonly [string, ...string[]],
    says: RegExp,
    config?: string,
    file?: string,
  ])[] = [
    [
      'what is not a Tollgate plugin, without running it',
      () => [makePackage(writesCanary, { keywords: [] })],
      /"tollgate-plugin-guard" is not a Tollgate plugin[\s\S]*No code of this package was run/,
    ],
    [
      'a plugin of another API',
      () => [makePackage(policy().replace('apiVersion: 1', 'apiVersion: 0'))],
      /uses plugin API 0, but this gateway supports 1/,
    ],
    [
      'a package that is not built',
      () => [makePackage('', { main: 'dist/index.js' })],
      /cannot be used[\s\S]*npm run build/,
    ],
    [
      'a name that no configuration can have',
      () => [makePackage(policy(), { name: 'guard' })],
      /cannot be used in a configuration/,
    ],
    ['what npm does not find', () => ['tollgate-plugin-nowhere-to-be-found'], /npm failed: /],
    ['no word', () => [''], /"" is not a package/],
    ['an option of npm', () => ['--', '--global'], /"--global" is not a package/],
    ['options that are no JSON', () => [makePackage(policy()), '--options', '{'], /--options is not a JSON object/],
    [
      'a place that is taken',
      () => [makePackage(policy())],
      /already has policies\.guard\n\s+Set another name with --as/,
      `${CONFIG}policies:\n  guard: { plugin: words, words: [x] }\n`,
    ],
    [
      'a configuration that is a program',
      () => [makePackage(policy())],
      /is a program, which cannot be edited automatically[\s\S]*policies\.guard: \{"plugin":"tollgate-plugin-guard"\}/,
      'export default { store: "memory:", providers: { echo: {} } };',
      'tollgate.config.mjs',
    ],
    [
      'a configuration that is wrong already',
      () => [makePackage(policy())],
      /sever: unknown key/,
      `${CONFIG}sever: {}\n`,
    ],
  ];
  for (const [what, make, says, config = CONFIG, file = 'tollgate.config.yaml'] of REFUSED)
    it(`refuses ${what}, and changes nothing`, async () => {
      const project = makeProject(config, file);
      const [first, ...rest] = make();
      const { code, stderr } = await add(
        project,
        ...rest.filter((word) => word !== '--global'),
        '--yes',
        ...(first === '--' ? ['--', '--global'] : [first]),
      );
      expect(code).to.be.oneOf([2, 3, 69]);
      expect(stderr).to.match(says);
      expect(readdirSync(project)).to.deep.equal([file]);
      expect(read(project, file)).to.equal(config);
      expect(existsSync(canary)).to.equal(false);
    });

  it('asks for confirmation, and without it changes nothing', async () => {
    const project = makeProject();
    const { code, stderr } = await add(project, makePackage(policy()));
    expect(code).to.equal(2);
    expect(stderr).to.match(
      /permissions +none[\s\S]*there is no terminal to confirm it\n\s+Check the facts above, then add --yes/,
    );
    expect(readdirSync(project)).to.deep.equal(['tollgate.config.yaml']);
  });

  it('reads at most ten megabytes of npm’s output', async () => {
    const project = makeProject();
    const tools = path.join(root, 'endless');
    mkdirSync(tools);
    writeFileSync(path.join(tools, 'npm'), '#!/bin/sh\nexec yes endless\n', { mode: 0o755 });
    const PATH = `${tools}${path.delimiter}${process.env['PATH']}`;
    const words = ['plugins', 'add', 'tollgate-plugin-guard', '--yes'];
    const { code, stderr } = await runCli(words, project, { env: { ...env, PATH } });
    expect(code).to.equal(69);
    expect(stderr).to.match(/npm printed more than 10 MB and was stopped\n\s+Check `npm config get registry`/);
    expect(readdirSync(project)).to.deep.equal(['tollgate.config.yaml']);
  });

  it('refuses if there is no configuration', async () => {
    const empty = path.join(root, 'empty');
    mkdirSync(empty);
    const { code, stderr } = await add(empty, 'tollgate-plugin-guard', '--yes');
    expect(code).to.equal(3);
    expect(stderr).to.match(/there is no configuration file to add the plugin to\n\s+Run: tollgate init/);
  });
});
