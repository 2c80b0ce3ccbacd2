import { expect } from 'chai';
import azure from '../../../plugins/providers/azure.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { translate } from '../../support/translate.ts';

describe('azure', () => {
  it('goes to the resource’s own host, with the key in its own header', () => {
    const { baseUrl, credential } = setUpProvider(azure, { resource: 'acme', apiKey: 'k' });
    expect(baseUrl).to.equal('https://acme.openai.azure.com/openai/v1');
    expect(credential).to.include({ header: 'api-key', value: 'k' }).and.not.have.property('prefix');
  });

  it('goes to deployments when an api-version is configured', () => {
    const config = { resource: 'acme', apiVersion: '2024-10-21' };
    expect(setUpProvider(azure, config).baseUrl).to.equal('https://acme.openai.azure.com/openai');
    expect(translate(azure, { model: 'my gpt/5' }, config).path).to.equal(
      '/deployments/my%20gpt%2F5/chat/completions?api-version=2024-10-21',
    );
    expect(setUpProvider(azure, config).listModels?.request().path).to.equal('/models?api-version=2024-10-21');
  });

  it('lets a base URL win over the resource', () => {
    expect(setUpProvider(azure, { resource: 'acme', baseUrl: 'https://proxy.example/openai/v1' }).baseUrl).to.equal(
      'https://proxy.example/openai/v1',
    );
  });

  it('says what it needs when it has no address', () => {
    expect(() => setUpProvider(azure, {})).to.throw('`resource` or `baseUrl`');
  });

  it('holds the rules of the model behind a deployment', () => {
    const config = { resource: 'acme', deployments: { prod: 'gpt-5' } };
    expect(translate(azure, { model: 'prod', max_tokens: 5 }, config).body).to.include({
      model: 'prod',
      max_completion_tokens: 5,
    });
    expect(translate(azure, { model: 'gpt-5-eu', max_tokens: 5 }, config).body).to.include({
      max_completion_tokens: 5,
    });
    expect(translate(azure, { model: 'other', max_tokens: 5 }, config).body).to.include({ max_tokens: 5 });
  });

  it('accepts any deployment’s name', () => {
    expect(setUpProvider(azure, { resource: 'acme' }).anyModel).to.equal(true);
  });
});
