/**
 * Every failure in `test/fixtures/corpora/gateway-cases/failures.json`: the gateway's behaviour, and the tests that prove
 * it. `npm run reliability` writes `docs/reliability.md` from this table.
 */
export interface Failure {
  readonly failure: string;
  /** Behaviour visible to the caller and the operator. */
  readonly does: string;
  /** Effect on the caller's money. */
  readonly money: string;
  /** Test files whose titles contain the failure's id, or `file#words of a title`. */
  readonly tests: readonly string[];
}

const BREAKS = 'test/failures/upstream-breaks.test.ts';
/** Cases that `upstream-breaks`, `upstream-answers` and `rescue` run in every format. */
const CASES = 'test/failures/upstream-cases.ts';
/** Unusual responses that are not failures, in every format. */
const ODD = 'test/failures/forms.test.ts';
const CALLERS = 'test/failures/client-forms.test.ts';
const RESPONSES = 'test/failures/upstream-answers.test.ts';
const USAGE = 'test/failures/upstream-usage.test.ts';
const CLIENT = 'test/failures/client.test.ts';
const PROCESS = 'test/failures/process.slow.test.ts';
const CONFIG = 'test/failures/config.slow.test.ts';
const PLUGIN = 'test/failures/plugin.test.ts';
const STORES = 'test/plugins/stores/failures.slow.test.ts';
const KEY_STORES = 'test/plugins/auth/api-key/stores.slow.test.ts';
const STORE_FORMS = 'test/failures/store-forms.slow.test.ts';
const KEYS = 'test/plugins/auth/api-key/verify.test.ts';
const OUTAGE = 'test/app/store-outage.slow.test.ts#answers as declared';
const CRASHES = 'test/app/crashes.slow.test.ts#loses and doubles nothing, wherever a gateway is killed';

const NOTHING = 'nothing';
const PROMPT = 'the prompt, estimated: the provider may have worked on it';
const PARTIAL = 'the prompt and what came, estimated';
const ONCE = 'once, as the provider counted';
const NONE = '';

const row = (failure: string, does: string, money: string, ...tests: readonly string[]): Failure => ({
  failure,
  does,
  money,
  tests,
});

