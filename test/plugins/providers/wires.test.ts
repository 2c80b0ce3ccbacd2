import { expect } from 'chai';
import type { ChatRequest, HttpRequest } from '../../../contract/index.ts';
import { effectsOf } from '../../../core/calls/gates.ts';
import bedrock from '../../../plugins/providers/bedrock.ts';
import vertex from '../../../plugins/providers/vertex.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';

const TOOL = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } } as const;

describe('a vendor with several wires', () => {
  const providers = {
    vertex: setUpProvider(vertex, { project: 'acme-1', location: 'global', apiKey: 'k' }),
    bedrock: setUpProvider(bedrock, { region: 'us-east-1', apiKey: 'k' }),
  };
  const models = {
    vertex: ['gemini-3.8-flash', 'claude-sonnet-4-5@20250929'],
    bedrock: ['amazon.nova-pro-v1:0', 'anthropic.claude-sonnet-4-5-20250929-v1:0'],
  };
  const needs = (provider: keyof typeof providers, model: string, sent: HttpRequest) =>
    effectsOf(providers[provider].effects, { provider, model }, sent).map(({ name }) => name);

  for (const provider of ['vertex', 'bedrock'] as const)
    for (const model of models[provider])
      for (const stream of [false, true])
        it(`G21: requires no permission for a caller’s own tool: ${provider}/${model}${stream ? ', streamed' : ''}`, () => {
          const request: ChatRequest = { model, messages: [{ role: 'user', content: 'Hi' }], tools: [TOOL] };
          const sent = providers[provider].chat?.request(request, { model, stream, created: 1, id: 'x', request });
          expect(JSON.stringify(sent?.body)).to.include('get_weather');
          expect(needs(provider, model, sent as HttpRequest)).to.deep.equal([]);
        });

  it('G21: requires permission for a tool of the vendor in each API', () => {
    const search = { tools: [{ type: 'web_search_20250305', name: 'web_search' }] };
    expect(needs('vertex', 'claude-sonnet-4-5', { path: '/', body: search })).to.deep.equal(['web_search_20250305']);
    expect(needs('bedrock', 'anthropic.claude-sonnet-4-5', { path: '/', body: search })).to.have.length(1);
    const google = { tools: [{ googleSearch: {} }] };
    expect(needs('vertex', 'gemini-3.8-flash', { path: '/', body: google })).to.deep.equal(['googleSearch']);
  });
});
