import type { Reply } from '../kit/deliveries.ts';

/** Outgoing mail server, as configured. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** PEM certificates trusted in place of the default ones. */
  readonly ca?: string | undefined;
}

interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  /** The same for every attempt. */
  readonly id: string;
}

/** Port with implicit TLS (RFC 8314). */
const TLS_PORT = 465;
const TIMEOUT_MS = 10_000;

/**
 * Sends a mail over SMTP; rejects if a retry may help. Requires TLS, except on this machine without configured
 * certificates. https://nodemailer.com/smtp/
 */
export async function sendMail(
  { host, port, user, password, ca }: MailServer,
  isLocal: boolean,
  mail: Mail,
): Promise<Reply> {
  const { createTransport } = await import('nodemailer');
  const needsTls = !isLocal || ca !== undefined;
  const transport = createTransport({
    host,
    port,
    secure: port === TLS_PORT,
    requireTLS: needsTls,
    ignoreTLS: !needsTls,
    ...(user !== undefined && password !== undefined && { auth: { user, pass: password } }),
    tls: { minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) },
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
    // Text is never read as a file or URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    const { from, to, subject, text, id } = mail;
    const { rejected, response } = await transport.sendMail({
      from,
      to,
      subject,
      text,
      messageId: `<${id}@tollgate>`,
      // Suppresses automatic replies (RFC 3834).
      headers: { 'auto-submitted': 'auto-generated' },
    });
    const said = rejected.length === 0 ? response : `not for ${rejected.join(', ')}; ${response}`;
    return { isTaken: rejected.length === 0, said };
  } catch (error) {
    const { responseCode: code = 0, message } = error as Error & { readonly responseCode?: number };
    if (code >= 500) return { isTaken: false, said: message };
    throw error;
  } finally {
    transport.close();
  }
}
