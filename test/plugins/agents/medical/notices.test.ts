import { expect } from 'chai';
import { GatewayError } from '../../../../contract/index.ts';
import { LANGUAGES } from '../../../../plugins/agents/medical/engine/language.ts';
import medical from '../../../../plugins/agents/medical/index.ts';
import { noticesFor } from '../../../../plugins/agents/medical/notices.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { type AgentGateway, openAgentGateway } from '../../../support/agents/agent-gateway.ts';
import { gate, type Rule, scriptModel } from '../../../support/agents/scripted-model.ts';

const PATH = '/api/core/agent/medical';
const TRIAGE = { specialties: [], red_flags: [], self_harm: false, medicines_involved: false, language: 'en' };
const sorted = (more: object = {}) => ({ ...TRIAGE, urgency: 'self_care', complexity: 'simple', ...more });
const OPINION = { summary: 'a cold', considerations: [], must_not_miss: [], questions: [], avoid: [] };
const DRAFT = {
  urgency: 'self_care',
  summary: 'It may be a cold.',
  considerations: [],
  recommended_next_steps: [],
  questions: [],
};

/** Message without a danger sign in each language, and the beginning of the notice added to an error. */
const COLDS = Object.freeze({
  en: ['I have had a runny nose since yesterday.', 'No answer can be given here now.'],
  de: ['Ich habe seit gestern eine laufende Nase.', 'Hier kann jetzt keine Antwort gegeben werden.'],
  fr: ['J’ai le nez qui coule depuis hier.', 'Aucune réponse ne peut être donnée ici'],
  es: ['Tengo mocos desde ayer y me siento cansado.', 'Ahora no se puede dar aquí una respuesta.'],
  it: ['Ho il raffreddore da ieri e sono stanco.', 'Qui al momento non si può dare una risposta.'],
});

/** Message of a person in a crisis in each language, and the beginning of the notice. */
const CRISES = Object.freeze({
  en: ['I want to kill myself', 'I am glad you wrote this.'],
  de: ['Ich will mich umbringen', 'Gut, dass Sie das geschrieben haben.'],
  fr: ['Je veux mourir, je n’en peux plus', 'Vous avez bien fait de l’écrire.'],
  es: ['Quiero quitarme la vida', 'Ha hecho bien en escribirlo.'],
  it: ['Voglio farla finita', 'Ha fatto bene a scriverlo.'],
});