export const FAILURES: Readonly<Record<string, Failure>> = Object.freeze({
  U01: row('refuses connections', 'the next target; else once more, then 503 `provider_unavailable`', NOTHING, BREAKS),
  U02: row('has a name that does not resolve', 'as U01; the name is not shown', NOTHING, BREAKS),
  U03: row('lets the connection hang', '503 `provider_timeout` after `timeouts.connect`', NOTHING, BREAKS),
  U04: row(
    'has a bad certificate',
    '503 `provider_unavailable`; nothing is sent, also with `NODE_TLS_REJECT_UNAUTHORIZED=0`',
    NOTHING,
    BREAKS,
    'test/egress/tls.test.ts#sends nothing to a server whose certificate is',
  ),
  U05: row('takes the request and is silent', '503 `provider_timeout` after `timeouts.firstByte`', PROMPT, CASES),
  U06: row(
    'is silent after a stream’s head',
    '503 `provider_timeout`: no byte was passed on, so the status can still tell',
    PROMPT,
    CASES,
  ),
  U07: row('falls silent in a stream', 'what came, then one `provider_timeout` frame', PARTIAL, CASES),
  U08: row(
    'resets a fresh connection',
    '503 `provider_unavailable`; the prompt is sent again only with an `Idempotency-Key`',
    PROMPT,
    CASES,
  ),
  U09: row('resets a kept connection', 'the request is sent again on a new one; 200', ONCE, ODD, BREAKS),
  U10: row('resets in an answer', '503 `provider_unavailable`', PROMPT, CASES),
  U11: row('resets in a stream', 'what came, then one `provider_unavailable` frame', PARTIAL, CASES),
  U12: row('ends a stream without a finish reason', 'as U11, never a quiet end', PARTIAL, CASES),
  U13: row('leaves out `[DONE]` after a finish reason', 'a whole stream with its `[DONE]`', ONCE, ODD),
  U14: row('drips bytes of an event without end', '503 `provider_timeout` after `timeouts.total`', PROMPT, CASES),
  U15: row('sends only comments', '503 `provider_timeout` after `timeouts.total`', PROMPT, CASES),
  U16: row('answers 200 with broken JSON', '503 `provider_invalid_response`', PROMPT, CASES),
  U17: row('answers 200 with a web page', '503 `provider_invalid_response`', NOTHING, CASES),
  U18: row(
    'answers 502, 503 or 504 with a page',
    '503 `provider_unavailable`, for 503 `provider_overloaded`, for 504 `provider_timeout`',
    NOTHING,
    CASES,
  ),
  U19: row(
    'answers JSON under another content type',
    '200: what parses is taken, from every provider',
    ONCE,
    ODD,
    RESPONSES,
  ),
  U20: row(
    'answers a stream request with JSON',
    'an error is its status, an answer becomes a stream',
    ONCE,
    CASES,
    ODD,
    RESPONSES,
  ),
  U21: row('answers with a stream unasked', 'the whole response', ONCE, ODD),
  U22: row('puts an error into a 200', 'the error’s own status', NOTHING, CASES),
  U23: row('sends an error first in a stream', 'the next target; else the error’s status', NOTHING, CASES, RESPONSES),
  U24: row(
    'sends an error amid a stream',
    'what came, then one error frame; no other target is tried',
    PARTIAL,
    ODD,
    RESPONSES,
  ),
  U25: row('sends `[DONE]` twice', 'one `[DONE]`', ONCE, ODD, USAGE),
  U26: row('sends data after `[DONE]`', 'it is dropped', ONCE, ODD, USAGE),
  U27: row('counts usage again and again', 'the last count', ONCE, ODD, USAGE),
  U28: row('counts together with the last words', 'found, and sent in a chunk of its own', ONCE, ODD, USAGE),
  U29: row('counts nothing', 'an estimate, in the answer too', 'the estimate, never nothing', ODD, USAGE),
  U30: row(
    'counts nonsense',
    'those out of bounds (negative, text, over 100 million) are no count: the call is estimated; one that is left out is worked out from the total',
    'the estimate; a balance never grows by it',
    ODD,
    USAGE,
  ),
  U31: row('splits code points, or sends bad UTF-8', 'whole code points; U+FFFD for bad bytes', ONCE, ODD, RESPONSES),
  U32: row(
    'ends lines by CR, CRLF or LF, with a BOM',
    'the same events',
    ONCE,
    ODD,
    RESPONSES,
    'test/contract/event-reader.test.ts#at every split',
  ),
  U33: row('sends an event without end', '503 `provider_unavailable` after 4 MiB', PROMPT, CASES),
  U34: row('sends an answer without end', '503 `provider_unavailable` after 32 MiB', PROMPT, CASES),
  U35: row('compresses its answer', '503 `provider_unavailable`: none is asked for, none unpacked', PROMPT, CASES),
  U36: row('sends a decompression bomb', 'as U35', PROMPT, CASES),
  U37: row('cuts a compressed answer', 'as U35', PROMPT, CASES),
  U38: row(
    'answers 429 with a wait',
    'the next target; else once more after a wait of up to 5 s, then 429 `upstream_rate_limited` with the wait',
    NOTHING,
    CASES,
  ),
  U39: row('dates the wait', 'the seconds until then; a past date or rubbish is no hint', NOTHING, CASES, RESPONSES),
  U40: row(
    'asks to wait for an hour, or for days',
    '`retry-after: 60` and `x-should-retry: false`; over a day is no hint. The gateway waits for neither',
    NOTHING,
    CASES,
  ),
  U41: row('rejects the operator’s key', '503 `provider_auth_failed`, never 401', NOTHING, CASES),
  U42: row('is out of the operator’s credit', '503 `provider_quota_exhausted`', NOTHING, CASES),
  U43: row('answers 400', '400 with its words, keys and hosts cut out', NOTHING, CASES),
  U44: row('does not know the model', '404 `unsupported_model`', NOTHING, CASES),
  U45: row(
    'redirects to another origin',
    '503 `provider_unavailable`; that origin sees nothing',
    NOTHING,
    CASES,
    RESPONSES,
  ),
  U46: row('redirects to itself', 'as U45', NOTHING, CASES, RESPONSES),
  U47: row(
    'sends 103, or 101',
    '103 is passed over; 101, and an unrequested 100, are 503 `provider_unavailable`',
    PROMPT,
    CASES,
    ODD,
    RESPONSES,
    'test/egress/answers.test.ts#ignores early hints',
  ),
  U48: row('answers 204, 205 or 304', '503 `provider_unavailable`', NOTHING, CASES),
  U49: row('sends a broken or huge head', '503 `provider_unavailable`', PROMPT, CASES),
  U50: row('answers twice', 'the second answer is discarded', ONCE, ODD, RESPONSES),
  U51: row('sends cookies and headers of its own', 'only `x-ratelimit-*` come through', NONE, ODD, RESPONSES),
  U52: row('splits tool calls', 'numbered in the order of their appearance, every piece to its call', ONCE, ODD, USAGE),
  U53: row('finishes by length or filter', 'the reason unchanged; a missing one is U12', ONCE, ODD, USAGE),
  U54: row('fails at all targets', 'one error after one retry, with `x-should-retry: false`', NOTHING, BREAKS),
  C01: row(
    'leaves before the first byte',
    'the provider’s call is ended at once; 499 in the access log',
    PROMPT,
    CLIENT,
  ),
  C02: row(
    'leaves amid a stream',
    'the provider’s call is read on for half a second, for what it tells of its usage, then ended',
    'as the provider counted, where it reported it in time; else the prompt and all that came, estimated',
    CLIENT,
    CALLERS,
  ),
  C03: row(
    'closes its half after the request',
    'taken for leaving: the two look the same on the wire',
    PROMPT,
    CLIENT,
    CALLERS,
  ),
  C04: row(
    'reads nothing',
    'the provider is paused; the stream is cut after 60 s',
    PARTIAL,
    CLIENT,
    'test/core/streaming.test.ts#stops the vendor while the caller reads nothing',
  ),
  C05: row('sends headers or a body slowly', '408 `request_timeout`, closed', NOTHING, CLIENT, CALLERS),
  C06: row('sends too large a body', '413 `request_too_large`', NOTHING, CLIENT),
  C07: row('sends a compressed bomb', '413 `request_too_large`; unpacked no further than the limit', NOTHING, CLIENT),
  C08: row(
    'pipelines, waits for 100-continue, asks for an upgrade',
    'answered in order; 100 Continue sent; served over HTTP/1.1',
    ONCE,
    CLIENT,
  ),
  C09: row(
    'sends one `Idempotency-Key` twice',
    'the second gets what the first got ([http.md](http.md#idempotency-key))',
    'once',
    'test/failures/idempotency.test.ts',
    CALLERS,
  ),
  S01: row(
    'is down at start',
    'the gateway starts, `/readyz` is 503, and recovers by itself',
    NOTHING,
    STORES,
    KEYS,
    KEY_STORES,
  ),
  S02: row(
    'dies',
    '503 `store_unavailable`, never 401; or as `onStoreFailure` says',
    'settled once it is back',
    STORES,
    STORE_FORMS,
    KEYS,
    OUTAGE,
  ),
  S03: row('hangs', '503 within its `timeout`; nothing of it happens later', NOTHING, STORES, STORE_FORMS, KEY_STORES),
  S04: row(
    'comes back empty',
    '401, since the store says for sure; no account is taken for funded',
    NONE,
    STORES,
    KEYS,
  ),
  S05: row(
    'fails over to a replica',
    'changes are refused while it is read-only; then on. What an asynchronous replica lacks is lost with the primary',
    NONE,
    STORES,
  ),
  S06: row('holds a broken record', 'that key is refused, the others work', NONE, STORES, KEYS),
  S07: row('loses the reply to a write', 'the write happened once, however often it is said', 'once', STORES),
  S08: row(
    'is shared: a key is revoked on another node',
    'refused everywhere within 5 s',
    NONE,
    KEYS,
    'test/app/shared-store.slow.test.ts#refuse on both a key that was revoked on one of them',
  ),
  S09: row('is written by a call in flight', 'a revocation or rotation survives it', NONE, KEYS, KEY_STORES),
  S10: row(
    '(SQLite) is locked, full or read-only',
    '503 within a bound; what was acknowledged is there',
    NONE,
    'test/plugins/stores/sqlite-writer.test.ts#refuses changes on a full disk',
    'test/plugins/stores/sqlite-writer.test.ts#refuses within its bound while another process holds the lock',
    'test/plugins/stores/sqlite-writer.test.ts#loses nothing that was reserved before another process took the lock',
  ),
  S11: row(
    'sees fifty calls on a balance for ten',
    'ten are let in',
    'exactly ten',
    'test/plugins/stores/races.slow.test.ts#lets ten of fifty',
    'test/app/shared-store.slow.test.ts#spend a balance for ten calls exactly',
  ),
  S12: row('sees fifty key creations where five are allowed', 'five', NONE, KEY_STORES),
  P01: row(
    'is killed between answer and settlement',
    'the sweeper settles',
    'once: the true cost, or the estimate',
    CRASHES,
    'test/plugins/stores/sqlite-processes.slow.test.ts#keeps, when it is killed, every reservation',
  ),
  P02: row(
    'is killed between reservation and sending',
    'the sweeper settles',
    'the estimate: it is not known that it was not sent',
    CRASHES,
  ),
  P03: row(
    'gets SIGTERM with streams open',
    'not ready at once; streams finish; exit 0',
    ONCE,
    STORE_FORMS,
    'test/app/drain.slow.test.ts#lets running streams finish',
  ),
  P04: row(
    'gets SIGTERM with a stream without end',
    'one `shutting_down` frame after `server.drainTimeout`; exit 0',
    PARTIAL,
    STORE_FORMS,
    'test/app/drain.slow.test.ts#ends a stream that is longer than the deadline',
  ),
  P05: row(
    'gets a second signal',
    'exit 143 (SIGINT 130, SIGHUP 129) at once',
    'swept later',
    'test/app/drain.slow.test.ts#ends at once, with another exit code',
  ),
  P06: row('has an unhandled rejection', 'logged with its stack; drains; exit 1', ONCE, PROCESS),
  P07: row('has an uncaught exception', 'as P06', ONCE, PROCESS),
  P08: row(
    'blocks its event loop',
    'running streams go on; new requests are 503 `overloaded`, `retry-after: 1`, until it is in time',
    NOTHING,
    PROCESS,
  ),
  P09: row('is short of heap', '503 `overloaded` from 85 % on, after a collection', NOTHING, PROCESS),
  P10: row('is out of file descriptors', 'connections wait or are refused; recovers', NOTHING, PROCESS),
  P11: row('cannot write its log', 'requests go on; lines beyond 4 MiB are lost, and stderr says so', ONCE, PROCESS),
  P12: row(
    'has a clock that jumps',
    'no call is cut (deadlines are monotonic), no one is locked out; a call that its process still runs is not taken for forgotten, and one that was is corrected when it ends',
    ONCE,
    'test/failures/clock.test.ts',
  ),
  G01: row(
    'breaks under a running gateway',
    'a reload is refused, the former one goes on; log, command and `/readyz` say why; at start: exit 3 with file, line and column',
    NONE,
    CONFIG,
  ),
  G02: row('is well-formed but wrong', 'the start is refused as a whole, every problem named', NONE, CONFIG, PLUGIN),
  G03: row('changes during streams', 'they end as they began; new requests go by the new one', NONE, CONFIG),
  G04: row('is swapped or removed', 'as G01, also with several workers: all go on with it or none', NONE, CONFIG),
  G05: row(
    'has a secret rotated in place',
    'read again at the next reload, or at once with `server.watch`',
    NONE,
    CONFIG,
  ),
  X01: row('throws in `setup`', 'the start is refused and names it', NONE, PLUGIN),
  X02: row('never ends its `setup`', 'as X01, after 30 s', NONE, PLUGIN),
  X03: row(
    'throws in a hook',
    '500 `internal_error`, the reason in the log; after the call: logged, the answer stands',
    'what the provider did',
    PLUGIN,
  ),
  X04: row('never ends a hook', 'as X03, after 30 s', NOTHING, PLUGIN),
  X05: row('throws on a chunk', 'one `internal_error` frame', PARTIAL, PLUGIN),
  X06: row(
    'returns rubbish, or changes its configuration',
    'as X03; configurations are frozen',
    'what the provider did',
    PLUGIN,
  ),
  X07: row(
    'throws in a copy of a stream',
    'logged with its name; the stream is whole, the gateway goes on',
    ONCE,
    PROCESS,
  ),
  X08: row('looks for secrets in what it is handed', 'there are none', NONE, PLUGIN),
  X09: row('sets impossible headers, status or body', '500 `internal_error` on a whole connection', NONE, PLUGIN),
});
