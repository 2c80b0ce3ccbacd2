import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

describe('the agent endpoint on the offline provider', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ agents: { team: { model: 'echo/echo' } } });
  });
  after(() => gateway.stop());

  it('answers the spec’s request with the spec’s response', async () => {
    const response = await gateway.post('/api/core/agent', {
      model: 'echo/echo',
      message: 'Get me to the kitchen',
      response_model: { answer: 'string', steps: ['string'] },
    });
    const body = (await response.json()) as {
      content: { answer: string; steps: string[] };
      usage: Record<string, number>;
      model: string;
    };
    expect(response.status, JSON.stringify(body)).to.equal(200);
    expect(body.content.answer).to.be.a('string');
    expect(body.content.steps).to.be.an('array');
    expect(body.usage['total_tokens']).to.equal(body.usage['prompt_tokens']! + body.usage['completion_tokens']!);
    expect(body.model).to.include('echo');
  });

  it('charges each of its model calls and shows them in one access-log line', async () => {
    const before = (await (await gateway.get('/api/core/usage?group_by=operation')).json()) as {
      data: { requests: number }[];
    };
    const response = await gateway.post('/api/core/agent', { message: 'Describe the room' });
    expect(response.status).to.equal(200);
    const after = (await (await gateway.get('/api/core/usage?group_by=operation')).json()) as {
      data: { requests: number }[];
    };
    const line = gateway.logs.findLast(({ route }) => route === 'POST /api/core/agent');
    expect(line?.['calls'] ?? 1).to.equal(after.data[0]!.requests - (before.data[0]?.requests ?? 0));
  });
});
