import { expect } from 'chai';
import { readTags } from '../../../core/http/koa.ts';
import { refusal } from '../../support/errors.ts';

const RULES = { team: ['search', 'ads'], project: '*', env: ['a', 'b'], one: '*', two: '*', three: '*' } as const;

describe('the tags of a request', () => {
  const TAGS: readonly (readonly [header: string, own: readonly string[], tags: readonly string[]])[] = [
    ['team=search', [], ['team=search']],
    [' team=search , project=Apollo 11 ', [], ['team=search', 'project=Apollo 11']],
    ['team=search,team=search', [], ['team=search']],
    ['team=search', ['team=search'], ['team=search']],
    ['project=x', ['team=search'], ['team=search', 'project=x']],
    [',,', ['team=ads'], ['team=ads']],
    ['team=search,project=a,env=b,one=1,two=2', [], ['team=search', 'project=a', 'env=b', 'one=1', 'two=2']],
  ];
  for (const [header, own, tags] of TAGS.filter(([, , found]) => found.length > 0))
    it(`are ${tags.join(' and ')} for "${header}" of a key with ${own.join() || 'none'}`, () =>
      expect(readTags(header, own, RULES)).to.deep.equal(tags));

  const REFUSED: readonly (readonly [header: string, own: readonly string[], message: RegExp])[] = [
    ['team=sales', [], /"sales" is not an allowed value of the tag "team". Use one of search, ads\.$/],
    ['squad=search', [], /The tag "squad" does not exist. Use one of team, project, /],
    ['constructor=x', [], /The tag "constructor" does not exist/],
    ['__proto__=x', [], /The tag "__proto__" does not exist/],
    ['team', [], /"team" is not a tag. Use name=value/],
    ['=search', [], /is not a tag. Use name=value/],
    ['team=', [], /"" is not an allowed value of the tag "team"/],
    ['project=', [], /is not a valid value of the tag "project"/],
    ['project==1+1', [], /is not a valid value/],
    ['project=a\u0000b', [], /is not a valid value/],
    [`project=${'x'.repeat(65)}`, [], /is not a valid value/],
    [`project=${'x'.repeat(10_000)}`, [], /…" is not a valid value/],
    ['team=search', ['team=ads'], /The tag "team" is set by this key or token and cannot be set/],
    ['team=search,team=ads', [], /The tag "team" has two values/],
    ['team=search,project=a,env=b,one=1,two=2,three=3', [], /at most 5 tags/],
    ['three=3', ['team=search', 'project=a', 'env=b', 'one=1', 'two=2'], /at most 5 tags/],
  ];
  for (const [header, own, message] of REFUSED)
    it(`are refused for "${header.slice(0, 40)}" of a key with ${own.join() || 'none'}`, () => {
      const error = refusal(() => readTags(header, own, RULES));
      expect(error.code).to.equal('invalid_request');
      expect(error.param).to.equal('x-tollgate-tag');
      expect(error.message).to.match(message).and.to.have.length.below(600);
    });

  it('are refused with the operator’s remedy if none are configured', () => {
    expect(refusal(() => readTags('team=search', [], {})).message).to.match(/No tags are configured. The operator/);
  });
});
