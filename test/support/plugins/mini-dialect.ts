/**
 * Client format with few fields, as the text of a plugin: a route with its own prefix, credentials, aliases, lists and
 * counts.
 */
import { pluginFile } from './plugin-file.ts';

/** `{ m, say, tools?, file?, max? }`; its options are `models` (aliases) and `prefixes`. */
export const MINI_DIALECT = pluginFile({
  name: 'mini',
  kind: 'dialect',
  more: `configSchema: { type: 'object', properties: { models: { type: 'object' } } },`,
  setup: `
    const body = { type: 'object', required: ['m', 'say'], properties: { m: { type: 'string' }, say: { type: 'string' } } };
    const models = Object.entries(config.models ?? {}).map(([name, targets]) => [name, [targets].flat()]);
    const row = ({ id, ownedBy, contextWindow }) => ({ mini: id, by: ownedBy, window: contextWindow ?? null });
    api.dialect({
      name: 'mini',
      request: body,
      response: { type: 'object' },
      routes: [
        { path: '/mini/chat', summary: 'Mini' },
        { path: '/mini/:model\\\\:say', summary: 'Mini by path', request: { type: 'object' } },
        { path: '/mini/count', summary: 'Mini count', action: 'count', response: { type: 'object', required: ['n'] } },
      ],
      prefixes: ['/mini'],
      credentials: { headers: ['x-mini-key'], query: ['key'] },
      aliases: Object.fromEntries(models),
      models: {
        path: '/mini/models',
        header: 'mini-version',
        list: (rows, { limit = '100' }) => ({ all: rows.slice(0, Number(limit)).map(row), last: rows.length <= Number(limit) }),
        one: row,
      },
      keepAlive: ': mini\\n\\n',
      read: ({ body, params, query, headers }) => ({
        request: {
          model: body.m ?? params.model,
          messages: [{ role: 'user', content: body.say ?? JSON.stringify({ query, headers: Object.keys(headers) }) }],
          ...(body.max && { max_completion_tokens: body.max }),
          stream: body.stream === true,
        },
        needs: [
          ...(body.tools ?? []).map((name, at) => ({ kind: 'server tool', name, param: 'tools[' + at + ']' })),
          ...(body.wishes ?? []).map((name, at) => ({ kind: 'server tool', name, param: 'wishes[' + at + ']', optional: true })),
          ...(body.file ? [{ kind: 'reference', name: 'file', param: 'file' }] : []),
        ],
      }),
      write: (response) => ({ said: response.choices[0].message.content }),
      count: (n) => ({ n }),
      stream: () => ({
        push: (chunk) => 'data: ' + JSON.stringify(chunk.choices[0]?.delta.content ?? '') + '\\n\\n',
        end: () => 'data: end\\n\\n',
        fail: (error) => 'data: ' + error.code + '\\n\\n',
      }),
      native: {
        headers: ['x-mini-beta'],
        patch: (body, { model, without = [] }) => ({ body: { ...body, m: model, ...(without.length > 0 && { without }) } }),
        write: (body) => body,
        stream: () => ({ push: ({ data }) => data, end: () => '', fail: (error) => error.code }),
      },
      error: (error, id) => ({ body: { mini: error.code, message: error.message, id } }),
    });`,
});

export const MINI_FILES: Readonly<Record<string, string>> = { 'mini.mjs': MINI_DIALECT };
