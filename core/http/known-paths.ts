/** Paths of the APIs that clients are written for, and that this gateway does not serve: what each is, and what to use instead. */
interface KnownPath {
  /** Matches a path after the version, such as `threads/t_1/runs`. */
  readonly path: RegExp;
  /** One or two sentences. A path of this gateway begins with `{base}`. */
  readonly says: string;
}

/** Beginnings that clients put before a path of an API. */
const BASE = /^\/(?:(?:api\/core\/)?[\w.-]+\/)?v\d+(?:alpha|beta)?\d*\/|^\/api\/core\/[\w.-]+\//i;

const KNOWN: readonly KnownPath[] = Object.freeze([
  row(
    /^(?:assistants|threads)(?:\/|$)/,
    'Assistants and threads are not served. Send the conversation to {base}/v1/responses.',
  ),
  row(
    /^conversations(?:\/|$)/,
    'Stored conversations are not served. Send the earlier items, or `previous_response_id`, to {base}/v1/responses.',
  ),
  row(
    /^chat\/completions\/(?!v\d)[^/]+(?:\/messages)?$/,
    'Chat completions are not stored. Operators read calls at {base}/api/core/admin/calls.',
  ),
  row(/^responses\/compact$/, 'Conversations are not compacted. Send a shorter one to {base}/v1/responses.'),
  row(/^containers(?:\/|$)/, 'Containers of code tools are not served. They belong to the account at the provider.'),
  row(
    /^(?:fine_tuning|fine-tunes|finetuning|tunedmodels)(?:\/|$)/,
    'Fine-tuning is not served. Tune models at the provider; the operator adds them to `models` of the provider.',
  ),
  row(
    /^(?:evals|graders)(?:\/|$)/,
    'Evaluations are not served. Run them in your own program against {base}/v1/chat/completions.',
  ),
  row(
    /^(?:vector_stores|filesearchstores|corpora|ragstores|libraries)(?:\/|$)/,
    'Vector stores are not served. The knowledge base of this gateway is searched at {base}/api/core/rag.',
  ),
  row(
    /^(?:messages|v1beta)\/files(?:\/|$)/,
    'Files of this format are not served, since all callers share the account at the provider. Send contents in the request.',
  ),
  row(/^uploads(?:\/|$)/, 'Uploads in parts are not served. Send the whole file to {base}/v1/files.'),
  row(/^images\/variations$/, 'Image variations are not served. Use {base}/v1/images/edits.'),
  row(/^(?:videos|video)(?:\/|$)|:predictlongrunning$/, 'Videos are not served. Call the provider for them.'),
  row(
    /^(?:organization|organizations|projects)(?:\/|$)/,
    "A provider's account is not administered here. Keys, users and usage of this gateway are at {base}/api/core/admin.",
  ),
  row(
    /^realtime\/(?:sessions|client_secrets|transcription_sessions|translations|calls)(?:\/|$)/,
    'Realtime is served as a websocket at {base}/v1/realtime, with an API key of this gateway. There are no client secrets or calls by WebRTC.',
  ),
  row(
    /^(?:chatkit|skills|agents|environments|sessions|vaults|memory_stores|user_profiles)(?:\/|$)/,
    'Hosted agents and their parts are not served. Agents of this gateway are at {base}/api/core/agent.',
  ),
  row(/^complete$/, 'The former text completions are not served. Use {base}/v1/messages or {base}/v1/completions.'),
  row(
    /^cachedcontents(?:\/|$)/,
    'Caches are not managed here. Providers cache repeated beginnings of prompts by themselves; `cache_control` marks them.',
  ),
  row(/:(?:generateimages?|predict)$/, 'Images in this form are not served. Use {base}/v1/images/generations.'),
  row(
    /:(?:generateanswer|asyncbatchembedcontent|batchgeneratecontent|bidigeneratecontent)$/,
    'This method is not served. Use `:generateContent` or `:streamGenerateContent`.',
  ),
  row(/^(?:operations|auth_tokens|dynamic)(?:\/|$)/, 'Long-running operations and tokens for browsers are not served.'),
  row(/^chat$/, 'Chat in this form is not served. Use {base}/v1/chat/completions.'),
  row(/^fim\/completions$/, 'Use {base}/v1/completions with `suffix`.'),
  row(
    /^(?:ocr|classify|classifications|chat\/classifications|chat\/moderations|summarize|datasets|connectors|embed-jobs)(?:\/|$)/,
    'This operation is not served. Call the provider for it.',
  ),
  row(
    /^(?:tokenize|detokenize)$/,
    'Tokens are counted at {base}/v1/responses/input_tokens and {base}/v1/messages/count_tokens.',
  ),
  row(
    /^api\/(?:pull|push|create|delete|copy|ps|blobs)(?:\/|$)/,
    'Models are managed on their own server. This gateway lists what it can call at {base}/v1/models.',
  ),
  row(
    /^models\/[^/:]+\/(?:versions|metrics|permissions)(?:\/|$)/,
    'Only models themselves are listed, at {base}/v1/models.',
  ),
]);

function row(path: RegExp, says: string): KnownPath {
  return Object.freeze({ path, says });
}

/** Returns what to do instead of calling a known path that is not served; undefined for an unknown one. */
export function adviseOnPath(path: string, basePath: string): string | undefined {
  const plain = path.toLowerCase().replace(/\/+$/, '');
  for (const rest of [plain.slice(1), plain.replace(BASE, '')]) {
    const found = KNOWN.find((each) => each.path.test(rest));
    if (found) return found.says.replaceAll('{base}', basePath);
  }
  return undefined;
}
