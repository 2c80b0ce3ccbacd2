// Python's requests, which programs without an SDK use. Python sends and reads; the checks are here.
import { spawn } from 'node:child_process';
import * as is from './behaviours.mjs';

/** Sends the body of `given`, and prints the status with the JSON or the events of the response. */
const SEND = `
import json, os, sys, requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

given = json.load(sys.stdin)
session = requests.Session()
session.headers['authorization'] = 'Bearer ' + given.get('key', os.environ['TOLLGATE_API_KEY'])
retry = Retry(total=given.get('retries', 0), status_forcelist=[429], allowed_methods=None, raise_on_status=False)
session.mount('http://', HTTPAdapter(max_retries=retry))
url = os.environ['TOLLGATE_URL'] + given['path']
body = given.get('body')
streams = bool(body and body.get('stream'))
response = session.get(url) if not body else session.post(url, json=body, stream=streams)
if streams and response.ok:
    events = []
    for line in response.iter_lines(decode_unicode=True):
        if line.startswith('data: ') and line != 'data: [DONE]':
            events.append(json.loads(line[6:]))
            if given.get('leaves') and events[-1]['choices'][0]['delta'].get('content'):
                response.close()
                break
    print(json.dumps({'status': response.status_code, 'events': events}))
else:
    print(json.dumps({'status': response.status_code, 'json': response.json()}))
`;

function send(given) {
  return new Promise((resolve, reject) => {
    const python = spawn('python3', ['-c', SEND], { stdio: ['pipe', 'pipe', 'pipe'] });
    let [out, problem] = ['', ''];
    python.stdout.on('data', (bytes) => {
      out += bytes;
    });
    python.stderr.on('data', (bytes) => {
      problem += bytes;
    });
    python.on('error', reject);
    python.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(out));
      else reject(new Error(problem.trim().split('\n').at(-1)));
    });
    python.stdin.end(JSON.stringify(given));
  });
}

const user = (content) => [{ role: 'user', content }];
const post = (body, more = {}) => send({ path: '/v1/chat/completions', body: { model: is.MODEL, ...body }, ...more });
const messageTo = async (messages, rest) => (await post({ messages, ...rest })).json.choices[0].message;
const tools = [
  {
    type: 'function',
    function: { name: 'get_weather', description: 'The weather of a city.', parameters: is.CITY_SCHEMA },
  },
];
const resultOf = ({ id, function: called }) => ({
  ...{ role: 'tool', tool_call_id: id, content: is.WEATHER[JSON.parse(called.arguments).city] },
});
const deltasOf = ({ events }) => events.flatMap(({ choices }) => choices.map(({ delta }) => delta));
const textOf = (response) =>
  deltasOf(response)
    .map(({ content }) => content ?? '')
    .join('');

await is.report({
  async chat() {
    const { json } = await post({ messages: user('Say hello') });
    is.equal([json.choices[0].message.content, json.usage.total_tokens], [is.HELLO, 110], 'the message');
  },
  async stream() {
    const response = await post({
      ...{ messages: user('Say hello'), stream: true, stream_options: { include_usage: true } },
    });
    is.equal([textOf(response), response.events.at(-1).usage.total_tokens], [is.HELLO, 110], 'the text and the usage');
  },
  async tools() {
    const messages = user('What is the weather?');
    const message = await messageTo(messages, { tools });
    const results = message.tool_calls.map(resultOf);
    is.equal((await messageTo([...messages, message, ...results], { tools })).content, is.SUMMARY, 'the message');
  },
  async 'tools, streamed'() {
    const messages = user('What is the weather?');
    const calls = [];
    for (const { tool_calls: pieces = [] } of deltasOf(await post({ messages, tools, stream: true })))
      for (const { index, id, function: called } of pieces) {
        calls[index] ??= { id, type: 'function', function: { name: called.name, arguments: '' } };
        calls[index].function.arguments += called.arguments ?? '';
      }
    messages.push({ role: 'assistant', content: null, tool_calls: calls }, ...calls.map(resultOf));
    is.equal(textOf(await post({ messages, tools, stream: true })), is.SUMMARY, 'the text');
  },
  async structured() {
    const json_schema = { name: 'person', strict: true, schema: is.PERSON_SCHEMA };
    const { content } = await messageTo(user('A person as JSON'), {
      response_format: { type: 'json_schema', json_schema },
    });
    is.equal(JSON.parse(content), is.PERSON, 'the object');
  },
  async image() {
    const image_url = { url: `data:image/png;base64,${is.PNG}` };
    const parts = [
      { type: 'text', text: 'The image?' },
      { type: 'image_url', image_url },
    ];
    is.equal((await messageTo(user(parts))).content, is.IMAGE, 'the message');
  },
  async document() {
    const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${is.PDF}` };
    const parts = [
      { type: 'text', text: 'The document?' },
      { type: 'file', file },
    ];
    is.equal((await messageTo(user(parts))).content, is.DOCUMENT, 'the message');
  },
  async errors() {
    const messages = user('Hi');
    const cases = [
      [{ messages }, { key: 'tg_wrong' }, 401],
      [{ messages, model: 'missing/none' }, {}, 404],
      [{ messages: 'none' }, {}, 400],
      [{ messages, model: `${is.provider}/always-limited` }, {}, 429],
      [{ messages, model: `${is.provider}/broken` }, {}, 503],
    ];
    for (const [body, more, expected] of cases) {
      const { status, json } = await post(body, more);
      is.equal([status, typeof json.error.message], [expected, 'string'], 'the error');
    }
    const { events } = await post({ messages: user('Break off'), stream: true });
    is.equal(typeof events.at(-1).error?.message, 'string', 'the last event of a broken stream');
    await is.waits(() => post({ messages: user('Say hello'), model: is.limitedOnce() }, { retries: 1 }), 950, 4000);
  },
  abort: () => is.closesAtVendor(() => post({ messages: user('Count slowly'), stream: true }, { leaves: true })),
  async models() {
    const { json } = await send({ path: '/v1/models' });
    if (!json.data.some(({ id }) => id === 'gpt-5.5')) throw new Error('the list does not have gpt-5.5');
  },
});
