import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { decideOnProgram, startSignInRig } from '../support/gateways/sign-in-rig.ts';
import { readChapter } from '../support/pages/read-blocks.ts';
import { putOnPath, startCli } from '../support/processes/cli.ts';
import { programsOf, runProgram } from './install.ts';
import { startScriptedVendor } from './scripted-vendor.ts';

const PAGE = 'docs/plugins/sign-in.md';
const HELLO = 'Hello there, friend.';
const RUN_MS = 120_000;

/**
 * Programs that use `tollgate token`: their chapter of the page, the file of its first block, and the command to run.
 */
const SIGNED_IN: Readonly<
  Record<string, { readonly heading: string; readonly file: string; readonly model: string; readonly command: string }>
> = Object.freeze({
  'claude-code': {
    ...{ heading: '### Claude Code without managed settings', file: '.claude/settings.json', model: 'claude-opus-5-5' },
    command: 'ANTHROPIC_MODEL=claude-opus-5-5 ANTHROPIC_DEFAULT_HAIKU_MODEL=claude-opus-5-5 claude -p "Say hello"',
  },
  codex: {
    ...{ heading: '### Codex', file: '.codex/config.toml', model: 'gpt-5.5' },
    command: 'codex exec --skip-git-repo-check "Say hello"',
  },
  'gemini-cli': {
    ...{ heading: '### Gemini CLI', file: '.gemini/settings.json', model: 'gemini-3.8-flash' },
    command: `gemini --skip-trust -m gemini-3.8-flash -p "Say hello"`,
  },
});

export const canSignIn = (id: string): boolean => Object.hasOwn(SIGNED_IN, id);

/**
 * Signs in with `tollgate login`, sets a client up as in the page and sends hello as that person; returns the problem.
 */
export async function runSignedIn(id: string): Promise<string | undefined> {
  const row = SIGNED_IN[id];
  if (!row) return undefined;
  const vendor = await startScriptedVendor(() => ({ text: HELLO }));
  const scripted = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
  const rig = await startSignInRig({ providers: { scripted }, models: { [row.model]: 'scripted/m' } });
  const home = mkdtempSync(path.join(os.tmpdir(), 'tollgate-signed-in-'));
  try {
    const login = startCli(['login', rig.origin], home);
    const [, link = ''] = await login.seen(/^Open (\S+)$/m);
    await decideOnProgram(link);
    const { code, stderr } = await login.finished;
    if (code !== 0) return `tollgate login: ${stderr}`;
    const lines = setUp(row, home, rig.origin);
    const env = { ...environment(home, id), TERM: 'dumb', CI: '1', NO_COLOR: '1' };
    const finished = await runProgram(['bash', '-ec', [...lines, row.command].join('\n')], {
      ...{ cwd: home, env, withinMs: RUN_MS },
    });
    if (!finished.stdout.includes(HELLO))
      return `it ended with ${finished.code}: ${`${finished.stdout}${finished.stderr}`.slice(-600)}`;
    const { data } = await rig.gateway.command<{ data: readonly { user: string }[] }>('usage', '--by', 'user');
    return data.some(({ user }) => user === 'ann') ? undefined : 'what it spent is not of the person';
  } finally {
    await rig.stop();
    await vendor.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Writes the file of the chapter; returns its lines for a shell. */
function setUp(
  { heading, file }: { readonly heading: string; readonly file: string },
  home: string,
  origin: string,
): readonly string[] {
  const blocks = [...readChapter(PAGE, heading).matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(
    ([, language, text = '']) => ({ language, text: text.replaceAll('https://gateway.example', origin) }),
  );
  mkdirSync(path.dirname(path.join(home, file)), { recursive: true });
  writeFileSync(path.join(home, file), blocks[0]?.text ?? '');
  return blocks.flatMap(({ language, text }) => (language === 'sh' ? [text.trimEnd()] : []));
}

/** `tollgate` is on the path. No request of a client may leave the loopback. */
function environment(home: string, id: string): NodeJS.ProcessEnv {
  const bin = path.join(home, 'bin');
  putOnPath(bin);
  return {
    ...{ PATH: `${bin}:${programsOf('node')}:${programsOf(id)}:${process.env['PATH']}`, HOME: home },
    ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
    ...{ HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost' },
  };
}
