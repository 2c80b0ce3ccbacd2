import { expect } from 'chai';
import { removeFolders } from '../support/folders.ts';
import { checkText, problemLines } from './config-plugins.ts';

describe('the tags of a configuration', () => {
  afterEach(removeFolders);

  it('are the allowed values of each name', async () => {
    const { tags } = await checkText('tags: { team: [search, ads], project: "*" }\n');
    expect({ ...tags }).to.deep.equal({ team: ['search', 'ads'], project: '*' });
    expect((await checkText('providers: {}\n')).tags).to.deep.equal({});
  });

  const WRONG: readonly (readonly [text: string, message: RegExp])[] = [
    ['tags: { Team: [a] }', /tags\.Team: is not a valid tag name\. Use 1 to 32 of a-z/],
    ['tags: { team: ["a,b"] }', /tags\.team\[0\]: is not a valid tag value\./],
    ['tags: { team: ["=x"] }', /tags\.team\[0\]: is not a valid tag value/],
    ['tags: { team: [] }', /tags\.team: /],
    ['tags: { team: any }', /tags\.team: /],
    ['tags: [team]', /tags: must be/],
  ];
  for (const [text, message] of WRONG)
    it(`are refused as ${text}, with their place`, async () => {
      expect((await problemLines(`${text}\n`)).join('\n')).to.match(message);
    });
});
