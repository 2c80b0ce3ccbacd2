import { expect } from 'chai';
import { type AgentDefinition, GatewayError } from '../../../../contract/index.ts';
import medical from '../../../../plugins/agents/medical/index.ts';
import team from '../../../../plugins/agents/team/index.ts';
import { type AgentGateway, openAgentGateway } from '../../../support/agents/agent-gateway.ts';
import {
  gate,
  lastUserText,
  type Rule,
  type ScriptedModel,
  schemaNameOf,
  scriptModel,
  systemOf,
} from '../../../support/agents/scripted-model.ts';

const PATH = '/api/core/agent/medical';
const NOTHING = { specialties: [], red_flags: [], self_harm: false, medicines_involved: false, language: 'en' };
const sorted = (more: object = {}) => ({ ...NOTHING, urgency: 'routine', complexity: 'simple', ...more });
const opinion = { summary: 'a cold', considerations: ['a cold'], must_not_miss: [], questions: [], avoid: [] };
const draft = (more: object = {}) => ({
  urgency: 'self_care',
  summary: 'This may be a common cold; a high fever would speak against it.',
  considerations: ['A cold is likely because of the runny nose.'],
  recommended_next_steps: ['Rest and drink enough.'],
  questions: ['Do you have a fever?'],
  ...more,
});
const pass = { verdict: 'pass', reasons: [] };
const veto = (reason: string) => ({ verdict: 'veto', reasons: [reason] });

/** Rules for a successful case; the given ones come first. */
const usual = (...first: Rule[]): readonly Rule[] => [
  ...first,
  { schema: 'triage', reply: sorted() },
  { schema: 'opinion', reply: opinion },
  { schema: 'answer', reply: draft() },
  { schema: 'verdict', reply: pass },
];

