import { createHash } from 'node:crypto';
import http, { type ClientRequestArgs } from 'node:http';
import https from 'node:https';
import { BlockList, isIP, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Agent, buildConnector, fetch as fetchByUndici } from 'undici';
import type { EgressRules, ProxyAddress } from '../config/egress.ts';
import { isPlain } from '../contract/json.ts';
import type { Endpoint, ProxyRoute } from '../contract/provider.ts';

/** Error of a proxy. Its message names neither the proxy nor its user. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

/** Creates the connector of one instance; undefined for direct connections. All kinds of clients get their sockets from it. */
export function createProxyRoute(rules: EgressRules | undefined): ProxyRoute | undefined {
  if (rules === undefined) return undefined;
  const id = createHash('sha256').update(JSON.stringify(rules)).digest('base64url').slice(0, 16);
  return Object.freeze({ id, connector: (timeoutMs: number) => createConnector(rules, timeoutMs) });
}

/** Returns an endpoint with its route. */
export function withProxyRoute<E extends Endpoint>(endpoint: E, route: ProxyRoute | undefined): E {
  if (route === undefined) return endpoint;
  // The methods of a class are not own properties of its objects.
  return isPlain(endpoint) ? { ...endpoint, proxyRoute: route } : Object.assign(endpoint, { proxyRoute: route });
}

/** Time limit for connecting a control-plane client. */
const CONNECT_MS = 5000;

/** Returns the agents of a route for `node:http` and libraries based on it. */
export function agentsOf(
  route: ProxyRoute | undefined,
): { readonly http: http.Agent; readonly https: https.Agent } | undefined {
  if (route === undefined) return undefined;
  const connect = route.connector(CONNECT_MS);
  const open = (protocol: string, options: ClientRequestArgs, callback?: OnSocket): undefined => {
    const { host, port } = options;
    connect({ hostname: String(host), host: String(host), protocol, port: String(port ?? '') }, (error, socket) =>
      // Node's types require a socket together with an error; Node does not.
      callback?.(error, socket as Duplex),
    );
  };
  const agents = { http: new http.Agent(), https: new https.Agent() };
  agents.http.createConnection = (options, callback) => open('http:', options, callback);
  agents.https.createConnection = (options: ClientRequestArgs, callback?: OnSocket) =>
    open('https:', options, callback);
  return agents;
}

type OnSocket = (error: Error | null, socket: Duplex) => void;

/** Returns the `fetch` of a route. */
export function fetchBy(route: ProxyRoute | undefined): typeof fetch {
  if (route === undefined) return (input, init) => fetch(input, init);
  const dispatcher = new Agent({ connect: route.connector(CONNECT_MS) });
  const fetchByRoute = (input: string, init: object): Promise<unknown> => fetchByUndici(input, { ...init, dispatcher });
  return fetchByRoute as typeof fetch;
}

/** Creates an undici connector: directly or through a proxy tunnel, with TLS inside. */
function createConnector(rules: EgressRules, timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, rejectUnauthorized: true, ...rules.tls });
  return (target, callback) => {
    const proxy = findProxy(rules, target);
    if (proxy === undefined) {
      connect(target, callback);
      return;
    }
    const startedMs = performance.now();
    openTunnel(proxy, target, timeoutMs, (error, socket) => {
      if (error !== null) callback(error, null);
      else if (target.protocol !== 'https:') callback(null, socket);
      else {
        const late = (): void => void socket.destroy(timedOut());
        const timer = setTimeout(late, timeoutMs - (performance.now() - startedMs));
        connect({ ...target, httpSocket: socket }, (...result) => {
          clearTimeout(timer);
          callback(...result);
        });
      }
    });
  };
}

function timedOut(): Error {
  return Object.assign(new ProxyError('the proxy did not connect in time'), { code: 'ETIMEDOUT' });
}

