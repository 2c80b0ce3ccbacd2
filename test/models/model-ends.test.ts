import path from 'node:path';
import { expect } from 'chai';
import { checkConfig } from '../../cli/inspect.ts';
import { type BannerOptions, formatBanner } from '../../cli/start.ts';
import { loadConfig } from '../../config/load-config.ts';
import { describeAge, nearEndOf } from '../../contract/model-ends.ts';
import type { Gateway } from '../../core/app.ts';
import { endingModels } from '../../models/model-ends.ts';
import { loadModelTable } from '../../models/model-table.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { captureTerminal } from '../support/processes/plugin-command.ts';

const DAY = 86_400_000;
const END = Date.parse('2026-12-11');

describe('models close to their shutdown', () => {
  afterEach(removeFolders);

  const CONFIG = `
store: 'memory:'
providers:
  echo: {}
  openai: { apiKey: k, models: [gpt-5-mini, +o3, '*'] }
models:
  one: openai/gpt-5
  several: [echo/echo, openai/gpt-5-2025-08-07]
  ruled: { targets: [{ to: echo/echo }, { to: openai/o3 }], onOverflow: openai/gpt-5-pro }
agents:
  team: { model: openai/gpt-5 }
`;

  async function warned(now: number) {
    const folder = makeFolder({ 'tollgate.config.yaml': CONFIG });
    const loaded = await loadConfig({ cwd: folder, env: { HOME: folder } });
    const shutdown = new Date(END).toISOString().slice(0, 10);
    const isEnding = (id: string): boolean => /^(gpt-5|o3)/.test(id);
    const find = (_provider: string, id: string) => (isEnding(id) ? { id, shutdown } : { id });
    return endingModels(loaded, { find }, now);
  }

  it('are found in aliases of every form, in lists of providers and in options of plugins (E16)', async () => {
    const found = await warned(END - 20 * DAY);
    expect(found.map(({ pointer, message }) => [pointer, message.split('"')[1]])).to.have.deep.members([
      ['/models/one', 'openai/gpt-5'],
      ['/models/several/1', 'openai/gpt-5-2025-08-07'],
      ['/models/ruled/targets/1/to', 'openai/o3'],
      ['/models/ruled/onOverflow', 'openai/gpt-5-pro'],
      ['/providers/openai/models/0', 'openai/gpt-5-mini'],
      ['/providers/openai/models/1', 'openai/o3'],
      ['/agents/team/model', 'openai/gpt-5'],
    ]);
    expect(found[0]?.message).to.equal('uses "openai/gpt-5", which its vendor will shut down on 2026-12-11');
    expect(found[0]?.hint).to.include('tollgate models --provider openai');
  });

  it('cause warnings from 30 days before, and after their shutdown (E16)', async () => {
    expect(await warned(END - 31 * DAY)).to.deep.equal([]);
    expect((await warned(END - 29 * DAY)).length).to.equal(7);
    expect((await warned(END))[0]?.message).to.include('shut down on 2026-12-11');
    expect(nearEndOf({ id: 'x', shutdown: '2026-12-11' }, END - 31 * DAY)).to.equal(undefined);
    expect(nearEndOf({ id: 'x', shutdown: '2026-12-11' }, END + 400 * DAY)).to.equal(END);
    expect(nearEndOf({ id: 'x' })).to.equal(undefined);
  });

  it('are in the banner, each once (E16)', () => {
    const { terminal } = captureTerminal();
    const gateway = {
      url: 'http://x',
      providers: [],
      announcements: [],
      models: { list: () => [], tableDate: () => '2026-11-23' },
    };
    const ending: BannerOptions['ending'] = [{ message: 'names a' }, { message: 'names a' }, { message: 'names b' }];
    const banner = formatBanner(gateway as unknown as Gateway, { file: 'f', workers: 1, terminal, ending });
    expect(banner).to.match(/^ {2}prices {5}of 2026-11-23, .* ago$|^ {2}prices {5}of 2026-11-23, (today|yesterday)$/m);
    expect(banner.match(/^ {2}warning {4}the configuration names [ab]$/gm)).to.have.length(2);
  });

  it('are reported with the age of the table (E16)', () => {
    const { date } = loadModelTable();
    const noon = Date.parse(`${date}T12:00:00Z`);
    expect(describeAge(date, noon)).to.equal(`${date}, today`);
    expect(describeAge(date, noon + DAY)).to.equal(`${date}, yesterday`);
    expect(describeAge(date, noon + 75 * DAY)).to.equal(`${date}, 75 days ago`);
  });

  it('are warnings of `tollgate check`, with file and line, and the date of its prices (E16)', async () => {
    const text = 'store: "memory:"\nproviders: { openai: { apiKey: k } }\nmodels:\n  old: openai/gpt-4-turbo\n';
    const config = path.join(makeFolder({ 'tollgate.config.yaml': text }), 'tollgate.config.yaml');
    const { terminal, out, err } = captureTerminal();
    await checkConfig({ terminal, globals: { config, json: true }, args: [], options: {} });
    expect(err()).to.match(/warning: .*tollgate\.config\.yaml:4:8 .*shut down on 2026-10-23/);
    expect(JSON.parse(out())).to.have.nested.property('data.prices', loadModelTable().date);
  });
});
