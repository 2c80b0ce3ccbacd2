// Behaviours that every SDK runs, and their report as JSON lines. The runner copies this folder next to the installed
// packages.

export const {
  TOLLGATE_URL: base,
  TOLLGATE_API_KEY: key,
  VENDOR_URL: vendor,
  CLIENT: client = '',
  PROVIDER: provider,
  MODEL = `${provider}/m`,
  ONLY: only,
} = process.env;
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export const PDF = Buffer.from(
  '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n',
).toString('base64');
export const WEATHER = { Paris: 'sunny', Rome: 'wet' };
export const CITY_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
export const PERSON_SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'number' } },
  required: ['name', 'age'],
  additionalProperties: false,
};

/** Runs the behaviours of a table in order, or the one in `ONLY`, and prints a line for each. */
export async function report(behaviours) {
  for (const [name, run] of Object.entries(behaviours)) {
    if (only !== undefined && name !== only) continue;
    let problem;
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('it took more than 20 s')), 20_000);
    });
    try {
      await Promise.race([run(), late]);
    } catch (error) {
      problem = `${error?.name ?? 'Error'}: ${error?.message ?? error}`.split('\n')[0].slice(0, 300);
    }
    clearTimeout(timer);
    console.log(JSON.stringify({ behaviour: name, ...(problem && { problem }) }));
  }
  process.exit(0);
}

export function equal(actual, expected, what) {
  const [one, other] = [actual, expected].map((value) => JSON.stringify(value));
  if (one !== other) throw new Error(`${what} is ${one?.slice(0, 160)} and should be ${other?.slice(0, 160)}`);
}

export const HELLO = 'Hello there, friend.';
export const SUMMARY = 'Paris is sunny, Rome is wet.';
export const IMAGE = 'I see image/png of 70 bytes.';
export const DOCUMENT = `I read application/pdf of ${Buffer.from(PDF, 'base64').length} bytes.`;
export const PERSON = { name: 'Ada', age: 36 };

/** Returns the thrown error; fails without an error. */
export async function thrownBy(run) {
  try {
    await run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

/** Fails unless the call takes the time set by the vendor, and not much longer. */
export async function waits(run, fromMs, toMs) {
  const start = performance.now();
  await run();
  const took = Math.round(performance.now() - start);
  if (took < fromMs || took > toMs) throw new Error(`the wait was ${took} ms and should be ${fromMs} to ${toMs} ms`);
}

let nonce = 0;
/** Model that is rate limited at its first request, for one second. */
export const limitedOnce = () => `${provider}/limited-once-${process.pid}-${nonce++}`;

async function closedStreams() {
  return (await (await fetch(`${vendor}/closed`)).json()).closed;
}

/** Fails unless the vendor's stream is closed soon after the client left. */
export async function closesAtVendor(leave) {
  const before = await closedStreams();
  await leave();
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await closedStreams()) > before) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('the stream of the vendor is still open 2 s after the client left');
}

/** Inputs and outputs of operations other than chat; the vendor of `operations-vendor.ts` uses the same. */
export const TEXTS = ['one', 'two'];
export const VECTORS = [
  [1, 0, 0],
  [0, 1, 0],
];
export const VECTOR_MODEL = 'openai/text-embedding-3-small';
export const SOUND = Buffer.from('RIFF, which no one plays');
export const isMp3 = (bytes) => equal(Buffer.from(bytes).subarray(0, 3).toString('latin1'), 'ID3', 'the sound');
/** Lines of a batch of chats. */
export const lines = (model) =>
  ['a', 'b']
    .map((custom_id) => ({
      ...{ custom_id, method: 'POST', url: '/v1/chat/completions' },
      body: { model, max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
    }))
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
