import { expect } from 'chai';
import { createSocketHistory, socket } from '../../../../plugins/dialects/responses/socket.ts';

type Message = Record<string, unknown>;

const user = (text: string) => ({ type: 'message', role: 'user', content: text });
const message = (id: string) => ({ id, type: 'message', role: 'assistant', content: [] });
const create = (fields: object): Message => ({ type: 'response.create', model: 'm', ...fields });

/** Request body for a websocket message. */
function bodyOf(connection: ReturnType<typeof socket.connect>, sent: Message): Message {
  const read = connection.read(sent);
  if (!read || !('body' in read)) throw new Error('it was not a request');
  return read.body;
}

/** Sends a message and completes its response. */
function turn(connection: ReturnType<typeof socket.connect>, sent: Message, id: string): Message {
  const body = bodyOf(connection, sent);
  connection.event({ type: 'response.completed', response: { id, output: [message(`msg_${id}`)] } });
  return body;
}

function errorOf(connection: ReturnType<typeof socket.connect>, sent: Message) {
  try {
    connection.read(sent);
  } catch (thrown) {
    const { code, param } = thrown as { code: string; param: string };
    return { code, param };
  }
  throw new Error('it was taken');
}

describe('the websocket of responses', () => {
  it('posts a response.create as a streamed body without message fields', () => {
    const sent = create({ input: 'Hi', stream: false, event_id: 'e', generate: true, temperature: 1 });
    expect(bodyOf(socket.connect(), sent)).to.deep.equal({ model: 'm', input: 'Hi', stream: true, temperature: 1 });
  });

  it('ignores response.processed, and refuses other messages and unsupported features', () => {
    const connection = socket.connect();
    expect(connection.read({ type: 'response.processed', response_id: 'r' })).to.equal(undefined);
    const cases: readonly (readonly [Message, string])[] = [
      [{ type: 'session.update' }, 'type'],
      [{}, 'type'],
      [create({ background: true }), 'background'],
      [create({ stream_id: 1 }), 'stream_id'],
      [create({ model: 4 }), 'model'],
      [create({ input: 4 }), 'input'],
      [create({ input: ['text'] }), 'input'],
    ];
    for (const [sent, param] of cases)
      expect(errorOf(connection, sent)).to.deep.equal({ code: 'invalid_request', param });
  });

  it('inserts the conversation before its continuation, and returns the client’s id', () => {
    const connection = socket.connect();
    turn(connection, create({ input: 'One' }), 'resp_1');
    const second = turn(connection, create({ input: [user('Two')], previous_response_id: 'resp_1' }), 'resp_2');
    expect(second).to.deep.equal({
      ...{ model: 'm', stream: true },
      input: [user('One'), message('msg_resp_1'), user('Two')],
    });
    const third = bodyOf(connection, create({ input: 'Three', previous_response_id: 'resp_2' }));
    expect(third['input']).to.deep.equal([...(second['input'] as []), message('msg_resp_2'), user('Three')]);
    const event = { type: 'response.created', response: { id: 'resp_3', previous_response_id: null } };
    expect(connection.event(event)).to.deep.include({ response: { id: 'resp_3', previous_response_id: 'resp_2' } });
  });

  it('takes the items of a response whose last event has none from their own events', () => {
    const connection = socket.connect();
    bodyOf(connection, create({ input: 'One' }));
    connection.event({ type: 'response.output_item.done', item: message('msg_a') });
    connection.event({ type: 'response.incomplete', response: { id: 'resp_1', output: [] } });
    expect(bodyOf(connection, create({ input: [], previous_response_id: 'resp_1' }))['input']).to.deep.equal([
      user('One'),
      message('msg_a'),
    ]);
  });

  it('puts its own items in the place of references to them', () => {
    const connection = socket.connect();
    turn(connection, create({ input: 'One' }), 'resp_1');
    const input = [
      { type: 'item_reference', id: 'msg_resp_1' },
      { type: 'item_reference', id: 'msg_other' },
    ];
    expect(bodyOf(connection, create({ input }))['input']).to.deep.equal([message('msg_resp_1'), input[1]]);
  });

  it('leaves a response of elsewhere to the store, also when it is continued twice', () => {
    const connection = socket.connect();
    const first = turn(connection, create({ input: 'Two', previous_response_id: 'resp_stored' }), 'resp_2');
    expect(first).to.deep.include({ input: 'Two', previous_response_id: 'resp_stored' });
    expect(bodyOf(connection, create({ input: 'Three', previous_response_id: 'resp_2' }))).to.deep.include({
      input: [user('Two'), message('msg_resp_2'), user('Three')],
      previous_response_id: 'resp_stored',
    });
  });

  it('forgets the response that a failed turn continued, whether it was refused or broke off', () => {
    const connection = socket.connect();
    const fails: readonly (() => unknown)[] = [
      () => connection.refuse(429, { error: { message: 'Later.' } }, {}),
      () => connection.event({ type: 'response.failed', response: { id: 'resp_x' } }),
    ];
    for (const fail of fails) {
      turn(connection, create({ input: 'One' }), 'resp_1');
      const continuing = create({ input: 'Two', previous_response_id: 'resp_1' });
      expect(bodyOf(connection, continuing)).not.to.have.property('previous_response_id');
      fail();
      expect(bodyOf(connection, continuing)).to.have.property('previous_response_id', 'resp_1');
    }
  });

  it('shows a refusal with its status, its code and the place in the message', () => {
    const connection = socket.connect();
    turn(connection, create({ input: 'One' }), 'resp_1');
    bodyOf(connection, create({ input: [user('Two')], previous_response_id: 'resp_1' }));
    const reported = {
      message: '`input[2].role` must be a role',
      type: 'invalid_request_error',
      code: 'invalid_request',
    };
    const body = { error: { ...reported, param: 'input[2].role' } };
    expect(connection.refuse(400, body, { 'retry-after': '7' })).to.deep.equal({
      type: 'error',
      status: 400,
      error: { ...reported, message: '`input[0].role` must be a role', param: 'input[0].role' },
      headers: { 'retry-after': '7' },
    });
    expect(connection.refuse(400, { error: { ...reported, param: 'input[1].id' } }, {})).to.have.nested.property(
      'error.param',
      'previous_response_id',
    );
  });

  it('reports the maximum age of a websocket in the form that Codex expects', () => {
    const error = { message: 'websocket_connection_limit_reached: open a new websocket.', code: 'invalid_request' };
    expect(socket.connect().refuse(400, { error }, {})).to.have.nested.property(
      'error.code',
      'websocket_connection_limit_reached',
    );
  });

  it('responds itself to generate: false, once a second, and the next request can continue it', () => {
    const connection = socket.connect();
    const read = connection.read(create({ input: [user('Hi')], generate: false, instructions: 'Be short.' }));
    if (!read || !('events' in read)) throw new Error('it was posted');
    const events = read.events as readonly { type: string; response: Message & { id: string } }[];
    expect(events.map(({ type }) => type)).to.deep.equal(['response.created', 'response.completed']);
    expect(events[1]?.response).to.deep.include({ status: 'completed', output: [], instructions: 'Be short.' });
    expect(events[1]?.response['usage']).to.deep.include({ input_tokens: 0, output_tokens: 0, total_tokens: 0 });
    const id = events[0]?.response.id;
    expect(id).to.match(/^resp_\w{32}$/);
    expect(errorOf(connection, create({ generate: false })).code).to.equal('rate_limited');
    expect(bodyOf(connection, create({ input: [], previous_response_id: id }))['input']).to.deep.equal([user('Hi')]);
  });

  it('keeps the last eight responses', () => {
    const connection = socket.connect();
    for (let nth = 1; nth <= 9; nth += 1) turn(connection, create({ input: 'Hi' }), `resp_${nth}`);
    const isKept = (id: string) =>
      bodyOf(connection, create({ input: 'x', previous_response_id: id }))['previous_response_id'] === undefined;
    expect([isKept('resp_1'), isKept('resp_2'), isKept('resp_9')]).to.deep.equal([false, true, true]);
  });

  it('keeps no more bytes than it may, the newest first', () => {
    const history = createSocketHistory(undefined, 1000);
    const keep = (id: string, text: string) =>
      history.keep(id, history.continue({ model: 'm', input: text }), [message(id)]);
    const isKept = (id: string) =>
      history.continue({ model: 'm', input: 'x', previous_response_id: id }).continued !== undefined;
    keep('resp_1', 'a'.repeat(400));
    keep('resp_2', 'b'.repeat(400));
    keep('resp_3', 'c'.repeat(2000));
    expect([isKept('resp_1'), isKept('resp_2'), isKept('resp_3')]).to.deep.equal([false, true, false]);
  });
});
