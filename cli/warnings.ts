import type { GatewayConfig, ServerConfig } from '../config/core-schema.ts';
import { firstCertificate } from '../config/tls.ts';
import { isLoopback } from '../contract/hosts.ts';
import type { Log } from '../contract/plugin.ts';
import { formatPath, type ProblemAt } from '../contract/pointers.ts';

/** Warnings about valid but inadvisable configurations; they never stop a start. */

/** Time before its expiry from which a certificate causes a warning. */
const SOON_MS = 14 * 86_400_000;

/** Warnings about the listening address and outbound connections; `host` overrides `server.host`. */
export function networkWarnings(
  { server, instances }: Pick<GatewayConfig, 'server' | 'instances'>,
  host = server.host,
): readonly ProblemAt[] {
  return [...listenWarnings({ ...server, host }), ...egressWarnings(instances)];
}

/** Warnings about how a gateway listens; `host` is its listening address. */
export function listenWarnings(server: Pick<ServerConfig, 'host' | 'tls' | 'trustProxy'>): readonly ProblemAt[] {
  const { host, tls, trustProxy } = server;
  if (tls !== undefined) return certificateWarnings(server);
  if (isLoopback(host) || trustProxy > 0) return [];
  const message = `listens on ${host} without TLS and without a trusted proxy, so keys and prompts are sent unencrypted`;
  const hint = 'Set server.tls, or use a TLS proxy in front and set server.trustProxy (docs/how-to/serve-https.md).';
  return [{ pointer: '/server/host', message, hint }];
}

/** Warnings about a certificate that clients refuse now or will soon. */
export function certificateWarnings({ tls }: Pick<ServerConfig, 'tls'>, now = Date.now()): readonly ProblemAt[] {
  if (tls === undefined) return [];
  return describeTerm(tls.cert, 'clients reject it', now).map((message) => ({
    pointer: '/server/tls/cert',
    message,
    hint: 'Replace it and reload.',
  }));
}

/**
 * Warnings about client certificates that servers refuse now or will soon. The gateway still serves all other routes.
 */
export function egressWarnings(instances: GatewayConfig['instances'], now = Date.now()): readonly ProblemAt[] {
  return instances.flatMap(({ egress, pointer }) => {
    const { cert } = egress?.tls ?? {};
    if (cert === undefined) return [];
    return describeTerm(cert, 'servers reject it', now).map((message) => ({
      pointer: `${pointer}/tls/cert`,
      message,
      hint: 'Replace it and reload.',
    }));
  });
}

/** Describes the problem with a certificate's validity period, if any. */
function describeTerm(cert: string, refused: string, now: number): readonly string[] {
  const { validFrom, validTo } = firstCertificate(cert);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  if (to <= now) return [`is a certificate that expired on ${day(to)}; ${refused}`];
  if (from > now) return [`is a certificate that is not valid before ${day(from)}; ${refused} until then`];
  return to - now < SOON_MS ? [`is a certificate that expires on ${day(to)}`] : [];
}

/** Logs one line per warning. */
export function logWarnings(log: Log, warnings: readonly ProblemAt[]): void {
  for (const { pointer, message, hint } of warnings)
    log.warn({ path: formatPath(pointer) }, `${formatPath(pointer)} ${message}. ${hint ?? ''}`.trim());
}