describe('the notices of the medical agents', () => {
  let gateway: AgentGateway | undefined;
  let calls: readonly unknown[] = [];

  const open = async (rules: readonly Rule[], config: object = {}, more: object = {}) => {
    const model = scriptModel(rules);
    calls = model.calls;
    gateway = await openAgentGateway({
      plugins: [{ plugin: medical, config: { model: 'base/model', ...config } }],
      model,
      ...more,
    });
    return gateway;
  };

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
  });

  const FAILURES: readonly { readonly title: string; readonly reply: Error; readonly status: number }[] = [
    { title: 'no provider can be reached', reply: new GatewayError('provider_unavailable', 'down'), status: 503 },
    {
      title: 'the provider is limited',
      reply: new GatewayError('upstream_rate_limited', 'slow', { retryAfterMs: 2000 }),
      status: 429,
    },
    {
      title: 'the provider answers nonsense',
      reply: new GatewayError('provider_invalid_response', 'odd'),
      status: 503,
    },
    { title: 'the operator’s key is refused', reply: new GatewayError('provider_auth_failed', 'key'), status: 503 },
    { title: 'the balance is used up', reply: new GatewayError('insufficient_balance', 'empty'), status: 402 },
    { title: 'the model is unknown', reply: new GatewayError('unsupported_model', 'no such model'), status: 404 },
    { title: 'something breaks', reply: new Error('secret inside'), status: 500 },
  ];
  for (const { title, reply, status } of FAILURES) {
    for (const language of LANGUAGES) {
      it(`are in the error when ${title}, in the language of the message (${language})`, async () => {
        const [message, begins] = COLDS[language];
        const { post } = await open([{ reply }]);
        const response = await post(PATH, { message, patient: { country: 'CH' } });
        expect(response.status).to.equal(status);
        expect(response.body.error.message).to.include(begins).and.include('144');
        expect(Object.keys(response.body.error)).to.have.members(['message', 'type', 'code', 'param', 'request_id']);
        expect(JSON.stringify(response.body)).to.not.include('secret inside');
        if (status === 429) expect(response.headers.get('retry-after')).to.equal('2');
      });
    }
  }

  it('are in the error of a deadline', async () => {
    const never = gate();
    const { post } = await open([{ after: never.opened, reply: 'late' }], {
      limits: { timeout: '50ms' },
      country: 'GB',
    });
    const { status, body } = await post(PATH, { message: 'I have a cough.' });
    expect(status).to.equal(503);
    expect(body.error.message).to.include('call 999');
  });

  it('are in the error of a deadline with the danger sign', async () => {
    const never = gate();
    const { post } = await open([{ after: never.opened, reply: 'late' }], {
      limits: { timeout: '50ms' },
      country: 'GB',
    });
    const { body } = await post(PATH, { message: 'I have crushing chest pain.' });
    expect(body.error.message).to.include('This may be an emergency. Call 999 now');
  });

  it('are in the error that ends a stream', async () => {
    const { stream } = await open([
      { schema: 'triage', reply: sorted() },
      { reply: new GatewayError('provider_unavailable', 'down') },
    ]);
    const { events } = await stream(PATH, { message: 'I have a cough.', patient: { country: 'US' } });
    expect(events.at(-1)?.event).to.equal('error');
    expect(events.at(-1)?.data.error.message).to.include('call 911');
  });

  it('are in the error of a store that does not answer', async () => {
    const store = await openMemory();
    const get = () => Promise.reject(new GatewayError('store_unavailable', 'The store does not answer.'));
    const broken = { ...store, stored: (prefix: string) => ({ ...store.stored(prefix), get }) };
    const { post } = await open([], { country: 'DE' }, { store: broken });
    const { status, body } = await post(PATH, { message: 'Ich habe seit gestern Husten.', session: 's' });
    expect(status).to.equal(503);
    expect(body.error.message).to.include('112');
  });

  it('are in the error of an unusable response_model', async () => {
    const { post } = await open([]);
    const { status, body } = await post(PATH, {
      message: 'I have chest pain.',
      patient: { country: 'AU' },
      response_model: { type: 'object', properties: { a: { type: 1 } } },
    });
    expect(status).to.equal(400);
    expect(body.error.message).to.include('Call 000 now');
  });

  for (const language of LANGUAGES) {
    const [message, begins] = CRISES[language];
    it(`are in the language of the match for a person in a crisis, with no model (${language})`, async () => {
      const { post } = await open([]);
      const { status, body } = await post(PATH, { message, patient: { country: 'FR' } });
      expect(status).to.equal(200);
      expect(body.content.summary).to.include(begins).and.include('112').and.include('3114');
      expect(body.matched).to.include('suicidal_intent');
      expect(calls).to.have.length(0);
    });

    it(`replace generated words in a caller’s own shape for a person in a crisis (${language})`, async () => {
      const { post } = await open([]);
      const { status, body } = await post(PATH, {
        message,
        response_model: { advice: 'string' },
        patient: { country: 'FR' },
      });
      expect(status).to.equal(400);
      expect(body.error.code).to.equal('content_filtered');
      expect(body.error.message).to.include(begins).and.include('112');
      expect(calls).to.have.length(0);
    });

    it(`name the emergency number in every fixed sentence that has one (${language})`, () => {
      for (const country of ['GB', undefined]) {
        const { notice, disclaimer, unanswered } = noticesFor(language, country, undefined);
        const texts = [
          disclaimer,
          unanswered,
          ...(['emergency', 'poison', 'crisis', 'urgent'] as const).map((kind) => notice([kind])),
        ];
        for (const text of texts)
          expect(text)
            .to.match(country === 'GB' ? /999/ : /112/)
            .and.not.include('{');
      }
    });
  }

  it('replace generated words in a caller’s own shape when only the triage saw the crisis', async () => {
    const { post } = await open([{ schema: 'triage', reply: sorted({ self_harm: true }) }]);
    const { status, body } = await post(PATH, {
      message: 'I have said my piece to everyone.',
      response_model: { advice: 'string' },
    });
    expect(status).to.equal(400);
    expect(body.error.message).to.include('glad you wrote');
    expect(calls).to.have.length(1);
  });

  it('are all that is answered when the triage saw an emergency and the others fail', async () => {
    const { post } = await open([
      { schema: 'triage', reply: sorted({ urgency: 'emergency' }) },
      { reply: new GatewayError('provider_unavailable', 'down') },
    ]);
    const { status, body } = await post(PATH, { message: 'Something is very odd.', patient: { country: 'GB' } });
    expect(status).to.equal(200);
    expect(body.content.urgency).to.equal('emergency');
    expect(body.content.summary).to.include('Call 999 now');
  });

  it('end an ordinary response too, with the applied rules and their findings', async () => {
    const { post } = await open([
      { schema: 'triage', reply: sorted() },
      { schema: 'opinion', reply: OPINION },
      { schema: 'answer', reply: DRAFT },
      { schema: 'verdict', reply: { verdict: 'pass', reasons: [] } },
    ]);
    const { body } = await post(PATH, { message: 'I have a runny nose.', patient: { country: 'GB' } });
    expect(body.content.disclaimer).to.include('call 999');
    expect(body.rules_version).to.match(/^5\.[0-9a-f]{10}$/);
    expect(body.matched).to.deep.equal([]);
  });

  it('report an unknown urgency when a response was vetoed twice', async () => {
    const { post } = await open([
      { schema: 'triage', reply: sorted() },
      { schema: 'opinion', reply: OPINION },
      { schema: 'answer', reply: DRAFT },
      { schema: 'verdict', reply: { verdict: 'veto', reasons: ['harmful'] } },
    ]);
    const { body } = await post(PATH, { message: 'I have a runny nose.' });
    expect(body.content.urgency).to.equal('unknown');
    expect(body.content.disclaimer).to.include('112');
  });

  it('are not lowered by a triage that thinks less of it', async () => {
    const { post } = await open([
      { schema: 'triage', reply: sorted() },
      { schema: 'opinion', reply: OPINION },
      { schema: 'answer', reply: DRAFT },
      { schema: 'verdict', reply: { verdict: 'pass', reasons: [] } },
    ]);
    const { body } = await post(PATH, { message: 'J’ai très mal à la poitrine.', patient: { country: 'FR' } });
    expect(body.content.urgency).to.equal('emergency');
    expect(body.content.summary).to.match(/^Il peut s’agir d’une urgence/);
    expect(body.matched).to.deep.equal(['chest_pain']);
  });
});
