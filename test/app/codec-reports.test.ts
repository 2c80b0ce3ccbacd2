import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile } from '../support/plugins/plugin-file.ts';
import { eventually } from '../support/wait.ts';

/** Provider that says the caller's id, and reports two fields that its vendor ignored with the response. */
const PROVIDER = pluginFile({
  name: 'acme',
  kind: 'provider',
  setup: `
    const head = { id: 'x', created: 1, model: 'm' };
    const transport = async ({ body }) => ({ status: 200, headers: { 'content-type': body.stream && !body.whole ? 'text/event-stream' : 'application/json' },
      body: (async function* () { yield Buffer.from(body.stream && !body.whole ? 'data: ' + JSON.stringify(body) + '\\n\\n' : JSON.stringify(body)); })() });
    api.provider({ baseUrl: 'http://127.0.0.1:9', models: [{ id: 'm' }], credential: { header: 'authorization', value: 'x', required: false },
      transport, error: () => ({ class: 'upstream_error', message: '' }),
      chat: {
        request: ({ messages, seed }, { principal, stream }) => ({ path: '/x', body: { who: principal.userId, stream, whole: messages[0].content === 'whole' }, ...(seed && { dropped: ['seed'] }) }),
        response: ({ who }) => ({ ...head, object: 'chat.completion', dropped: ['user', 'top_k'],
          choices: [{ index: 0, message: { role: 'assistant', content: who, refusal: null }, finish_reason: 'stop', logprobs: null }] }),
        stream: () => ({
          push: ({ data }) => [{ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: { role: 'assistant', content: JSON.parse(data).who }, finish_reason: 'stop', logprobs: null }] }],
          end: () => ({ chunks: [], complete: true, dropped: ['user', 'top_k'] }),
        }),
      } });`,
});

const CALLS: readonly (readonly [form: string, fields: object, isInHeader: boolean])[] = [
  ['a whole response', {}, true],
  ['a stream', { stream: true }, false],
  ['a whole response in place of a stream', { stream: true, messages: [{ role: 'user', content: 'whole' }] }, true],
];

describe('G75: what a codec is given and may report', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      { providers: { acme: { plugin: './acme.mjs' } } },
      { files: { 'acme.mjs': PROVIDER } },
    );
  });
  after(() => gateway?.stop());

  for (const [form, fields, isInHeader] of CALLS)
    it(`is the caller, and fields that the vendor ignored, of ${form}`, async () => {
      const response = await gateway.post(CHAT, chatOf('Hi', { model: 'acme/m', seed: 7, ...fields }));
      const reply = await response.text();
      expect(response.status, reply).to.equal(200);
      expect(reply, 'the id of the caller').to.match(/"content":"[^"]+"/);
      expect(reply).not.to.include('top_k');
      if (isInHeader) expect(response.headers.get('x-tollgate-dropped')).to.equal('seed, user, top_k');
      const id = response.headers.get('x-request-id') ?? '';
      await eventually(async () => {
        const lines = gateway.logText().split('\n');
        const line = lines.find((each) => each.includes(id) && each.includes('"plugin":"access-log"'));
        expect(line).to.include('"dropped":"seed, user, top_k"');
      });
    });
});
