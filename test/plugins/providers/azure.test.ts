import { expect } from 'chai';
import azure from '../../../plugins/providers/azure.ts';
import { readChunks } from '../../conformance/provider-shape.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { codecCall, decode } from '../../support/formats/codec.ts';
import { translate } from '../../support/formats/translate.ts';

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

  it('prefers a base URL over the resource', () => {
    expect(setUpProvider(azure, { resource: 'acme', baseUrl: 'https://proxy.example/openai/v1' }).baseUrl).to.equal(
      'https://proxy.example/openai/v1',
    );
  });

  it('reports its required options when it has no URL', () => {
    expect(() => setUpProvider(azure, {})).to.throw('`resource` or `baseUrl`');
  });

  it('holds the rules of the model behind a deployment', () => {
    const config = { resource: 'acme', deployments: { prod: 'gpt-5' } };
    expect(translate(azure, { model: 'prod', max_tokens: 5 }, config).body).to.include({
      model: 'prod',
      max_completion_tokens: 5,
    });
    expect(translate(azure, { model: 'prod', reasoning_effort: 'max' }, config).body).to.include({
      model: 'prod',
      reasoning_effort: 'high',
    });
    expect(translate(azure, { model: 'gpt-5-eu', max_tokens: 5 }, config).body).to.include({
      max_completion_tokens: 5,
    });
  });

  it('D25: keeps the content filter’s results of a JSON response', () => {
    const filter = { hate: { filtered: false, severity: 'safe' } };
    const prompt_filter_results = [{ prompt_index: 0, content_filter_results: filter }];
    const message = { role: 'assistant', content: 'x' };
    const choices = [{ index: 0, message, finish_reason: 'stop', content_filter_results: filter }];
    const { chat } = setUpProvider(azure, { resource: 'acme' });
    const read = chat?.response({ choices, prompt_filter_results }, codecCall());
    expect(read?.['prompt_filter_results']).to.deep.equal(prompt_filter_results);
    expect(read?.choices[0]?.['content_filter_results']).to.deep.equal(filter);
  });

  it('D25: keeps the content filter’s results of a stream, of the prompt, of the text and after the end', () => {
    const filter = (severity: string) => ({ hate: { filtered: false, severity } });
    const prompt_filter_results = [{ prompt_index: 0, content_filter_results: filter('safe') }];
    const late = { content_filter_results: filter('low'), content_filter_offsets: { check_offset: 1 } };
    const { chat } = setUpProvider(azure, { resource: 'acme' });
    const events = [
      { id: '', model: '', created: 0, choices: [], prompt_filter_results },
      { choices: [{ index: 0, delta: { role: 'assistant', content: 'x' }, finish_reason: null }] },
      { choices: [{ index: 0, finish_reason: null, ...late }] },
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { choices: [{ index: 0, finish_reason: null, ...late }] },
    ].map((data) => ({ data: JSON.stringify(data) }));
    const { chunks, complete } = decode(chat?.stream(codecCall()) ?? expect.fail(), events);
    expect(complete).to.equal(true);
    expect(chunks[0]?.['prompt_filter_results']).to.deep.equal(prompt_filter_results);
    expect(chunks.map(({ choices }) => choices[0]?.['content_filter_offsets'])).to.deep.equal([
      undefined,
      { check_offset: 1 },
      undefined,
      { check_offset: 1 },
    ]);
    expect(readChunks(chunks).choices[0]).to.include({ content: 'x', finish_reason: 'stop' });
  });

  it('accepts any deployment’s name', () => {
    expect(setUpProvider(azure, { resource: 'acme' }).anyModel).to.equal(true);
  });
});
