import { expect } from 'chai';
import { normalisePath } from '../../../core/http/lifecycle.ts';

describe('the path of a request', () => {
  const ROWS: readonly (readonly [path: string, seen: string])[] = [
    ['/v1/models', '/v1/models'],
    ['//v1///models', '/v1/models'],
    ['/v1/models/', '/v1/models'],
    ['/', '/'],
    ['/v1beta/models/x%3AcountTokens', '/v1beta/models/x:countTokens'],
    ['/a%3a%2F%3B', '/a:%2F%3B'],
    ['//', '/'],
    ['/api/core/openai/v1/models', '/api/core/openai/models'],
    ['//api/core/openai//v1/chat/completions/', '/api/core/openai/chat/completions'],
    ['/api/core/openai/v1', '/api/core/openai/v1'],
    ['/api/core/openai/models/v1/x', '/api/core/openai/models/v1/x'],
    ['/api/core/v1/models', '/api/core/v1/models'],
    ['/api/core/v1/v1/models', '/api/core/v1/models'],
  ];
  for (const [path, seen] of ROWS) it(`${path} is read as ${seen}`, () => expect(normalisePath(path)).to.equal(seen));
});
