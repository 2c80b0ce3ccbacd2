import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

describe('a plugin that its section turns on', () => {
  after(removeFolders);

  const load = async (text: string) => {
    const cwd = makeFolder({ 'tollgate.config.yaml': `auth: { api-key: {} }\nproviders: { echo: {} }\n${text}` });
    return await loadConfig({ cwd, env: {} });
  };
  const names = async (text: string) => (await load(text)).config.instances.map(({ name }) => name);
  const problemOf = async (text: string): Promise<string> => {
    try {
      await load(text);
    } catch (error) {
      return String((error as Error).message);
    }
    return '';
  };

  it('is not imported without it, nor with false', async () => {
    expect(await names('')).to.not.include('mcp');
    expect(await names('mcp: false')).to.not.include('mcp');
    expect(await names('mcp: { servers: { files: { command: none } } }\noperations: { mcp: false }')).to.not.include(
      'mcp',
    );
  });

  it('is on with it', async () => {
    expect(await names('mcp: { servers: { files: { command: none } } }')).to.include('mcp');
  });

  const PROBLEMS: readonly (readonly [section: string, problem: string])[] = [
    ['mcp: {}', 'mcp.servers: has no server'],
    ['mcp: { servers: {} }', 'mcp.servers'],
    ['mcp: { servers: { Files: { command: none } } }', 'mcp.servers'],
    ['mcp: { servers: { files: {} } }', 'mcp.servers.files: has neither "url" nor "command"'],
    ['mcp: { servers: { files: { command: a, url: "http://127.0.0.1/mcp" } } }', 'has "url" and "command"'],
    [
      'mcp: { servers: { files: { url: "http://127.0.0.1/mcp", args: [a] } } }',
      'mcp.servers.files.args: is for a program',
    ],
    ['mcp: { servers: { files: { url: "http://user:secret@127.0.0.1/mcp" } } }', 'mcp.servers.files.url'],
    ['mcp: { servers: { files: { url: "file:///etc/passwd" } } }', 'mcp.servers.files.url'],
    ['mcp: { servers: { files: { command: a, auth: { value: b } } } }', 'mcp.servers.files.auth'],
    ['mcp: { servers: { files: { command: a, toolz: {} } } }', 'mcp.servers.files.toolz'],
    ['mcp: { servers: { files: { command: a, timeout: 1 } } }', 'mcp.servers.files.timeout'],
    [`mcp: { servers: { files: { command: a, env: { TOKEN: "\${NOT_SET}" } } } }`, 'NOT_SET'],
  ];
  for (const [section, problem] of PROBLEMS)
    it(`reports the problem of ${section}`, async () => {
      const message = await problemOf(section);
      expect(message).to.include(problem);
      expect(message).to.not.include('user:secret');
    });
});
