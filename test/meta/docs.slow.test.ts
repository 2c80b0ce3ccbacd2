import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';
import { checkTypes } from '../support/type-check.ts';

describe('TypeScript in the docs', () => {
  const folder = useTempFolder('docs');

  it('type-checks', async () => {
    // A block that imports a local file is part of a larger example on its page.
    const whole = readBlocks().filter(({ language, text }) => language === 'ts' && !/from '\.\.?\//.test(text));
    for (const { page, line, text } of whole)
      writeFileSync(path.join(folder, `${page.replaceAll(/\W/g, '-')}-${line}.ts`), `${text}\nexport {};\n`);
    expect(await checkTypes(folder, '*.ts')).to.equal('');
  });
});
