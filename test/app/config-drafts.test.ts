import { chmod, lstat, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type DraftsRig, editFile, startDraftsRig } from '../support/gateways/drafts-rig.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

const SECRET = 'sk-inline-0123456789abcdef';

/** Configuration with comments, a reference, a secret next to what is drafted, and a guardrail with an address. */
const fileWith = (server = '{ port: 0, console: { write: true } }', more = ''): string => `# The team's gateway
server: ${server} # behind nginx
store: 'memory:'
auth:
  api-key: { bootstrap: true }

providers:
  echo: {}
  north: # paid by finance
    plugin: openai-compatible
    baseUrl: http://127.0.0.1:9
    apiKey: ${SECRET}
    models: [m]

models:
  fast: echo/echo # for chats

plans:
  free:
    rpm: \${RPM} # from the environment
    tpm: 1000

policies:
  overload: false
  http-guardrail:
    url: http://127.0.0.1:9/judge
    when: { models: [judged] }
    headers: { authorization: Bearer ${SECRET} }
${more}`;

const FILE = '/configuration/file';
const DRAFTS = '/configuration/drafts';
const CHEAP = { section: 'models', name: 'cheap', value: 'echo/echo' };

describe('drafts of the configuration file', () => {
  const folder = useTempFolder('drafts');
  let rig: DraftsRig;
  let admin: Record<string, string>;

  before(async () => {
    rig = await startDraftsRig();
    admin = await rig.operator();
  });
  after(() => rig?.stop());

  const read = () => rig.request('GET', FILE, { as: admin });
  const check = (body: object, as = admin) => rig.request('POST', DRAFTS, { as, body });
  /** Writes to the present file, except with another ETag. */
  const write = async (body: object, { as = admin, etag = '' } = {}) =>
    rig.request('PUT', FILE, { as, body, etag: etag || (await read()).etag });
  const statusOf = async (model: string): Promise<number> =>
    (await rig.gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] })).status;
  /** Error of a refused write, after which the file is as before. */
  const refusalOf = async (body: object, options: { as?: Record<string, string>; etag?: string } = {}) => {
    const before = await rig.text();
    const { status, body: response } = await write(body, options);
    expect(await rig.text(), 'the file').to.equal(before);
    expect(await readdir(path.dirname(rig.file())), 'no temporary file').to.satisfy((names: string[]) =>
      names.every((name) => !name.endsWith('.tmp')),
    );
    return {
      status,
      code: response.error?.code,
      message: String(response.error?.message),
      param: response.error?.param,
    };
  };
  const audit = async (action: string): Promise<readonly Record<string, unknown>[]> =>
    (await rig.request('GET', `/audit?action=${action}`, { as: admin })).body.data;

  it('list what can be drafted with its schema, references as written, and no secret', async () => {
    await rig.begin(fileWith());
    const { status, etag, body } = await read();
    expect(status).to.equal(200);
    expect(etag).to.equal(`"${body.version}"`);
    expect(body).to.include({ object: 'configuration_file', file: 'tollgate.yaml', can_write: true });
    const entries = body.sections.flatMap(
      ({ section, entries: all }: { section: string; entries: { name: string }[] }) =>
        all.map(({ name }) => `${section}.${name}`),
    );
    expect(entries).to.deep.equal(['models.fast', 'provider_models.north', 'plans.free']);
    const names = body.sections.flatMap((each: { section: string; names?: string[] }) =>
      each.section === 'guardrails' ? each.names : [],
    );
    expect(names)
      .to.include.members(['pii', 'words', 'max-cost'])
      .and.not.include.members(['http-guardrail', 'http-hook']);
    const [plans] = body.sections.filter(({ section }: { section: string }) => section === 'plans');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
    expect(plans.entries[0].value).to.deep.equal({ rpm: '${RPM}', tpm: 1000 });
    expect(plans.schema.properties).to.have.property('budgets');
    expect(JSON.stringify(body)).not.to.include(SECRET).and.not.include('127.0.0.1');
  });

  it('are checked as `tollgate config check` does, with YAML and differences, and change nothing', async () => {
    await rig.begin(fileWith());
    const before = await rig.text();
    const right = await check({ section: 'plans', name: 'free', value: { rpm: 5, tpm: 1000, models: ['fast'] } });
    expect(right.status).to.equal(200);
    expect(right.body).to.deep.include({ object: 'draft', written: false, problems: [] });
    expect(right.body.yaml).to.equal('plans:\n  free:\n    rpm: 5\n    tpm: 1000\n    models:\n      - fast\n');
    expect(right.body.diff).to.equal(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
      ' plans:\n   free:\n-    rpm: ${RPM}\n+    rpm: 5\n     tpm: 1000\n+    models:\n+      - fast',
    );
    expect(right.body.changes.map(({ path: at }: { path: string }) => at)).to.include.members(['plans.free.rpm']);
    const wrong = await check({ section: 'models', name: 'fast', value: ['north/m', 'nort/m'] });
    expect(wrong.body.problems).to.have.lengthOf(1);
    expect(wrong.body.problems[0]).to.match(/^tollgate\.yaml:\d+:\d+ models\.fast\[1\]: .*north/);
    expect(await rig.text()).to.equal(before);
  });

  it('are written with comments kept, reloaded, and recorded with who and what', async () => {
    await rig.begin(fileWith());
    const before = await rig.text();
    const { status, body, etag } = await write(CHEAP);
    expect([status, body.written]).to.deep.equal([200, true]);
    expect(await rig.text()).to.equal(before.replace('# for chats\n', '# for chats\n  cheap: echo/echo\n'));
    expect(await statusOf('cheap')).to.equal(200);
    expect((await read()).etag).to.equal(etag);
    const [entry] = await audit('configuration.write');
    expect(entry).to.deep.include({
      subject: 'models.cheap',
      before: {},
      after: { yaml: 'models:\n  cheap: echo/echo\n' },
    });
    expect(entry?.['actor']).to.include({ via: 'api', user_id: 'ann' });
    expect(JSON.stringify(await audit('configuration'))).not.to.include(SECRET);
  });

  it('cover plans, budgets, model lists and guardrails, and remove entries', async () => {
    await rig.begin(fileWith());
    const drafts = [
      { section: 'plans', name: 'pro', value: { rpm: 100, providers: { north: { rpm: 10 } } } },
      { section: 'budgets', name: 'all', value: { amount_usd: 10, every: 'day' } },
      { section: 'budgets', name: 'all', value: { amount_usd: 20, every: 'day' } },
      { section: 'provider_models', name: 'north', value: { models: ['m', 'n'] } },
      { section: 'guardrails', name: 'words', value: { words: ['secret project'], action: 'mask' } },
      { section: 'models', name: 'fast', value: { targets: [{ to: 'north/m' }, { to: 'echo/echo' }] } },
      { section: 'models', name: 'split', value: { targets: [{ to: 'north/m', weight: 3 }], strategy: 'weighted' } },
      { section: 'models', name: 'split' },
    ];
    for (const draft of drafts) expect(await write(draft), JSON.stringify(draft)).to.have.property('status', 200);
    const text = await rig.text();
    expect(text).to.include('  pro:\n    rpm: 100\n    providers:\n      north:\n        rpm: 10\n');
    expect(text).to.include('budgets:\n  - name: all\n    amount_usd: 20\n    every: day\n');
    expect(text).to.include('    models: [ m, n ]\n').and.include(`    apiKey: ${SECRET}\n`);
    expect(text).to.include('  words:\n    words:\n      - secret project\n    action: mask\n');
    expect(text).to.include('  fast:\n    - north/m\n    - echo/echo # for chats\n').and.not.include('split');
    const [, removed] = await audit('configuration.write');
    expect(removed).to.include({ subject: 'models.split' });
  });

  it('keep the references of their entry, and add none', async () => {
    await rig.begin(fileWith());
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: references of the configuration.
    expect(await write({ section: 'plans', name: 'free', value: { rpm: '${RPM}', tpm: 5 } })).to.have.property(
      'status',
      200,
    );
    expect(await rig.text()).to.include('    rpm: ${RPM} # from the environment\n    tpm: 5\n');
    for (const value of [{ rpm: 1, models: ['${HOME}'] }, { rpm: '${file:/etc/passwd}' }, { tpm: '${RPM}' }]) {
      const refused = await refusalOf({ section: 'plans', name: 'free', value });
      expect(refused).to.include({ status: 400, code: 'invalid_request', param: 'value' });
      expect(refused.message).to.include('cannot add a reference');
      expect((await check({ section: 'plans', name: 'free', value })).status).to.equal(400);
    }
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above.
  });

  it('are refused while the configuration does not allow them, with the line that does', async () => {
    await rig.begin(fileWith('{ port: 0 }'));
    const { body } = await read();
    expect(body)
      .to.include({ can_write: false })
      .and.have.property('problem')
      .that.includes('console: { write: true }');
    expect(await refusalOf(CHEAP)).to.include({ status: 503, code: 'feature_disabled' });
    expect((await check(CHEAP)).body, 'they can be composed').to.deep.include({ problems: [], written: false });
  });

  it('are refused without the scope config:write, which no role but admin has', async () => {
    await rig.begin(fileWith());
    const reader = await rig.operator('config:read', 'config:reload');
    expect((await rig.request('GET', FILE, { as: reader })).body).to.include({ can_write: false });
    expect((await check(CHEAP, reader)).status).to.equal(200);
    expect(await refusalOf(CHEAP, { as: reader })).to.include({ status: 403, code: 'permission_denied' });
    const writer = await rig.operator('config:write');
    expect((await write(CHEAP, { as: writer })).status).to.equal(200);
  });

  it('reach no other key: neither plugins, addresses, commands, the server, nor secrets', async () => {
    await rig.begin(fileWith());
    for (const section of ['server', 'providers', 'plugins', 'mcp', 'policies', 'secrets', 'store', 'toString'])
      expect(await refusalOf({ section, name: 'x', value: {} })).to.include({ status: 400, param: 'section' });
    const guardrail = (name: string, value: object) => refusalOf({ section: 'guardrails', name, value });
    for (const name of ['http-guardrail', 'http-hook', 'overload', 'admin', './evil.mjs'])
      expect(await guardrail(name, { url: 'http://evil.example' })).to.include({ status: 400, param: 'name' });
    expect(await guardrail('pii', { plugin: './evil.mjs', action: 'mask' })).to.include({ param: 'value.plugin' });
    expect((await guardrail('pii', { action: 'mask', proxy: 'http://evil.example' })).message).to.include(
      'unknown key',
    );
    const lists = (name: string, value: unknown) => refusalOf({ section: 'provider_models', name, value });
    expect(await lists('south', ['m'])).to.include({ status: 400, param: 'name' });
    expect(await lists('north', { models: ['m'], baseUrl: 'http://evil.example' })).to.include({ status: 200 });
    expect(await rig.text()).not.to.include('evil');
    for (const name of ['__proto__', 'constructor'])
      expect((await refusalOf({ section: 'models', name, value: 'echo/echo' })).status).to.be.within(400, 409);
    expect((await refusalOf({ ...CHEAP, name: 'a\nserver: {}' })).status).to.equal(400);
  });

  it('are refused for a file that someone else changed, and need its version', async () => {
    await rig.begin(fileWith());
    const { etag } = await read();
    await editFile(rig.file(), (text) => text.replace('tpm: 1000', 'tpm: 2000'));
    expect(await refusalOf(CHEAP, { etag })).to.include({ status: 412, code: 'precondition_failed' });
    const { status, body } = await rig.request('PUT', FILE, { as: admin, body: CHEAP });
    expect([status, body.error.param]).to.deep.equal([400, 'If-Match']);
    expect((await write(CHEAP)).status, 'with its new version').to.equal(200);
    expect(await rig.text())
      .to.include('tpm: 2000')
      .and.include('cheap');
  });

  it('are refused if a start would refuse the file, with the reason', async () => {
    await rig.begin(fileWith());
    const refused = await refusalOf({ section: 'plans', name: 'free', value: { rpm: -1 } });
    expect(refused).to.include({ status: 400, code: 'invalid_request', param: 'value' });
    expect(refused.message).to.match(/^Nothing was written: tollgate\.yaml:\d+:\d+ plans\.free\.rpm: /);
    await editFile(rig.file(), (text) => `${text}nonsense: 1\n`);
    expect((await refusalOf(CHEAP)).message).to.include('nonsense');
    await editFile(rig.file(), () => 'models: [');
    expect(await read()).to.have.property('status', 409);
  });

  it('are undone if the reload fails: the old bytes are back, and the old configuration serves', async () => {
    await rig.begin(fileWith());
    rig.failReloads(new Error('no more memory at /srv/gateway'));
    const refused = await refusalOf({ section: 'models', name: 'fast', value: 'north/m' });
    expect(refused).to.include({ status: 409, code: 'conflict' });
    expect(refused.message).to.include('has its former content').and.include('no more memory').and.not.include('/srv');
    expect(await statusOf('fast')).to.equal(200);
    const ready = (await (await rig.gateway.get('/readyz')).json()) as { checks: object };
    expect(ready.checks, 'no problem is left').not.to.have.property('reload');
    const [undone] = await audit('configuration.undo');
    expect(undone).to.deep.include({ subject: 'models.fast' }).and.have.nested.property('after.reason');
    rig.failReloads(undefined);
    expect((await write(CHEAP)).status).to.equal(200);
  });

  it('leave a file that someone changes during a failed reload as it is, and say so', async () => {
    await rig.begin(fileWith());
    rig.failReloads(new Error('no more memory'), () => editFile(rig.file(), (text) => `${text}# mine\n`));
    const { status, body } = await write(CHEAP);
    expect([status, body.error.code]).to.deep.equal([409, 'conflict']);
    expect(body.error.message).to.include('no more memory').and.include('is not restored');
    expect(await rig.text()).to.match(/# mine\n$/);
  });

  it('are refused for a read-only file, also for root', async () => {
    await rig.begin(fileWith());
    await chmod(rig.file(), 0o444);
    expect((await read()).body).to.include({ can_write: false });
    expect(await refusalOf(CHEAP)).to.include({ status: 409, message: 'The file is read-only for this gateway.' });
  });

  it('are refused for a configuration in JavaScript, and can be composed for it', async () => {
    const text = `export default { server: { console: { write: true } }, store: 'memory:', providers: { echo: {} }, models: { a: 'echo/echo' } };`;
    await rig.begin(text, { name: 'tollgate.config.mjs' });
    expect((await refusalOf(CHEAP)).message).to.include('Only YAML and JSON files are written');
    const { body } = await check({ ...CHEAP, value: ['echo/echo', 'nort/m'] });
    expect(body.problems[0]).to.include('models.cheap[1]');
    expect(body.yaml).to.equal('models:\n  cheap:\n    - echo/echo\n    - nort/m\n');
    expect((await read()).body.sections[0].entries[0]).to.include({ name: 'a' });
  });

  it('are refused for entries of an imported file, which is named', async () => {
    const text = `$import: base.yaml\n${fileWith()}`;
    await rig.begin(text, { files: { 'base.yaml': 'models:\n  base: echo/echo\n' } });
    const [models] = (await read()).body.sections;
    expect(models.entries.map(({ name, from }: { name: string; from?: string }) => [name, from])).to.deep.equal([
      ['fast', undefined],
      ['base', 'base.yaml'],
    ]);
    expect((await refusalOf({ section: 'models', name: 'base' })).message).to.include('base.yaml');
    expect((await write(CHEAP)).status).to.equal(200);
  });

  it('are written to JSON with its indentation', async () => {
    const value = {
      server: { console: { write: true } },
      store: 'memory:',
      auth: { 'api-key': { bootstrap: true } },
      providers: { echo: {} },
      policies: { overload: false },
    };
    await rig.begin(`${JSON.stringify(value, null, 4)}\n`, { name: 'tollgate.json' });
    expect((await write(CHEAP)).status).to.equal(200);
    const after = `${JSON.stringify({ ...value, models: { cheap: 'echo/echo' } }, null, 4)}\n`;
    expect(await rig.text()).to.equal(after);
  });

  it('are written to the file behind a symbolic link, with its mode', async () => {
    await rig.begin(fileWith());
    const real = path.join(path.dirname(rig.file()), 'real', 'config.yaml');
    await mkdir(path.dirname(real));
    await rename(rig.file(), real);
    await chmod(real, 0o640);
    await symlink('real/config.yaml', rig.file());
    expect((await write(CHEAP)).status).to.equal(200);
    expect((await lstat(rig.file())).isSymbolicLink()).to.equal(true);
    expect((await stat(real)).mode & 0o777).to.equal(0o640);
    expect(await readFile(real, 'utf8')).to.include('cheap');
  });

  it('are refused while another gateway on the store has a file of its own @slow', async () => {
    const store = `sqlite:${path.join(folder, 'shared')}`;
    const one = await startDraftsRig(store);
    let other: TestGateway | undefined;
    try {
      const as = await one.operator();
      await one.begin(fileWith().replace('memory:', store));
      const put = async () =>
        one.request('PUT', FILE, { as, body: CHEAP, etag: (await one.request('GET', FILE, { as })).etag });
      expect((await put()).body).to.include({ written: true });
      other = await startGateway({ store });
      const { body } = await one.request('GET', FILE, { as });
      expect(body).to.include({ can_write: false });
      const refused = await put();
      expect([refused.status, refused.body.error.code]).to.deep.equal([409, 'conflict']);
      expect(refused.body.error.message).to.equal(body.problem);
      expect(body.problem).to.include('a configuration file of their own').and.include(String(process.pid));
      await other.stop();
      other = undefined;
      expect((await put()).status, 'it has ended').to.equal(200);
    } finally {
      await other?.stop();
      await one.stop();
    }
  });

  it('are bounded: a value, a file, and drafts that wait', async () => {
    await rig.begin(fileWith());
    const words = ['x'.repeat(200_000)];
    expect((await check({ section: 'guardrails', name: 'words', value: { words } })).status).to.equal(413);
    const all = await Promise.all(Array.from({ length: 16 }, () => check(CHEAP)));
    expect(all.map(({ status }) => status)).to.include.members([200, 429]);
    await writeFile(rig.file(), `${await rig.text()}# ${'x'.repeat(1_100_000)}\n`);
    expect((await read()).body.error.message).to.include('larger than 1 MiB');
  });

  it('are disabled in a program that loads its configuration itself', async () => {
    const embedded = await startGateway({});
    try {
      const { api_key: key } = await embedded.command<{ api_key: string }>(
        'keys',
        'create',
        '--admin',
        '--user',
        'ann',
      );
      const as = { authorization: `Bearer ${key}` };
      const file = (await (await embedded.get(`/api/core/admin${FILE}`, as)).json()) as object;
      expect(file)
        .to.deep.include({ can_write: false, sections: [] })
        .and.have.property('problem')
        .that.includes('embedded');
      const response = await embedded.post(`/api/core/admin${DRAFTS}`, CHEAP, as);
      expect(((await response.json()) as { error: { code: string } }).error.code).to.equal('feature_disabled');
    } finally {
      await embedded.stop();
    }
  });
});
