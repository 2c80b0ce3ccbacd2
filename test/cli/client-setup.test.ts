import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Writable } from 'node:stream';
import { expect } from 'chai';
import { printClientSetup, readSetups } from '../../cli/init.ts';
import { useTempFolder } from '../support/folders.ts';

describe('tollgate init --client', () => {
  const folder = useTempFolder('client-setup');

  /** Output of the command for a configuration. */
  async function print(client: string, config: object, json = false) {
    const file = path.join(folder, 'tollgate.config.json');
    writeFileSync(
      file,
      JSON.stringify({ providers: { echo: {} }, auth: { 'api-key': {} }, store: 'memory:', ...config }),
    );
    const [out, err]: [string[], string[]] = [[], []];
    const sink = (into: string[]) =>
      new Writable({
        write(bytes, _encoding, done) {
          into.push(String(bytes));
          done();
        },
      });
    const terminal = { out: sink(out), err: sink(err), isTty: false, colors: undefined as never };
    await printClientSetup({ terminal, globals: { config: file, json }, args: [], options: {} }, client);
    return { out: out.join(''), err: err.join('') };
  }

  it('prints the address of the configuration, a placeholder for the key, and an alias with a name known to the client', async () => {
    const models = { smart: 'echo/echo', 'claude-opus-5-5': 'echo/echo' };
    const { out, err } = await print('claude-code', { models, server: { host: '0.0.0.0', port: 9000 } });
    expect(out).to.equal(
      [
        'export ANTHROPIC_BASE_URL=http://127.0.0.1:9000 ANTHROPIC_API_KEY=tg_your_key',
        'export ANTHROPIC_MODEL=claude-opus-5-5 ANTHROPIC_DEFAULT_HAIKU_MODEL=claude-opus-5-5',
        'claude -p "Say hello"',
        '',
      ].join('\n'),
    );
    expect(err).to.include('tollgate keys create').and.not.to.include('Replace provider/model');
  });

  it('uses the first alias if none has a name known to the client', async () => {
    const { out } = await print('codex', { models: { smart: 'echo/echo' }, server: { host: '::1', port: 9000 } });
    expect(out).to.include('model = "smart"').and.to.include('base_url = "http://[::1]:9000/v1"');
    expect(out).to.match(/^# ~\/\.codex\/config\.toml\n/);
  });

  it('asks for a model if the configuration has no alias', async () => {
    const { out, err } = await print('openai', {});
    expect(out).to.include("model: 'provider/model'");
    expect(err).to.include('Replace provider/model with a model');
  });

  it('prints one document with --json and nothing else', async () => {
    const { out, err } = await print('codex', { models: { 'gpt-5.5': 'echo/echo' } }, true);
    const { data } = JSON.parse(out) as { data: { model: string; steps: readonly { file?: string }[] } };
    expect(data).to.include({ client: 'codex', model: 'gpt-5.5', base: 'http://127.0.0.1:8787' });
    expect(data.steps[0]?.file).to.equal('~/.codex/config.toml');
    expect(err).to.equal('');
  });

  it('supports every client and lists them all for an unknown one', async () => {
    for (const client of Object.keys(readSetups()))
      expect((await print(client, {})).out).not.to.match(/\{(?:base|key|model)\}/);
    const error = await print('codx', {}).catch((thrown: unknown) => thrown);
    expect(error).to.include({ message: 'the client "codx" is unknown', exitCode: 2 });
    expect((error as { hint: string }).hint).to.match(/^Did you mean codex\?.*llamaindex/);
  });
});