/** Opens a tunnel to the target through a proxy (RFC 9110, section 9.3.6). */
function openTunnel(
  { isTls, hostname, port, authorization }: ProxyAddress,
  target: buildConnector.Options,
  timeoutMs: number,
  callback: buildConnector.Callback,
): void {
  const host = isIPv6(target.hostname) ? `[${target.hostname}]` : target.hostname;
  const authority = `${host}:${target.port || (target.protocol === 'https:' ? 443 : 80)}`;
  const request = (isTls ? https : http).request({
    host: hostname,
    port,
    method: 'CONNECT',
    path: authority,
    agent: false,
    rejectUnauthorized: true,
    headers: { host: authority, ...(authorization !== undefined && { 'proxy-authorization': authorization }) },
  });
  const timer = setTimeout(() => request.destroy(timedOut()), timeoutMs);
  request.once('connect', ({ statusCode }, socket: Socket, head) => {
    clearTimeout(timer);
    if (statusCode === 200) {
      if (head.length > 0) socket.unshift(head);
      socket.setNoDelay(true);
      callback(null, socket);
      return;
    }
    socket.destroy();
    const why =
      statusCode === 407
        ? 'it rejected the user and password'
        : (REFUSALS.get(statusCode) ?? 'it rejected the request');
    callback(new ProxyError(`the proxy did not connect: ${why} (status ${statusCode})`), null);
  });
  request.once('error', (cause: NodeJS.ErrnoException) => {
    clearTimeout(timer);
    if (cause instanceof ProxyError) callback(cause, null);
    else callback(new ProxyError(`the proxy cannot be reached (${cause.code ?? 'unknown'})`, { cause }), null);
  });
  request.end();
}

const REFUSALS: ReadonlyMap<number | undefined, string> = new Map([
  [403, 'its rules block the address'],
  [502, 'it cannot reach the address'],
  [503, 'it cannot reach the address'],
  [504, 'it cannot reach the address'],
]);

/** Returns the proxy for an address: the instance's own for all addresses, else that of the environment. */
function findProxy({ proxy, environment }: EgressRules, target: buildConnector.Options): ProxyAddress | undefined {
  if (proxy !== undefined) return proxy || undefined;
  const isTls = target.protocol === 'https:';
  const found = isTls ? environment?.https : environment?.http;
  if (found === undefined) return undefined;
  const { hostname, port } = target;
  const isDirect =
    isOwnMachine(hostname) ||
    environment?.direct.some((rule) => matches(rule, hostname, port || (isTls ? '443' : '80')));
  return isDirect ? undefined : found;
}

const OWN_MACHINE = new BlockList();
OWN_MACHINE.addSubnet('127.0.0.0', 8, 'ipv4');
OWN_MACHINE.addAddress('::1', 'ipv6');
// Link-local range of cloud metadata services, which identify a machine.
OWN_MACHINE.addSubnet('169.254.0.0', 16, 'ipv4');

/** Returns whether a host is this machine. It bypasses the proxy, where the same address means another machine. */
function isOwnMachine(hostname: string): boolean {
  return (
    /^(.*\.)?localhost\.?$/i.test(hostname) || (isIP(hostname) !== 0 && OWN_MACHINE.check(hostname, family(hostname)))
  );
}

function family(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

/**
 * Returns whether a rule of `NO_PROXY` matches an address. A rule is `*`, a name with its subdomains, an address or a range, with
 * or without a port.
 */
function matches(rule: string, hostname: string, port: string): boolean {
  if (rule === '*') return true;
  const [, network = '', bits] = /^\[?([\da-f:.]+)\]?\/(\d{1,3})$/i.exec(rule) ?? [];
  if (bits !== undefined) {
    if (isIP(network) === 0 || isIP(network) !== isIP(hostname) || Number(bits) > (isIPv6(network) ? 128 : 32))
      return false;
    const range = new BlockList();
    range.addSubnet(network, Number(bits), family(network));
    return range.check(hostname, family(hostname));
  }
  const parts = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(rule);
  if (parts?.[3] !== undefined && parts[3] !== port) return false;
  const name = (parts ? (parts[1] ?? parts[2] ?? '') : rule)
    .toLowerCase()
    .replace(/^\*?\./, '')
    .replace(/\.$/, '');
  const host = hostname.toLowerCase().replace(/\.$/, '');
  if (isIP(host) === 0) return name !== '' && (host === name || host.endsWith(`.${name}`));
  return isIP(name) === isIP(host) && spell(name) === spell(host);
}

/** Normalizes an address to its spelling in URLs. */
function spell(address: string): string {
  return new URL(`http://${isIPv6(address) ? `[${address}]` : address}`).hostname;
}
