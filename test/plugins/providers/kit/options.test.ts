import { expect } from 'chai';
import { nativeRows, type ProviderConfig, readProviderOptions } from '../../../../plugins/providers/kit/index.ts';
import ollama from '../../../../plugins/providers/ollama.ts';
import openai from '../../../../plugins/providers/openai.ts';
import openaiCompatible from '../../../../plugins/providers/openai-compatible.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';

describe('the option native', () => {
  const rows = () => ({ chat: { path: '/c' }, other: undefined });
  const rowsOf = (native: ProviderConfig['native']) => nativeRows({ native }, rows)?.('m', false);

  it('keeps the rows by default', () => {
    expect(rowsOf(undefined)).to.deep.equal(rows());
    expect(rowsOf(true)).to.deep.equal(rows());
    expect(rowsOf({ references: 'refuse' })).to.deep.equal(rows());
  });

  it('removes them', () => {
    expect(rowsOf(false)).to.equal(undefined);
    expect(setUpProvider(openai, { native: false }).native).to.equal(undefined);
  });

  it('allows references to the operator’s account', () => {
    expect(rowsOf({ references: 'allow' })).to.deep.equal({ chat: { path: '/c', references: true }, other: undefined });
  });

  it('is about the paths of chat and of the Responses API at OpenAI', () => {
    const { chat, responses } = setUpProvider(openai, {}).native?.('gpt-5', true) ?? {};
    expect([chat?.path, responses?.path]).to.deep.equal(['/chat/completions', '/responses']);
  });
});

describe('the option remoteMedia', () => {
  const compatible = (baseUrl: string, more: object = {}) =>
    setUpProvider(openaiCompatible, { baseUrl, ...more }).remoteMedia;

  it('refuses addresses on the operator’s own network by default', () => {
    expect(setUpProvider(ollama, {}).remoteMedia).to.equal('refuse');
    for (const host of ['127.0.0.1:8000', 'localhost', '10.1.2.3', '[::1]:8000', 'vllm', 'gpu.internal'])
      expect(compatible(`http://${host}/v1`)).to.equal('refuse');
  });

  it('allows URLs for other providers', () => {
    expect(compatible('https://relay.example/v1')).to.equal(undefined);
    expect(setUpProvider(openai, { baseUrl: 'http://127.0.0.1:1/v1' }).remoteMedia).to.equal(undefined);
  });

  it('is the operator’s decision', () => {
    expect(compatible('http://127.0.0.1/v1', { remoteMedia: 'allow' })).to.equal('allow');
    expect(compatible('https://relay.example/v1', { remoteMedia: 'refuse' })).to.equal('refuse');
  });
});

describe('the options affinity and countFactor', () => {
  it('are passed on if configured', () => {
    const defaults = { baseUrl: 'https://acme.example' };
    expect(readProviderOptions({ affinity: 'team', countFactor: 1.2 }, defaults)).to.include({
      ...{ affinity: 'team', countFactor: 1.2 },
    });
    expect(readProviderOptions({}, defaults)).not.to.have.any.keys('affinity', 'countFactor', 'remoteMedia');
  });
});
