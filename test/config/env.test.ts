import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadEnv } from '../../config/sources.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

describe('the environment', () => {
  afterEach(removeFolders);

  it('prefers the real environment over .env.local over .env', async () => {
    const cwd = makeFolder({ '.env': 'A=env\nB=env\nC=env\n', '.env.local': 'A=local\nB=local\n' });
    const env = await loadEnv({ A: 'real' }, [cwd], cwd);
    expect(env).to.deep.equal({ A: 'real', B: 'local', C: 'env' });
  });

  it('keeps a real variable that is empty', async () => {
    const cwd = makeFolder({ '.env': 'A=env\n' });
    expect(await loadEnv({ A: '' }, [cwd], cwd)).to.deep.equal({ A: '' });
  });

  it('prefers an earlier folder over a later one', async () => {
    const [first, second] = [makeFolder({ '.env': 'A=1\n' }), makeFolder({ '.env.local': 'A=2\nB=2\n' })];
    expect(await loadEnv({}, [first, second], first)).to.deep.equal({ A: '1', B: '2' });
  });

  it('reads quotes, comments and export', async () => {
    const cwd = makeFolder({ '.env': '# note\nexport A="x y" # why\nB=\'c#d\'\nC=\n' });
    expect(await loadEnv({}, [cwd], cwd)).to.deep.equal({ A: 'x y', B: 'c#d', C: '' });
  });

  it('never changes the given environment', async () => {
    const given = { A: 'real' };
    const cwd = makeFolder({ '.env': 'B=env\n' });
    await loadEnv(given, [cwd], cwd);
    expect(given).to.deep.equal({ A: 'real' });
  });

  it('reports an unreadable .env', async () => {
    const cwd = makeFolder();
    mkdirSync(path.join(cwd, '.env'));
    const message = await loadEnv({}, [cwd], cwd).catch((error: Error) => error.message);
    expect(message).to.include('.env cannot be read (EISDIR). Make it a file that this user can read, or remove it.');
  });
});
