import { expect } from 'chai';
import { type AgentDefinition, GatewayError } from '../../../../contract/index.ts';
import team from '../../../../plugins/agents/team/index.ts';
import { type AgentGateway, openAgentGateway, type Setup } from '../../../support/agents/agent-gateway.ts';
import {
  gate,
  lastUserText,
  type Rule,
  type ScriptedModel,
  schemaNameOf,
  scriptModel,
  systemOf,
} from '../../../support/agents/scripted-model.ts';
import { until } from '../../../support/wait.ts';

const PATH = '/api/core/agent';

/** Response of a router. */
const route = (...agents: string[]) => ({ agents: agents.map((agent) => ({ agent, instruction: `do ${agent}` })) });
const report = (summary: string, more: object = {}) => ({ summary, confidence: 0.9, ...more });

const MOVE = {
  name: 'move',
  description: 'one step',
  parameters: {
    type: 'object',
    properties: { direction: { type: 'string', enum: ['north', 'east', 'south', 'west'] } },
    required: ['direction'],
    additionalProperties: false,
  },
};

describe('agents/team', () => {
  let gateway: AgentGateway | undefined;
  let model: ScriptedModel;

  const open = async (rules: readonly Rule[], config: object = {}, more: Partial<Setup> = {}) => {
    model = scriptModel(rules);
    const plugins = [{ plugin: team, config: { model: 'base/model', memory: { enabled: false }, ...config } }];
    gateway = await openAgentGateway({ plugins, model, ...more });
    return gateway;
  };

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
  });

  it('answers the request of the spec with content, usage and model', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', system: 'You plan movement', reply: report('go north') },
      { schema: 'report', system: 'You report what can be known', reply: report('a cat ahead') },
      { schema: 'result', reply: { plan: 'north around the cat', steps: 2 } },
    ]);
    const response = await post(PATH, {
      model: 'other/model',
      message: 'get me to the kitchen',
      response_model: { plan: 'string', steps: 'integer' },
    });
    expect(response.status).to.equal(200);
    expect(response.body.content).to.deep.equal({ plan: 'north around the cat', steps: 2 });
    expect(response.body.model).to.equal('other/model');
    expect(response.body.usage.total_tokens).to.equal(
      response.body.usage.prompt_tokens + response.body.usage.completion_tokens,
    );
    expect(
      response.body.trace.map(({ agent, status }: { agent: string; status: string }) => `${agent} ${status}`),
    ).to.have.members(['router ok', 'navigation ok', 'perception ok', 'writer ok']);
  });

  it('responds directly, with two calls, when the router needs no agent', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route() },
      { schema: 'result', reply: { answer: 'hello' } },
    ]);
    const { body } = await post(PATH, { message: 'hi' });
    expect(body.content).to.deep.equal({ answer: 'hello' });
    expect(model.calls).to.have.length(2);
  });

  it('counts one request against the caller’s limits however many model calls it makes', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route('planning') },
      { schema: 'report', reply: report('three steps') },
      { schema: 'result', reply: { answer: 'done' } },
    ]);
    await post(PATH, { message: 'plan it' });
    expect(model.calls.map(({ context }) => context.skip)).to.deep.equal([
      undefined,
      ['rpm', 'concurrency'],
      ['rpm', 'concurrency'],
    ]);
    expect(new Set(model.calls.map(({ context }) => context.requestId))).to.have.property('size', 1);
    expect(model.calls.every(({ context }) => context.principal.userId === 'ann')).to.equal(true);
  });

  it('sums the usage of every call, corrections included', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route() },
      { schema: 'result', times: 1, reply: { wrong: true } },
      { schema: 'result', reply: { answer: 'right' } },
    ]);
    const { body } = await post(PATH, { message: 'hi' });
    expect(model.calls).to.have.length(3);
    const single = await post(PATH, { message: 'hi' });
    expect(body.usage.prompt_tokens).to.be.greaterThan(single.body.usage.prompt_tokens);
  });

  it('runs the chosen specialists at the same time', async () => {
    const both = gate();
    const { post } = await open([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', after: both.opened, reply: report('seen') },
      { schema: 'result', reply: { answer: 'ok' } },
    ]);
    const response = post(PATH, { message: 'look and go' });
    await until(
      'both specialists are asked',
      () => model.calls.filter(({ request }) => schemaNameOf(request) === 'report').length === 2,
    );
    both.open();
    expect((await response).status).to.equal(200);
  });

  it('runs no more specialists at once than maxParallel', async () => {
    const one = gate();
    const { post } = await open(
      [
        { schema: 'assignments', reply: route('navigation', 'perception', 'planning') },
        { schema: 'report', times: 1, after: one.opened, reply: report('first') },
        { schema: 'report', reply: report('next') },
        { schema: 'result', reply: { answer: 'ok' } },
      ],
      { limits: { maxParallel: 1 } },
    );
    const response = post(PATH, { message: 'x' });
    await until('the first specialist is asked', () => model.calls.length === 2);
    await new Promise(setImmediate);
    expect(model.calls).to.have.length(2);
    one.open();
    expect((await response).body.trace).to.have.length(5);
  });

  it('records a failed specialist, informs the writer, and responds all the same', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', system: 'You plan movement', reply: report('go north') },
      { schema: 'report', reply: new GatewayError('provider_unavailable', 'down') },
      { schema: 'result', reply: { answer: 'north' } },
    ]);
    const { status, body } = await post(PATH, { message: 'x' });
    expect(status).to.equal(200);
    const failed = body.trace.find(({ agent }: { agent: string }) => agent === 'perception');
    expect(failed).to.include({ status: 'failed', error: 'provider_unavailable' });
    const writer = model.calls.find(({ request }) => schemaNameOf(request) === 'result');
    expect(systemOf(writer?.request ?? { model: '', messages: [] })).to.include('No report came from: perception');
  });

  it('continues without a late specialist, and cancels its call', async () => {
    const never = gate();
    const { post } = await open(
      [
        { schema: 'assignments', reply: route('navigation', 'perception') },
        { schema: 'report', system: 'You plan movement', reply: report('go north') },
        { schema: 'report', after: never.opened, reply: report('too late') },
        { schema: 'result', reply: { answer: 'north' } },
      ],
      { limits: { agentTimeout: '50ms' } },
    );
    const { status, body } = await post(PATH, { message: 'x' });
    expect(status).to.equal(200);
    expect(body.trace).to.deep.include.members([
      { ...body.trace.find((one: { agent: string }) => one.agent === 'perception') },
    ]);
    expect(body.trace.find(({ agent }: { agent: string }) => agent === 'perception').status).to.equal('late');
    expect(model.calls.some(({ aborted }) => aborted)).to.equal(true);
  });

  it('answers the first error when all specialists fail', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', reply: new GatewayError('upstream_rate_limited', 'slow down') },
    ]);
    const { status, body } = await post(PATH, { message: 'x' });
    expect(status).to.equal(429);
    expect(body.error.code).to.equal('upstream_rate_limited');
  });

  it('passes on the router’s error, such as an unknown model', async () => {
    const { post } = await open([
      { reply: new GatewayError('unsupported_model', 'no such model', { param: 'model' }) },
    ]);
    const { status, body } = await post(PATH, { message: 'x', model: 'missing/nothing' });
    expect(status).to.equal(404);
    expect(body.error.code).to.equal('unsupported_model');
  });

  it('answers directly when the router’s answer cannot be read', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: { nonsense: 1 } },
      { schema: 'result', reply: { answer: 'fine' } },
    ]);
    const { body } = await post(PATH, { message: 'x' });
    expect(body.content).to.deep.equal({ answer: 'fine' });
    expect(body.trace[0]).to.include({ agent: 'router', status: 'failed', error: 'provider_invalid_response' });
  });

  it('lets specialists consult each other for one round, and the consulting one revise', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route('navigation') },
      { schema: 'report', user: 'Reports of others', reply: report('left, past the table') },
      { schema: 'report', system: 'You report what can', reply: report('a table on the right') },
      {
        schema: 'report',
        system: 'You plan movement',
        reply: report('unsure', { needs: [{ agent: 'perception', question: 'what is on the right?' }] }),
      },
      { schema: 'result', reply: { answer: 'left' } },
    ]);
    const { body } = await post(PATH, { message: 'x' });
    const rounds = body.trace.filter(({ round }: { round?: number }) => round !== undefined);
    expect(rounds.map(({ agent, round }: { agent: string; round: number }) => `${agent} ${round}`)).to.deep.equal([
      'navigation 1',
      'perception 2',
      'navigation 2',
    ]);
    const writer = model.calls.at(-1);
    expect(lastUserText(writer!.request)).to.include('left, past the table').and.not.include('unsure');
  });

  it('does not allow consultation in the last round', async () => {
    const { post } = await open(
      [
        { schema: 'assignments', reply: route('navigation') },
        { schema: 'report', reply: report('sure') },
        { schema: 'result', reply: { answer: 'ok' } },
      ],
      { limits: { maxRounds: 1 } },
    );
    await post(PATH, { message: 'x' });
    expect(JSON.stringify(model.calls[1]?.request.response_format)).to.not.include('needs');
  });

  it('keeps two calls for the writer and skips specialists beyond the budget', async () => {
    const { post } = await open(
      [
        { schema: 'assignments', reply: route('navigation', 'perception', 'planning') },
        { schema: 'report', reply: report('found') },
        { schema: 'result', reply: { answer: 'ok' } },
      ],
      { limits: { maxCalls: 4, maxParallel: 1 } },
    );
    const { status, body } = await post(PATH, { message: 'x' });
    expect(status).to.equal(200);
    const statuses = body.trace.map(({ status: one }: { status: string }) => one);
    expect(statuses.filter((one: string) => one === 'skipped')).to.have.length(2);
    expect(model.calls).to.have.length(3);
  });

  it('starts no specialist once the tokens are spent', async () => {
    const { post } = await open(
      [
        { schema: 'assignments', reply: route('navigation') },
        { schema: 'result', reply: { answer: 'ok' } },
      ],
      { limits: { maxTokens: 1 } },
    );
    const { body } = await post(PATH, { message: 'x' });
    expect(body.trace[1]).to.include({ agent: 'navigation', status: 'skipped' });
    expect(body.content.answer).to.equal('ok');
  });

  it('ends the call at its deadline with 503 provider_timeout', async () => {
    const never = gate();
    const { post } = await open([{ after: never.opened, reply: 'late' }], { limits: { timeout: '50ms' } });
    const { status, body, headers } = await post(PATH, { message: 'x' });
    expect(status).to.equal(503);
    expect(body.error.code).to.equal('provider_timeout');
    expect(headers.get('x-should-retry'), 'nothing was tried in vain').to.equal(null);
  });

  it('cancels every agent’s call when the client hangs up', async () => {
    const never = gate();
    const { url } = await open([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', after: never.opened, reply: 'never' },
    ]);
    const client = new AbortController();
    const request = fetch(`${url}${PATH}`, {
      method: 'POST',
      headers: { 'x-api-key': 'key-ann', 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'x' }),
      signal: client.signal,
    }).catch(() => 'gone');
    await until('both specialists are asked', () => model.calls.length === 3);
    client.abort();
    expect(await request).to.equal('gone');
    await until('both calls are cancelled', () => model.calls.filter(({ aborted }) => aborted).length === 2);
  });

  it('shows context to all agents, inputs and images to specialists and writer, and no memory by default', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route('perception') },
      { schema: 'report', reply: report('a door') },
      { schema: 'result', reply: { answer: 'a door' } },
    ]);
    const url = 'data:image/png;base64,iVBORw0KGgo=';
    await post(PATH, {
      message: 'what is this?',
      context: 'You live in a lighthouse.',
      inputs: { temperature: 21.5, camera: { type: 'image_url', image_url: { url } } },
    });
    for (const { request } of model.calls) {
      expect(systemOf(request)).to.include('You live in a lighthouse.');
      expect(lastUserText(request)).to.include('"temperature":21.5').and.include('[image 1]');
    }
    const images = model.calls.map(({ request }) => JSON.stringify(request.messages).split(url).length - 1);
    expect(images).to.deep.equal([0, 1, 1]);
  });

  it('passes an agent in code its task, and runs it as a tool for others', async () => {
    const tasks: unknown[] = [];
    const almanac: AgentDefinition = {
      name: 'almanac',
      when: '',
      async run(task) {
        tasks.push(task);
        return { summary: 'the sun sets at six', data: { source: 'page 7' } };
      },
    };
    const { post } = await open(
      [
        { schema: 'assignments', reply: route('planning') },
        { schema: 'report', user: 'the sun sets at six', reply: report('leave at five') },
        { schema: 'result', reply: { answer: 'at five', actions: [] } },
      ],
      { agents: { planning: { tools: ['almanac'] } } },
      { agents: [almanac] },
    );
    const { status, body } = await post(PATH, { message: 'when?', inputs: [1], actions: [MOVE] });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(tasks).to.deep.equal([{ instruction: 'do planning', message: 'when?', inputs: [1], actions: [MOVE] }]);
    expect(body.trace.map(({ agent }: { agent: string }) => agent)).to.include('almanac');
    expect(systemOf(model.calls[0]!.request)).to.not.include('almanac');
  });

  it('shows the router only the beginning of long inputs', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route() },
      { schema: 'result', reply: { answer: 'ok' } },
    ]);
    await post(PATH, { message: 'x', inputs: `${'y'.repeat(50_000)}END` });
    expect(lastUserText(model.calls[0]!.request).length).to.be.lessThan(11_000);
    expect(lastUserText(model.calls[1]!.request)).to.include('END');
  });

  describe('with actions', () => {
    it('answers {answer, actions} with given actions and valid arguments', async () => {
      const { post } = await open([
        { schema: 'assignments', reply: route('navigation') },
        {
          schema: 'report',
          reply: report('north', { actions: [{ name: 'move', arguments: { direction: 'north' } }] }),
        },
        {
          schema: 'result',
          reply: { answer: 'going', actions: [{ name: 'move', arguments: { direction: 'north' } }] },
        },
      ]);
      const { body } = await post(PATH, { message: 'go', actions: [MOVE, { name: 'stop' }] });
      expect(body.content).to.deep.equal({
        answer: 'going',
        actions: [{ name: 'move', arguments: { direction: 'north' } }],
      });
      expect(JSON.stringify(model.calls.at(-1)?.request.response_format)).to.include('"enum":["stop"]');
    });

    const REFUSED: readonly { readonly title: string; readonly action: object; readonly says: string }[] = [
      { title: 'an unknown action', action: { name: 'fly', arguments: {} }, says: 'fly' },
      {
        title: 'an argument outside its enum',
        action: { name: 'move', arguments: { direction: 'up' } },
        says: 'direction',
      },
      { title: 'a missing argument', action: { name: 'move', arguments: {} }, says: 'direction' },
    ];
    for (const { title, action, says } of REFUSED) {
      it(`retries once for ${title}, and then fails`, async () => {
        const { post } = await open([
          { schema: 'assignments', reply: route() },
          { schema: 'result', reply: { answer: 'x', actions: [action] } },
        ]);
        const { status, body } = await post(PATH, { message: 'go', actions: [MOVE] });
        expect(status).to.equal(503);
        expect(body.error.code).to.equal('provider_invalid_response');
        expect(body.error.message).to.include(body.error.request_id);
        expect(model.calls).to.have.length(3);
        expect(lastUserText(model.calls[2]!.request)).to.include(says);
      });
    }

    it('treats none as no action', async () => {
      const { post } = await open([
        { schema: 'assignments', reply: route() },
        { schema: 'result', reply: { answer: 'staying', actions: [{ name: 'none' }] } },
      ]);
      const { body } = await post(PATH, { message: 'go', actions: [MOVE] });
      expect(body.content).to.deep.equal({ answer: 'staying', actions: [] });
    });

    it('holds the action of a response_model to the given names and arguments', async () => {
      const { post } = await open([
        { schema: 'assignments', reply: route() },
        { schema: 'result', times: 1, reply: { action: 'teleport', parameters: {}, why: 'fast' } },
        { schema: 'result', reply: { action: 'move', parameters: { direction: 'east', hurry: null }, why: 'free' } },
      ]);
      const { body } = await post(PATH, {
        message: 'go',
        actions: [MOVE],
        response_model: { action: 'string', parameters: 'object', why: 'string' },
      });
      expect(body.content).to.deep.equal({ action: 'move', parameters: { direction: 'east' }, why: 'free' });
      expect(JSON.stringify(model.calls[1]?.request.response_format)).to.include('"enum":["move","none"]');
    });

    it('does not show actions to a specialist that is not to see them', async () => {
      const { post } = await open(
        [
          { schema: 'assignments', reply: route('perception') },
          { schema: 'report', reply: report('seen') },
          { schema: 'result', reply: { answer: 'x', actions: [] } },
        ],
        { agents: { perception: { actions: false } } },
      );
      await post(PATH, { message: 'go', actions: [MOVE] });
      expect(systemOf(model.calls[1]!.request)).to.not.include('one step');
      expect(systemOf(model.calls[2]!.request)).to.include('one step');
    });
  });

  describe('refuses', () => {
    const BAD: readonly {
      readonly title: string;
      readonly body: object;
      readonly status: number;
      readonly param: string;
    }[] = [
      { title: 'a body without message', body: {}, status: 400, param: 'message' },
      { title: 'an unknown field', body: { message: 'x', acitons: [] }, status: 400, param: 'acitons' },
      {
        title: 'a malformed response_model with its path',
        body: { message: 'x', response_model: { type: 'object', properties: { a: { type: 'strin' } } } },
        status: 400,
        param: 'response_model.properties.a.type',
      },
      {
        title: 'a pattern in a response_model',
        body: {
          message: 'x',
          response_model: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
        },
        status: 400,
        param: 'response_model.properties.a.pattern',
      },
      {
        title: 'an empty response_model',
        body: { message: 'x', response_model: {} },
        status: 400,
        param: 'response_model',
      },
      {
        title: 'more than 64 actions',
        body: { message: 'x', actions: Array.from({ length: 65 }, (_, n) => ({ name: `a${n}` })) },
        status: 400,
        param: 'actions',
      },
      {
        title: 'an action given twice',
        body: { message: 'x', actions: [{ name: 'a' }, { name: 'a' }] },
        status: 400,
        param: 'actions[1].name',
      },
      {
        title: 'action parameters that are no schema',
        body: {
          message: 'x',
          actions: [{ name: 'a', parameters: { type: 'object', properties: { b: { type: 7 } } } }],
        },
        status: 400,
        param: 'actions[0].parameters.properties.b.type',
      },
      {
        title: 'inputs that are too large',
        body: { message: 'x', inputs: 'y'.repeat(200_001) },
        status: 413,
        param: 'inputs',
      },
      {
        title: 'an image that is a file URL',
        body: { message: 'x', inputs: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }] },
        status: 400,
        param: 'inputs[0].image_url.url',
      },
      {
        title: 'a session name that is too long',
        body: { message: 'x', session: 's'.repeat(129) },
        status: 400,
        param: 'session',
      },
    ];
    for (const { title, body, status, param } of BAD) {
      it(`${title}, before any model is called`, async () => {
        const { post } = await open([]);
        const response = await post(PATH, body);
        expect(response.status).to.equal(status);
        expect(response.body.error.param).to.equal(param);
        expect(model.calls).to.have.length(0);
      });
    }
  });

  it('accepts null for every optional field', async () => {
    const { post } = await open([
      { schema: 'assignments', reply: route() },
      { schema: 'result', reply: { answer: 'ok' } },
    ]);
    const nulls = {
      model: null,
      response_model: null,
      context: null,
      inputs: null,
      actions: null,
      session: null,
      stream: null,
    };
    expect((await post(PATH, { message: 'x', ...nulls })).status).to.equal(200);
  });

  describe('streams', () => {
    it('agent events and then the result', async () => {
      const { stream } = await open([
        { schema: 'assignments', reply: route('planning') },
        { schema: 'report', reply: report('two steps') },
        { schema: 'result', reply: { answer: 'ok' } },
      ]);
      const { events } = await stream(PATH, { message: 'x' });
      expect(events.map(({ event, data }) => `${event} ${data.agent ?? ''}`.trim())).to.deep.equal([
        'agent.started router',
        'agent.finished router',
        'agent.started planning',
        'agent.message planning',
        'agent.finished planning',
        'agent.started writer',
        'agent.finished writer',
        'result',
      ]);
      expect(events.at(-1)?.data.content).to.deep.equal({ answer: 'ok' });
      expect(events.every(({ event, data }) => data.type === event)).to.equal(true);
    });

    it('answers an error with its status when nothing was streamed yet', async () => {
      const { stream } = await open([{ reply: new GatewayError('unsupported_model', 'no such model') }]);
      expect(await stream(PATH, { message: 'x' })).to.have.property('status', 404);
    });

    it('cancels every agent’s call when the reader leaves', async () => {
      const never = gate();
      const { url } = await open([
        { schema: 'assignments', reply: route('navigation', 'perception') },
        { schema: 'report', after: never.opened, reply: 'never' },
      ]);
      const client = new AbortController();
      const response = await fetch(`${url}${PATH}`, {
        method: 'POST',
        headers: { 'x-api-key': 'key-ann', 'content-type': 'application/json' },
        body: JSON.stringify({ message: 'x', stream: true }),
        signal: client.signal,
      });
      expect(response.headers.get('content-type')).to.equal('text/event-stream; charset=utf-8');
      expect(response.headers.get('x-request-id')).to.be.a('string');
      await until('both specialists are asked', () => model.calls.length === 3);
      client.abort();
      await until('both calls are cancelled', () => model.calls.filter(({ aborted }) => aborted).length === 2);
    });

    it('sends nothing of an agent that continues after the end', async () => {
      const later = gate();
      const shown = gate();
      const stubborn: AgentDefinition = {
        name: 'stubborn',
        when: 'never stops',
        async run(_task, { emit }) {
          await later.opened;
          emit({ still: 'here' });
          shown.open();
          return { summary: 'late' };
        },
      };
      const { stream } = await open(
        [
          { schema: 'assignments', reply: route('stubborn', 'navigation') },
          { schema: 'report', reply: report('north') },
          { schema: 'result', reply: { answer: 'ok' } },
        ],
        { limits: { agentTimeout: '50ms' } },
        { agents: [stubborn] },
      );
      const { events } = await stream(PATH, { message: 'x' });
      later.open();
      await shown.opened;
      expect(events.at(-1)?.event).to.equal('result');
      expect(
        events.filter(({ data }) => data.agent === 'stubborn').map(({ data }) => data.status ?? 'started'),
      ).to.deep.equal(['started', 'late']);
    });

    it('reports a later error as an event, and ends', async () => {
      const { stream } = await open([
        { schema: 'assignments', reply: route() },
        { schema: 'result', reply: new GatewayError('provider_unavailable', 'down') },
      ]);
      const { status, events } = await stream(PATH, { message: 'x' });
      expect(status).to.equal(200);
      expect(events.at(-1)?.event).to.equal('error');
      expect(events.at(-1)?.data.error).to.include({ code: 'provider_unavailable' });
    });
  });

  it('logs neither the message nor any answer', async () => {
    const { post, logged } = await open([
      { schema: 'assignments', reply: route('planning') },
      { schema: 'report', reply: report('secret-report') },
      { schema: 'result', reply: { wrong: 'secret-answer' } },
    ]);
    await post(PATH, { message: 'secret-message', context: 'secret-context' });
    expect(logged()).to.not.match(/secret-/);
  });
});
