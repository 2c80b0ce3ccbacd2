import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';

/** Response of an operators' route. */
export interface Reported {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
  readonly body: any;
}

/** Operator with a key, on a separate gateway. */
export interface Operator {
  readonly gateway: TestGateway;
  /** Key of the operator. */
  readonly key: string;
  /** Sends a request to `/api/core/admin…` with the operator's key. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reported>;
  /** Sends a chat with any key or token. */
  chat(key: string): Promise<{ readonly status: number; readonly code?: string; readonly message?: string }>;
}

export async function startOperator(
  config: Record<string, unknown> = {},
  options: TestGatewayOptions = {},
): Promise<Operator> {
  const base = {
    plans: { free: {}, pro: { rpm: 1000 } },
    tags: { team: ['search', 'ads'] },
    models: { quick: 'echo/other' },
  };
  const gateway = await startGateway({ ...base, ...config }, options);
  const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
  return {
    gateway,
    key,
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${gateway.url}/api/core/admin${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, headers: response.headers, body: await response.json() };
    },
    async chat(bearer) {
      const response = await gateway.post(
        '/v1/chat/completions',
        { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] },
        { authorization: `Bearer ${bearer}` },
      );
      const { error } = (await response.json()) as { error?: { code: string; message: string } };
      return { status: response.status, ...error };
    },
  };
}
