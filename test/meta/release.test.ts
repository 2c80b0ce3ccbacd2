import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { PACKAGE_ROOT } from '../../config/package-root.ts';

const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Job {
  readonly permissions: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

describe('a release', () => {
  const text = read('.github/workflows/release.yml');
  const release = parse(text) as { readonly jobs: Readonly<Record<string, Job>>; readonly permissions: object };
  const { jobs } = release;
  const manifest = JSON.parse(read('package.json')) as {
    scripts: Readonly<Record<string, string>>;
  };

  it('pins actions by commit, and gives a job only its required rights, as every workflow does', () => {
    for (const file of readdirSync(path.join(PACKAGE_ROOT, '.github/workflows'))) {
      const workflow = parse(read(`.github/workflows/${file}`)) as typeof release;
      expect(workflow.permissions, file).to.deep.equal({});
      for (const [name, job] of Object.entries(workflow.jobs)) {
        expect(job.permissions, `${file} ${name}`).to.have.property('contents');
        for (const { uses } of job.steps)
          if (uses !== undefined) expect(uses, `${file} ${name}`).to.match(/^[\w-]+\/[\w-]+@[\da-f]{40}$/);
      }
    }
  });

  it('is tested, published with its provenance, and lists its contents', () => {
    const steps = jobs['package']?.steps.map(({ run }) => run ?? '') ?? [];
    const order = ['.ci/run', 'npm run --silent sbom', 'npm publish --provenance', 'gh release create'];
    const places = order.map((words) => steps.findIndex((run) => run.startsWith(words)));
    expect(places).to.not.include(-1);
    expect(places).to.deep.equal([...places].sort((a, b) => a - b));
    expect(text).to.include('provenance: mode=max').and.include('sbom: true');
  });

  it('is built when it is packed or published, although `.npmrc` disables scripts', () => {
    expect(read('.npmrc')).to.include('ignore-scripts=true');
    expect(manifest.scripts).to.have.property('prepack');
    const files = ['.github/workflows/release.yml', 'docs/how-to/deploy-with-systemd.md', 'docs/how-to/upgrade.md'];
    for (const file of files) {
      const commands = read(file).match(/\bnpm (?:pack|publish)\b[^&\n`]*/g) ?? [];
      expect(commands, file).to.not.deep.equal([]);
      for (const command of commands) expect(command, file).to.include('--ignore-scripts=false');
    }
  });
});
