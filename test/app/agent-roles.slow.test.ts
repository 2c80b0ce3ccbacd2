import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { type ModelServer, startModelServer } from '../support/agents/model-server.ts';
import { systemOf } from '../support/agents/scripted-model.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

describe('the system role of agents', () => {
  let gateway: TestGateway;
  let vendor: ModelServer;
  let folder: string;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-roles-'));
    await writeFile(path.join(folder, 'CANARY-file.md'), '# CANARY-title\n\nCANARY-document of the harbour.\n');
  });
  afterEach(async () => {
    await gateway?.stop();
    await vendor?.close();
  });
  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('D21 contains no text of users, documents or models', async () => {
    const report = { summary: 'CANARY-report', confidence: 1 };
    const instruction = 'CANARY-instruction harbour';
    const needs = [{ agent: 'clerk', question: 'CANARY-question harbour' }];
    const assignments = ['clerk', 'pilot'].map((agent) => ({ agent, instruction }));
    vendor = await startModelServer([
      { system: 'Summarise the conversation', reply: 'CANARY-summary' },
      { system: 'You lead a team', reply: { agents: assignments } },
      { system: 'I pilot', user: 'Reports of others', reply: report },
      { system: 'I pilot', reply: { ...report, needs } },
      { system: 'I answer from papers', reply: report },
      // The first reply is invalid, so that the correction is tested too.
      { system: 'You write the one result', times: 1, reply: { 'CANARY-wrong': 1 } },
      { system: 'You write the one result', reply: { answer: 'CANARY-answer' } },
    ]);
    const off = { navigation: false, perception: false, planning: false, safety: false, conversation: false };
    const clerk = { when: 'papers', instructions: 'I answer from papers.', tools: ['rag'] };
    const pilot = { when: 'ships', instructions: 'I pilot.' };
    gateway = await startGateway({
      providers: { scripted: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] } },
      agents: {
        rag: { folder, watch: '50ms' },
        team: { model: 'scripted/m', agents: { ...off, clerk, pilot }, memory: { turns: 1 } },
      },
    });
    await until('the folder is indexed', () => gateway.logText().includes('knowledge base indexed'));
    const body = { message: 'CANARY-message harbour', inputs: { note: 'CANARY-input' }, context: 'A context.' };
    for (let turn = 0; turn < 4; turn += 1) {
      const response = await gateway.post('/api/core/agent', { ...body, response_model: { answer: 'string' } });
      expect(response.status, await response.text()).to.equal(200);
    }
    const requests = vendor.model.calls.map(({ request }) => request);
    const seen = JSON.stringify(requests);
    const words = 'message input document title report instruction question summary answer wrong';
    for (const word of words.split(' ')) expect(seen, 'the test has no canary').to.include(`CANARY-${word}`);
    for (const request of requests) expect(systemOf(request)).not.to.include('CANARY');
  });

  it('D21 contains no text of patients, documents or models in the medical agents', async () => {
    const sorted = { urgency: 'routine', complexity: 'complex', specialties: ['cardiology'], language: 'en' };
    const triage = { ...sorted, red_flags: ['CANARY-flag'], self_harm: false, medicines_involved: true };
    const lists = { considerations: ['CANARY-consideration'], questions: ['CANARY-question'] };
    const opinion = { ...lists, summary: 'CANARY-opinion', must_not_miss: ['CANARY-miss'], avoid: ['CANARY-avoid'] };
    const draft = { urgency: 'routine', summary: 'CANARY-draft may help.', recommended_next_steps: ['CANARY-step'] };
    vendor = await startModelServer([
      { system: 'Summarise the conversation', reply: 'CANARY-summary' },
      { schema: 'triage', times: 1, reply: { 'CANARY-wrong': 1 } },
      { schema: 'triage', reply: triage },
      { schema: 'opinion', reply: opinion },
      { schema: 'answer', reply: { ...draft, ...lists, source_numbers: [1] } },
      { schema: 'verdict', times: 1, reply: { verdict: 'veto', reasons: ['CANARY-reason'] } },
      { schema: 'verdict', reply: { verdict: 'pass', reasons: [] } },
    ]);
    gateway = await startGateway({
      providers: { scripted: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] } },
      agents: { rag: { folder, watch: '50ms' }, medical: { model: 'scripted/m', memory: { turns: 1 } } },
    });
    await until('the folder is indexed', () => gateway.logText().includes('knowledge base indexed'));
    const lines = { history: 'CANARY-history', medications: ['CANARY-medicine'], allergies: 'CANARY-allergy' };
    const patient = { ...lines, age: 50, sex: 'CANARY-sex' };
    const body = { message: 'CANARY-message harbour', patient, session: 's' };
    for (let turn = 0; turn < 4; turn += 1) {
      const response = await gateway.post('/api/core/agent/medical', body);
      expect(response.status, await response.text()).to.equal(200);
    }
    const requests = vendor.model.calls.map(({ request }) => request);
    const seen = JSON.stringify(requests);
    const written = 'message history medicine allergy sex document title';
    const generated = 'summary opinion miss avoid draft step reason wrong';
    for (const word of `${written} ${generated}`.split(' '))
      expect(seen, 'the test has no canary').to.include(`CANARY-${word}`);
    for (const request of requests) expect(systemOf(request)).not.to.include('CANARY');
  });
});