describe('agents/medical', () => {
  let gateway: AgentGateway | undefined;
  let model: ScriptedModel;

  const open = async (rules: readonly Rule[], config: object = {}, agents: readonly AgentDefinition[] = []) => {
    model = scriptModel(rules);
    const plugins = [
      { plugin: medical, config: { model: 'base/model', ...config } },
      { plugin: team, config: { model: 'base/model' } },
    ];
    gateway = await openAgentGateway({ plugins, model, agents });
    return gateway;
  };
  const callsFor = (name: string) => model.calls.filter(({ request }) => schemaNameOf(request) === name);
  const agentsOf = (body: { trace: { agent: string }[] }) => body.trace.map(({ agent }) => agent);

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
  });

  it('answers the content of the contract, with usage, model and disclaimer', async () => {
    const { post } = await open(usual());
    const { status, body } = await post(PATH, { message: 'I have a runny nose.' });
    expect(status).to.equal(200);
    expect(Object.keys(body.content)).to.deep.equal([
      'urgency',
      'summary',
      'considerations',
      'recommended_next_steps',
      'questions',
      'red_flags',
      'sources',
      'disclaimer',
    ]);
    expect(body.content).to.deep.include({ urgency: 'routine', red_flags: [], sources: [] });
    expect(body.content.disclaimer).to.include('not a diagnosis');
    expect(body.usage.total_tokens).to.be.greaterThan(0);
    expect(body.model).to.equal('base/model');
  });

  describe('chooses the specialists of the case', () => {
    const PANELS: readonly {
      readonly title: string;
      readonly triage: object;
      readonly patient?: object;
      readonly agents: readonly string[];
    }[] = [
      {
        title: 'one for a simple case',
        triage: sorted({ specialties: ['dermatology', 'cardiology'] }),
        agents: ['dermatology'],
      },
      {
        title: 'a panel for a moderate one',
        triage: sorted({ complexity: 'moderate', specialties: ['cardiology', 'neurology'] }),
        agents: ['cardiology', 'neurology', 'general_practice'],
      },
      {
        title: 'a panel in two rounds for a complex one',
        triage: sorted({ complexity: 'complex', specialties: ['cardiology'] }),
        agents: ['cardiology', 'general_practice', 'cardiology', 'general_practice'],
      },
      {
        title: 'medication safety where medicines are taken',
        triage: sorted(),
        patient: { medications: ['warfarin'] },
        agents: ['general_practice', 'medication_safety'],
      },
      {
        title: 'emergency medicine alone when the triage says emergency',
        triage: sorted({ urgency: 'emergency', complexity: 'complex' }),
        agents: ['emergency_medicine'],
      },
    ];
    for (const { title, triage, patient, agents } of PANELS) {
      it(title, async () => {
        const { post } = await open(usual({ schema: 'triage', reply: triage }));
        const { body } = await post(PATH, { message: 'I have a rash.', ...(patient && { patient }) });
        const panel = body.trace.filter(({ round }: { round?: number }) => round !== undefined);
        expect(agentsOf({ trace: panel })).to.have.members([...agents]);
      });
    }
  });

  it('shows the other opinions in the second round', async () => {
    const { post } = await open(
      usual({ schema: 'triage', reply: sorted({ complexity: 'complex', specialties: ['cardiology'] }) }),
    );
    await post(PATH, { message: 'Many things at once.' });
    const second = callsFor('opinion').slice(2);
    expect(second).to.have.length(2);
    for (const { request } of second) expect(systemOf(request)).to.include('Challenge what is weak');
  });

  it('shows the patient’s facts to every agent', async () => {
    const { post } = await open(usual());
    await post(PATH, { message: 'I have a rash.', patient: { age: 54, sex: 'female', allergies: ['penicillin'] } });
    for (const { request } of model.calls) expect(lastUserText(request)).to.include('penicillin');
  });

  describe('with a danger sign', () => {
    it('puts the urgent-care notice first, with the country’s number, and never lowers the urgency', async () => {
      const { post } = await open(usual());
      const { body } = await post(PATH, { message: 'I have chest pain.', patient: { country: 'GB' } });
      expect(body.content.urgency).to.equal('emergency');
      expect(body.content.summary).to.match(/^This may be an emergency\. Call 999 now/);
      expect(body.content.red_flags[0]).to.include({ id: 'chest_pain' });
      expect(body.content.red_flags[0].source.url).to.include('nhs.uk');
      expect(body.content.recommended_next_steps[0]).to.include('Call for help');
    });

    const LANGUAGES: readonly { readonly message: string; readonly says: RegExp }[] = [
      { message: 'Ich habe seit heute starke Schmerzen in der Brust', says: /^Das kann ein Notfall sein/ },
      { message: 'J’ai une douleur dans la poitrine depuis ce matin', says: /^Il peut s’agir d’une urgence/ },
      { message: 'Tengo dolor en el pecho desde esta mañana', says: /^Puede tratarse de una emergencia/ },
    ];
    for (const { message, says } of LANGUAGES) {
      it(`is in the language of "${message}"`, async () => {
        const { post } = await open(usual({ schema: 'triage', reply: sorted({ language: 'the same' }) }));
        const { body } = await post(PATH, { message });
        expect(body.content.summary).to.match(says);
      });
    }

    it('is sent also when every model is down', async () => {
      const { post } = await open([{ reply: new GatewayError('provider_unavailable', 'down') }]);
      const { status, body } = await post(PATH, { message: 'My face is drooping and my speech is slurred' });
      expect(status).to.equal(200);
      expect(body.content).to.include({ urgency: 'emergency' });
      expect(body.content.red_flags[0].id).to.equal('stroke');
    });

    it('streams it before any agent works', async () => {
      const { stream } = await open(usual());
      const { events } = await stream(PATH, { message: 'I have chest pain.' });
      expect(events[0]?.event).to.equal('notice');
      expect(events[0]?.data.notice).to.include('emergency');
      expect(events.at(-1)?.event).to.equal('result');
    });

    it('responds to a person in a crisis with a fixed text and no model', async () => {
      const { post } = await open([]);
      const { body } = await post(PATH, { message: 'I want to kill myself', patient: { country: 'US' } });
      expect(body.content.urgency).to.equal('emergency');
      expect(body.content.summary).to.include('988').and.include('911');
      expect(body.usage.total_tokens).to.equal(0);
      expect(model.calls).to.have.length(0);
    });

    it('puts the most urgent advice first when a person in a crisis has taken pills', async () => {
      const { post } = await open([]);
      const { body } = await post(PATH, { message: 'I took too many pills because I want to die' });
      expect(body.content.summary.indexOf('poison')).to.be.lessThan(body.content.summary.indexOf('glad you wrote'));
    });

    it('stops for a crisis that only the triage saw', async () => {
      const { post } = await open([{ schema: 'triage', reply: sorted({ urgency: 'urgent', self_harm: true }) }]);
      const { body } = await post(PATH, { message: 'I have said goodbye to everyone.' });
      expect(body.content.summary).to.include('glad you wrote');
      expect(model.calls).to.have.length(1);
    });

    it('includes the operator’s own line', async () => {
      const { post } = await open([], { crisisLine: '0123 456 (Our Line)' });
      const { body } = await post(PATH, { message: 'I want to die' });
      expect(body.content.summary).to.include('0123 456 (Our Line)');
    });

    it('uses the danger signs of the triage', async () => {
      const { post } = await open(
        usual({ schema: 'triage', reply: sorted({ urgency: 'urgent', red_flags: ['swollen calf'] }) }),
      );
      const { body } = await post(PATH, { message: 'My calf is fat and hot after a flight.' });
      expect(body.content.urgency).to.equal('urgent');
      expect(body.content.red_flags[0]).to.include({ id: 'triage', sign: 'swollen calf' });
      expect(body.content.red_flags[0].advice).to.include('today');
    });
  });

  describe('the safety review', () => {
    it('sees the complete response, notice included', async () => {
      const { post } = await open(usual());
      await post(PATH, { message: 'I have chest pain.' });
      expect(lastUserText(callsFor('verdict')[0]!.request)).to.include('This may be an emergency');
    });

    it('has an answer written again, with the reasons, and releases the second', async () => {
      const { post } = await open(
        usual(
          { schema: 'verdict', times: 1, reply: veto('It forgets fever.') },
          { schema: 'answer', user: 'It forgets fever.', reply: draft({ summary: 'With fever, see a doctor.' }) },
        ),
      );
      const { body } = await post(PATH, { message: 'I have a runny nose.' });
      expect(body.content.summary).to.equal('With fever, see a doctor.');
    });

    it('withholds an answer that is vetoed twice', async () => {
      const { post } = await open(usual({ schema: 'verdict', reply: veto('harmful') }));
      const { status, body } = await post(PATH, { message: 'I have a runny nose.' });
      expect(status).to.equal(200);
      expect(body.content.summary).to.include('cannot give a reliable answer');
      expect(JSON.stringify(body.content)).to.not.include('common cold');
      expect(callsFor('answer')).to.have.length(2);
    });

    it('withholds an answer that could not be reviewed', async () => {
      const { post } = await open(
        usual({ schema: 'verdict', reply: new GatewayError('provider_unavailable', 'down') }),
      );
      const { body } = await post(PATH, { message: 'I have a runny nose.' });
      expect(body.content.summary).to.include('cannot give a reliable answer');
    });

    it('allows a veto of the medication reviewer alone', async () => {
      const { post } = await open(
        usual({ schema: 'verdict', system: 'pharmacist', reply: veto('Ibuprofen is dangerous with warfarin.') }),
      );
      const { body } = await post(PATH, { message: 'I have a headache.', patient: { medications: 'warfarin' } });
      expect(agentsOf(body).filter((agent) => agent === 'medication_reviewer')).to.have.length(2);
      expect(body.content.summary).to.include('cannot give a reliable answer');
    });

    const RULES: readonly { readonly title: string; readonly draft: object; readonly message?: string }[] = [
      { title: 'a certain diagnosis', draft: draft({ considerations: ['You definitely have pneumonia.'] }) },
      { title: 'a bare diagnosis', draft: draft({ summary: 'You have pneumonia.' }) },
      { title: 'a diagnosis in German', draft: draft({ summary: 'Die Diagnose lautet Grippe, sagen alle.' }) },
      { title: 'a dose', draft: draft({ recommended_next_steps: ['Take 400 mg of ibuprofen.'] }) },
      {
        title: 'false comfort next to a danger sign',
        draft: draft({ summary: 'It is nothing to worry about, so rest.' }),
        message: 'I have chest pain.',
      },
    ];
    for (const { title, draft: reply, message = 'I have a cough.' } of RULES) {
      it(`is not needed to stop ${title}`, async () => {
        const { post } = await open(usual({ schema: 'answer', times: 1, reply }));
        const { body } = await post(PATH, { message });
        expect(callsFor('answer')).to.have.length(2);
        expect(body.content.considerations).to.deep.equal(draft().considerations);
      });
    }

    it('accepts an amount that the person named', async () => {
      const { post } = await open(
        usual({ schema: 'answer', reply: draft({ summary: 'You wrote 400 mg; ask a pharmacist about it.' }) }),
      );
      await post(PATH, { message: 'I took 400 mg of ibuprofen.' });
      expect(callsFor('answer')).to.have.length(1);
    });
  });

  describe('with a response_model', () => {
    const MODEL = { advice: 'string' };

    it('returns the caller’s shape, and the safety part in addition', async () => {
      const { post } = await open([{ schema: 'result', reply: { advice: 'Rest.' } }, ...usual()]);
      const { body } = await post(PATH, { message: 'I have chest pain.', response_model: MODEL });
      expect(body.content).to.deep.equal({ advice: 'Rest.' });
      expect(body.safety).to.include({ urgency: 'emergency' });
      expect(body.safety.notice).to.include('emergency');
      expect(body.safety.disclaimer).to.be.a('string');
    });

    it('refuses a response that was vetoed twice, with the notice', async () => {
      const { post } = await open([{ schema: 'result', reply: { advice: 'Take 400 mg.' } }, ...usual()]);
      const { status, body } = await post(PATH, { message: 'I have chest pain.', response_model: MODEL });
      expect(status).to.equal(400);
      expect(body.error.code).to.equal('content_filtered');
      expect(body.error.message).to.include('emergency');
    });

    it('answers 400 with the path for one that cannot be used', async () => {
      const { post } = await open([]);
      const { status, body } = await post(PATH, {
        message: 'x',
        response_model: { type: 'object', properties: { a: { type: 1 } } },
      });
      expect(status).to.equal(400);
      expect(body.error.param).to.equal('response_model.properties.a.type');
    });
  });

  describe('with a knowledge base', () => {
    const rag: AgentDefinition = {
      name: 'rag',
      when: '',
      run: async () => ({
        summary: 'two passages',
        data: [
          { id: 'a#1', title: 'Colds', text: 'Colds pass in ten days.', source: 'colds.md', location: 'page 2' },
          { id: 'b#1', title: 'Flu', text: 'Flu begins suddenly.', source: 'flu.md' },
        ],
      }),
    };

    it('cites the passages the answer uses, and no others', async () => {
      const { post } = await open(usual({ schema: 'answer', reply: draft({ source_numbers: [1] }) }), {}, [rag]);
      const { body } = await post(PATH, { message: 'I have a runny nose.' });
      expect(body.content.sources).to.deep.equal([
        { id: 'a#1', title: 'Colds', source: 'colds.md', location: 'page 2' },
      ]);
      expect(lastUserText(callsFor('opinion')[0]!.request)).to.include('[1] Colds: Colds pass in ten days.');
    });

    it('answers without sources when it fails', async () => {
      const broken = { ...rag, run: async () => Promise.reject(new Error('index gone')) };
      const { post } = await open(usual(), {}, [broken]);
      const { status, body } = await post(PATH, { message: 'I have a runny nose.' });
      expect(status).to.equal(200);
      expect(body.content.sources).to.deep.equal([]);
    });
  });

  describe('memory', () => {
    it('keeps nothing of a request without a session', async () => {
      const { post, store } = await open(usual());
      await post(PATH, { message: 'I have a secret rash.' });
      await post(PATH, { message: 'And now?' });
      expect(JSON.stringify(model.calls.at(-1)?.request.messages)).to.not.include('secret rash');
      const documents: unknown[] = [];
      for await (const entry of store.keyv('agent-memory').iterator?.(undefined) ?? []) documents.push(entry);
      expect(documents).to.deep.equal([]);
    });

    it('remembers within a session, apart from the team’s, and is wiped with it', async () => {
      const { post, delete: wipe } = await open([
        { schema: 'assignments', reply: { agents: [] } },
        { schema: 'result', reply: { answer: 'ok' } },
        ...usual(),
      ]);
      await post(PATH, { message: 'I have a secret rash.', session: 's' });
      await post(PATH, { message: 'And now?', session: 's' });
      expect(JSON.stringify(model.calls.at(-1)?.request.messages)).to.include('secret rash');
      await post('/api/core/agent', { message: 'hello', session: 's' });
      expect(JSON.stringify(model.calls.at(-1)?.request.messages)).to.not.include('secret rash');
      expect((await wipe('/api/core/agent/memory', 'bob')).body.deleted).to.equal(0);
      expect((await wipe('/api/core/agent/memory')).body.deleted).to.equal(2);
      await post(PATH, { message: 'And now?', session: 's' });
      expect(JSON.stringify(model.calls.at(-1)?.request.messages)).to.not.include('secret rash');
      expect((await wipe(`${PATH}/memory?session=s`)).body.deleted).to.equal(1);
    });
  });

  it('passes on an error of the request, danger sign or not', async () => {
    const { post } = await open([{ reply: new GatewayError('unsupported_model', 'no such model') }]);
    expect((await post(PATH, { message: 'I have chest pain.' })).status).to.equal(404);
  });

  it('reports a failing provider if there is no danger sign', async () => {
    const { post } = await open([{ reply: new GatewayError('provider_unavailable', 'down') }]);
    expect((await post(PATH, { message: 'I have a cough.' })).status).to.equal(503);
  });

  it('continues with more care if the triage is unreadable', async () => {
    const { post } = await open(usual({ schema: 'triage', reply: { urgency: 'who knows' } }));
    const { body } = await post(PATH, { message: 'I have a cough.' });
    expect(agentsOf(body)).to.include.members(['general_practice', 'medication_safety', 'medication_reviewer']);
  });

  it('ends at its deadline', async () => {
    const never = gate();
    const { post } = await open([{ after: never.opened, reply: 'late' }], { limits: { timeout: '50ms' } });
    const { status, body } = await post(PATH, { message: 'I have a cough.' });
    expect(status).to.equal(503);
    expect(body.error.code).to.equal('provider_timeout');
  });

  it('logs neither the person’s message nor the response', async () => {
    const { post, logged } = await open(
      usual({ schema: 'opinion', reply: 'secret-opinion' }, { schema: 'answer', reply: { secret: 'secret-answer' } }),
    );
    await post(PATH, { message: 'secret-message', patient: { history: 'secret-history' }, session: 'secret-session' });
    expect(logged()).to.not.match(/secret-/);
  });

  for (const body of [
    {},
    { message: '' },
    { message: 'x'.repeat(20_001) },
    { message: 'x', patient: { age: -1 } },
    { message: 'x', patient: { shoe: 43 } },
  ]) {
    it(`refuses ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const { post } = await open([]);
      expect((await post(PATH, body)).status).to.equal(400);
    });
  }
});
