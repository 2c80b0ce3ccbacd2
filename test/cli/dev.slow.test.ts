import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Running, startCli } from '../support/processes/cli.ts';

const CONFIG = (plugin: string) => ({
  server: { port: 0, drainDelay: '0s', drainTimeout: '2s' },
  store: 'memory:',
  auth: { 'api-key': { bootstrap: true } },
  providers: { echo: {} },
  policies: { overload: false, mark: { plugin } },
});

/** Policy that marks responses with a word from an imported file. */
const PLUGIN = (types: string) => `
import { definePlugin } from 'tollgate';
import { word } from './word.${types}';

export default definePlugin({
  name: 'mark', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('admit', (call) => void call.headers.set('x-mark', word));
  },
});
`;

describe('tollgate dev', () => {
  const folder = useTempFolder('dev');
  const running: Running[] = [];
  afterEach(function () {
    if (this.currentTest?.state === 'failed') console.log(running.at(-1)?.stderr());
  });
  after(() => {
    for (const { child } of running) child.kill('SIGKILL');
  });

  /** Runs `tollgate dev` in its own folder; `saw` waits for the next matching output after the previous match. */
  const start = async (name: string, files: Readonly<Record<string, string>>, plugin: string) => {
    const cwd = path.join(folder, name);
    mkdirSync(cwd);
    const save = (file: string, text: string): void => writeFileSync(path.join(cwd, file), text);
    for (const [file, text] of Object.entries(files)) save(file, text);
    save('tollgate.config.json', JSON.stringify(CONFIG(plugin)));
    const program = startCli(['dev'], cwd);
    running.push(program);
    let read = 0;
    const saw = async (pattern: RegExp): Promise<RegExpExecArray> => {
      const { source, flags } = pattern;
      const match = await program.seen(new RegExp(`(?<=[\\s\\S]{${read}})${source}`, flags));
      read = match.index + match[0].length;
      return match;
    };
    return { cwd, save, saw, program };
  };
  type Dev = Awaited<ReturnType<typeof start>>;

  const connect = async ({ saw, program }: Dev) => {
    const [, url = ''] = await saw(/listens on (http:\S+)/);
    await saw(/Try it/);
    const key = /tg_\w+/.exec(program.stderr())?.[0] ?? '';
    return (body: object = {}): Promise<Response> =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'Hello' }], ...body }),
      });
  };
  const markOf = async (call: () => Promise<Response>): Promise<string | null> => (await call()).headers.get('x-mark');

  for (const types of ['ts', 'mjs'])
    it(`loads a plugin in .${types} and its imports again after a save`, async () => {
      const files = { [`mark.${types}`]: PLUGIN(types), [`word.${types}`]: `export const word = 'one';` };
      const dev = await start(`save-${types}`, files, `./mark.${types}`);
      const call = await connect(dev);
      expect(await markOf(call)).to.equal('one');
      dev.save(`word.${types}`, `export const word = 'two';`);
      await dev.saw(/reloaded +word\.\w+ \(\d+ ms\)/);
      expect(await markOf(call)).to.equal('two');
      dev.save(`mark.${types}`, PLUGIN(types).replace("'x-mark', word", "'x-mark', word + '!'"));
      await dev.saw(/reloaded +mark\.\w+/);
      expect(await markOf(call)).to.equal('two!');
      expect(dev.program.stderr(), 'files that are looked for and not there are no change').to.not.include('.env');
    });

  it('prints an error with file, line and code frame, keeps the previous version, and recovers', async () => {
    const files = { 'mark.ts': PLUGIN('ts'), 'word.ts': `export const word = 'one';` };
    const dev = await start('wrong', files, './mark.ts');
    const call = await connect(dev);

    dev.save('word.ts', 'export const word = "one";\nexport const x = {;\n');
    await dev.saw(/cannot be loaded: ParseError: Unexpected token \(word\.ts:2:18\)/);
    await dev.saw(/at word\.ts:2:18\n.*1 \| export const word = "one";\n\s+> 2 \| export const x = \{;\n\s+\^\n/);
    await dev.saw(/the gateway continues unchanged; save a file to try again/);
    expect(await markOf(call)).to.equal('one');

    dev.save('mark.ts', PLUGIN('ts').replace('setup(api) {', "setup(api) {\n    throw new Error('not today');"));
    dev.save('word.ts', `export const word = 'three';`);
    await dev.saw(/plugin "mark": setup failed: not today/);
    await dev.saw(/at mark\.ts:8:11\n[\s\S]*>\s+8 \| {5}throw new Error\('not today'\);\n/);
    expect(await markOf(call)).to.equal('one');

    dev.save('mark.ts', `import './later.ts';\n${PLUGIN('ts')}`);
    await dev.saw(/Cannot find module '\.\/later\.ts'/);
    dev.save('later.ts', 'export {};');
    await dev.saw(/reloaded +later\.ts/);
    expect(await markOf(call)).to.equal('three');

    dev.save('tollgate.config.json', '{ "providers": }');
    await dev.saw(/tollgate\.config\.json:1:16 is not valid JSON/);
    dev.save('tollgate.config.json', JSON.stringify(CONFIG('./mark.ts')));
    await dev.saw(/reloaded +tollgate\.config\.json/);
    expect(await markOf(call)).to.equal('three');
  });

  it('waits for a save when a plugin is invalid from the start', async () => {
    const files = { 'mark.ts': PLUGIN('ts'), 'word.ts': 'export const word = ;' };
    const dev = await start('begin', files, './mark.ts');
    await dev.saw(/> 1 \| export const word = ;/);
    await dev.saw(/the gateway has not started; save a file to try again/);
    dev.save('word.ts', `export const word = 'up';`);
    const call = await connect(dev);
    expect(await markOf(call)).to.equal('up');
  });

  it('lets running calls end with their version, and survives late errors of a plugin', async () => {
    const text = (word: string) => `
import { definePlugin } from 'tollgate';
let open: () => void = () => undefined;
export default definePlugin({
  name: 'mark', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.route({ method: 'POST', path: '/open', summary: 'x', auth: 'none', responses: { 200: 'x' }, handler(ctx) { ctx.body = '${word}'; } });
    api.hook('answer', (call) => call.request.model !== 'echo/echo' ? undefined : undefined);
    api.hook('prepare', async (call, request) => {
      if (!JSON.stringify(request).includes('wait')) return undefined;
      call.headers.set('x-mark', '${word}');
      process.stderr.write('WAITS\\n');
      await new Promise<void>((resolve) => process.once('SIGUSR2', () => resolve()));
      return undefined;
    });
    if ('${word}' === 'late') setImmediate(() => { throw new Error('a late one'); });
  },
});
`;
    const dev = await start('flight', { 'mark.ts': text('first') }, './mark.ts');
    const call = await connect(dev);
    const waiting = call({ messages: [{ role: 'user', content: 'wait' }] });
    await dev.saw(/WAITS/);
    dev.save('mark.ts', text('late'));
    await dev.saw(/a late one\n\s+at mark\.ts:16:\d+/);
    dev.program.child.kill('SIGUSR2');
    const response = await waiting;
    expect({ status: response.status, mark: response.headers.get('x-mark') }).to.deep.equal({
      status: 200,
      mark: 'first',
    });
    dev.program.child.kill('SIGTERM');
    expect((await dev.program.finished).code).to.equal(0);
  });

  it('exits with an explanation if a save cannot help', async () => {
    const cwd = path.join(folder, 'port');
    mkdirSync(cwd);
    const { code, stderr } = await startCli(['dev', '--port', '99999'], cwd).finished;
    expect(code).to.equal(2);
    expect(stderr).to.match(/"99999" is not a port/);
    rmSync(cwd, { recursive: true });
  });
});
