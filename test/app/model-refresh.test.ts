import { expect } from 'chai';
import { createHttpClient } from '../../egress/http-client.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { respondWith, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('the model list of a vendor', () => {
  it('is fetched while the gateway runs, added, and stored', async () => {
    const upstream = await startScriptedUpstream(
      respondWith(200, { object: 'list', data: [{ id: 'brand-new-model', object: 'model' }] }),
    );
    const gateway = await startGateway({
      providers: {
        local: {
          plugin: 'openai-compatible',
          baseUrl: upstream.url,
          apiKey: 'sk-local-operator-key',
          models: ['+known'],
          refreshModels: '24h',
        },
      },
    });
    try {
      await until('the list is there', () => gateway.models.list('local').includes('brand-new-model'));
      const ids = (await gateway.openai().models.list()).data.map(({ id }) => id);
      expect(ids).to.include.members(['local/known', 'local/brand-new-model']);
      expect(upstream.requests[0]?.headers['authorization']).to.equal('Bearer sk-local-operator-key');
      expect(gateway.logText()).not.to.include('sk-local-operator-key');
    } finally {
      await gateway.stop();
      await upstream.close();
    }
  });

  it('has 5,000 names at most, of 200 characters at most', async () => {
    const data = Array.from({ length: 6000 }, (_, n) => ({ id: n === 0 ? 'x'.repeat(201) : `model-${n}` }));
    const upstream = await startScriptedUpstream(respondWith(200, { object: 'list', data }));
    const gateway = await startGateway({
      providers: {
        local: {
          plugin: 'openai-compatible',
          baseUrl: upstream.url,
          apiKey: 'k',
          models: ['+known'],
          refreshModels: '24h',
        },
      },
    });
    try {
      await until('the list is there', () => gateway.models.list('local').length > 1);
      const names = gateway.models.list('local');
      expect(names).to.have.lengthOf(5001).and.include.members(['known', 'model-1', 'model-5000']);
      expect(Math.max(...names.map((name) => name.length))).to.be.at.most(200);
    } finally {
      await gateway.stop();
      await upstream.close();
    }
  });

  it('does not delay a start, and stays unchanged, when the vendor does not respond @slow', async () => {
    const upstream = await startScriptedUpstream(respondWith(500, 'broken'));
    const gateway = await startGateway({
      providers: {
        local: {
          plugin: 'openai-compatible',
          baseUrl: upstream.url,
          apiKey: 'k',
          models: ['known'],
          refreshModels: '24h',
        },
      },
    });
    try {
      await until('it is said', () => gateway.logText().includes('could not be fetched'));
      expect(gateway.models.list('local')).to.deep.equal(['known']);
    } finally {
      await gateway.stop();
      await upstream.close();
    }
  });
});

describe('a request for a list of models', () => {
  let nock: typeof import('nock');
  // Imported only here: nock patches the sockets of the whole process from its import on.
  before(async () => {
    ({ default: nock } = await import('nock'));
    if (!nock.isActive()) nock.activate();
  });
  afterEach(() => nock.cleanAll());
  after(() => nock.restore());

  it('does not follow a redirect with the key attached', async () => {
    const elsewhere = nock('http://127.0.0.1:18081').get('/').reply(200, {});
    nock('http://127.0.0.1:18080').get('/v1/models').reply(302, '', { location: 'http://127.0.0.1:18081/' });
    const client = await createHttpClient(new Set(['127.0.0.1:18080']), '0.0.0');
    const response = await client.get('http://127.0.0.1:18080/v1/models', { headers: { 'x-api-key': 'secret' } });
    expect(response.statusCode).to.equal(302);
    expect(elsewhere.isDone()).to.equal(false);
  });

  it('goes to the hosts of its provider only', async () => {
    const client = await createHttpClient(new Set(['127.0.0.1:18080']), '0.0.0');
    const error = await client.get('http://127.0.0.1:18082/').catch((failure: Error) => failure);
    expect(String(error)).to.include('127.0.0.1:18080 only');
  });
});
