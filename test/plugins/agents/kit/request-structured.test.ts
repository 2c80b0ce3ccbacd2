import { expect } from 'chai';
import { GatewayError, isGatewayError } from '../../../../contract/index.ts';
import {
  createModeMemory,
  type ModeMemory,
  requestStructured,
} from '../../../../plugins/agents/kit/request-structured.ts';
import { createSchemaReader } from '../../../../plugins/agents/kit/response-model.ts';
import {
  lastUserText,
  type Rule,
  type ScriptedModel,
  scriptModel,
  systemOf,
} from '../../../support/agents/scripted-model.ts';

const SHAPE = { answer: 'string', count: 'integer' };
const GOOD = { answer: 'x', count: 2 };

describe('agents/kit/structured', () => {
  let model: ScriptedModel;
  let modes: ModeMemory;

  beforeEach(() => {
    modes = createModeMemory();
  });

  const send = (rules: readonly Rule[], { shape = SHAPE as object, retries = 10, name = 'model' } = {}) => {
    model = scriptModel(rules);
    const target = createSchemaReader().readModel(shape as Record<string, unknown>, 'response_model');
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'how many?' },
    ];
    const context = { principal: {} as never, requestId: 'req_1' };
    return requestStructured(
      { model: name, messages },
      { name: 'result', schema: target.schema, check: target.check },
      {
        chat: (request) => model.chat(request, context),
        modes,
        mayRetry: () => model.calls.length < retries,
        traceId: 'req_1',
      },
    );
  };
  const formats = () => model.calls.map(({ request }) => request.response_format?.type ?? 'text');
  const codeOf = async (work: Promise<unknown>) =>
    work.then(
      () => 'none',
      (error) => (isGatewayError(error) ? error.code : String(error)),
    );
  const refusal = (param?: string) => new GatewayError('invalid_request', 'no', param === undefined ? {} : { param });

  it('requests strict json_schema and returns the value', async () => {
    const response = await send([{ reply: GOOD }]);
    expect(response).to.deep.equal({ value: GOOD, model: 'model', attempts: 1, repaired: false });
    expect(model.calls[0]?.request.response_format).to.have.nested.property('json_schema.strict', true);
    expect(model.calls[0]?.request.messages[0]?.content).to.equal('Be brief.');
  });

  it('mends JSON that is almost right without asking again', async () => {
    const response = await send([{ reply: "{'answer': 'x', 'count': 2,}" }]);
    expect(response).to.deep.include({ value: GOOD, repaired: true });
    expect(model.calls).to.have.length(1);
  });

  it('retries once, with the error and the wrong response, if it does not match', async () => {
    const response = await send([{ times: 1, reply: { answer: 'x', count: 'two' } }, { reply: GOOD }]);
    expect(response).to.deep.include({ value: GOOD, attempts: 2 });
    expect(lastUserText(model.calls[1]!.request)).to.include('count must be integer');
    expect(JSON.stringify(model.calls[1]?.request.messages)).to.include('two');
  });

  it('fails with the trace id after the second wrong answer', async () => {
    const error = await send([{ reply: 'no JSON at all' }]).catch((thrown: unknown) => thrown);
    expect(isGatewayError(error) && error.code).to.equal('provider_invalid_response');
    expect(isGatewayError(error) && error.message).to.include('req_1');
    expect(model.calls).to.have.length(2);
  });

  it('requests only once if the budget covers no second call', async () => {
    expect(await codeOf(send([{ reply: '{}' }], { retries: 1 }))).to.equal('provider_invalid_response');
    expect(model.calls).to.have.length(1);
  });

  it('never repairs a truncated response, and requests a shorter one', async () => {
    const cut = '{"answer":"x","count":2,"more":[1,2';
    const response = await send([{ times: 1, reply: cut, finish: 'length' }, { reply: GOOD }]);
    expect(response.value).to.deep.equal(GOOD);
    expect(lastUserText(model.calls[1]!.request)).to.include('cut off');
  });

  it('answers content_filtered when the model refuses', async () => {
    expect(await codeOf(send([{ reply: 'no', finish: 'content_filter' }]))).to.equal('content_filtered');
  });

  for (const param of [undefined, 'response_format', 'response_format.json_schema.schema']) {
    it(`falls back to json_object when the provider refuses with param ${param}, and remembers it`, async () => {
      await send([{ times: 1, reply: refusal(param) }, { reply: GOOD }]);
      expect(formats()).to.deep.equal(['json_schema', 'json_object']);
      expect(systemOf(model.calls[1]!.request)).to.include('JSON Schema').and.include('"count"');
      await send([{ reply: GOOD }]);
      expect(formats()).to.deep.equal(['json_object']);
      await send([{ reply: GOOD }], { name: 'another' });
      expect(formats()).to.deep.equal(['json_schema']);
    });
  }

  it('falls back to the prompt only when json_object is refused too', async () => {
    await send([{ times: 2, reply: refusal() }, { reply: GOOD }]);
    expect(formats()).to.deep.equal(['json_schema', 'json_object', 'text']);
  });

  it('passes on a refusal of another field at once', async () => {
    expect(await codeOf(send([{ reply: refusal('messages[0].content') }]))).to.equal('invalid_request');
    expect(model.calls).to.have.length(1);
  });

  it('puts the schema into the prompt for a model that returns prose under json_schema', async () => {
    const response = await send([{ times: 1, reply: 'There are two.' }, { reply: GOOD }]);
    expect(response.value).to.deep.equal(GOOD);
    expect(formats()).to.deep.equal(['json_schema', 'json_object']);
    expect(systemOf(model.calls[1]!.request)).to.include('JSON Schema');
  });

  it('wraps a list for the provider and unwraps the answer', async () => {
    const response = await send([{ reply: { value: ['a', 'b'] } }], {
      shape: { type: 'array', items: { type: 'string' } },
    });
    expect(response.value).to.deep.equal(['a', 'b']);
    expect(model.calls[0]?.request.response_format).to.have.nested.property('json_schema.schema.type', 'object');
  });
});
