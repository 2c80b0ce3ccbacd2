import { expect } from 'chai';
import type { Endpoint } from '../../contract/provider.ts';
import { joinPath, parseBaseUrl } from '../../egress/address.ts';
import { bindCredential } from '../../egress/upstream.ts';
import { corpusJson } from '../support/corpus.ts';

describe('upstream address', () => {
  describe('a base URL', () => {
    for (const [url, origin, basePath] of [
      ['https://api.example.com', 'https://api.example.com', ''],
      ['https://api.example.com/v1/', 'https://api.example.com', '/v1'],
      ['HTTP://127.0.0.1:11434/v1', 'http://127.0.0.1:11434', '/v1'],
      ['http://[::1]:8080', 'http://[::1]:8080', ''],
      ['https://api.example.com:443/a%20b', 'https://api.example.com', '/a%20b'],
    ] as const) {
      it(`is accepted: ${url}`, () => expect(parseBaseUrl(url)).to.include({ origin, basePath }));
    }

    for (const url of [
      '',
      'api.example.com',
      '/v1',
      'ftp://api.example.com',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'https://user:canary@api.example.com',
      'https://canary@api.example.com',
      'https://api.example.com/?key=canary',
      'https://api.example.com/#canary',
      'https://evil.example#.api.example.com',
      'https://api.example.com/?',
      'https://api.example.com/a/../b',
      'https://api.example.com/%2e%2E/b',
      'https://api.example.com/..',
      'https:\\\\api.example.com',
      'https://api.example.com/a\tb',
      ' https://api.example.com',
    ]) {
      it(`is refused, without showing it: ${JSON.stringify(url)}`, () => {
        expect(() => parseBaseUrl(url))
          .to.throw(TypeError)
          .with.property('message')
          .that.does.not.include('canary');
      });
    }
  });

  describe('a path', () => {
    const base = parseBaseUrl('https://api.example.com/v1');

    for (const path of [
      '/chat/completions',
      '/models?after=a%2Fb&limit=10',
      '/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
      '/models/a..b',
      '/models/a%2fb%0d',
      '/openai/deployments/x/chat/completions?api-version=2024-10-21',
      '/@x/~y',
    ]) {
      it(`is appended: ${path}`, () => expect(joinPath(base, path)).to.equal(`/v1${path}`));
    }

    for (const path of [
      '',
      'chat',
      '//evil.example/x',
      'http://evil.example/',
      '@evil.example/',
      '/../admin',
      '/a/../../admin',
      '/a/..',
      '/./a',
      '/%2e%2e/admin',
      '/.%2E/admin',
      '/a/..?x',
      '/a/..;x/b',
      '/a\\..\\b',
      '/a#b',
      '/a b',
      '/a\r\nx: y',
      '/ä',
      '/a\u0000',
      '/\u2028',
    ]) {
      it(`is refused: ${JSON.stringify(path)}`, () => expect(() => joinPath(base, path)).to.throw(TypeError));
    }

    it('can’t change the origin, whatever a caller inserts', () => {
      const read = (name: string) => corpusJson(`gateway-cases/${name}`) as { cases: readonly unknown[] };
      const urls = (read('ssrf-base-urls.json').cases as readonly { input: string }[]).map(({ input }) => input);
      const names = read('names.json').cases as readonly string[];
      const inputs = [...urls, ...names];
      expect(inputs.length).to.be.greaterThan(40);
      for (const input of inputs) {
        for (const path of [input, `/${input}`, `/models/${input}`, `/models/${encodeURIComponent(input)}`]) {
          let joined: string;
          try {
            joined = joinPath(base, path);
          } catch {
            continue;
          }
          const url = new URL(joined, base.origin);
          expect(url.origin, path).to.equal('https://api.example.com');
          expect(url.pathname, path).to.match(/^\/v1\//);
          expect(url.pathname + url.search, path).to.equal(joined);
        }
      }
    });
  });

  describe('a key', () => {
    const endpoint = (more: Partial<Endpoint> = {}): Endpoint => ({
      baseUrl: 'https://api.example.com/v1',
      hosts: ['eu.example.com', 'eu.example.com:8443'],
      credential: { header: 'X-Api-Key', value: 'canary', required: true },
      error: () => ({ class: 'upstream_error', message: '' }),
      ...more,
    });

    for (const to of ['https://api.example.com/x', 'https://eu.example.com', 'https://eu.example.com:8443/y']) {
      it(`goes to a declared host: ${to}`, () => {
        expect(bindCredential(endpoint(), parseBaseUrl(to))).to.deep.equal(['x-api-key', 'canary']);
      });
    }

    for (const to of [
      'https://evil.example',
      'https://api.example.com.evil.example',
      'https://api.example.com:8443',
      'https://sub.eu.example.com',
      'https://eu.example.com:9',
    ]) {
      it(`goes nowhere else: ${to}`, () => {
        expect(() => bindCredential(endpoint(), parseBaseUrl(to)))
          .to.throw(TypeError)
          .with.property('message')
          .that.does.not.match(/canary|evil/);
      });
    }

    it('is not sent when none is set', () => {
      const none = endpoint({
        credential: { header: 'authorization', prefix: 'Bearer ', value: undefined, required: false },
      });
      expect(bindCredential(none, parseBaseUrl('https://evil.example'))).to.equal(undefined);
    });

    it('has its prefix', () => {
      const bearer = endpoint({
        credential: { header: 'authorization', prefix: 'Bearer ', value: 'canary', required: true },
      });
      expect(bindCredential(bearer, parseBaseUrl(bearer.baseUrl))).to.deep.equal(['authorization', 'Bearer canary']);
    });
  });
});
