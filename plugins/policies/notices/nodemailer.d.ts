/** Subset of nodemailer in use. Its own types do not support `exactOptionalPropertyTypes`. */
declare module 'nodemailer' {
  interface SmtpOptions {
    readonly host: string;
    readonly port: number;
    /** Implicit TLS. */
    readonly secure: boolean;
    /** Refuses servers without STARTTLS. */
    readonly requireTLS: boolean;
    readonly ignoreTLS: boolean;
    readonly auth?: { readonly user: string; readonly pass: string };
    readonly tls: { readonly minVersion: string; readonly ca?: string };
    readonly connectionTimeout: number;
    readonly greetingTimeout: number;
    readonly socketTimeout: number;
    readonly dnsTimeout: number;
    readonly disableFileAccess: boolean;
    readonly disableUrlAccess: boolean;
  }

  interface SentMail {
    readonly from: string;
    readonly to: readonly string[];
    readonly subject: string;
    readonly text: string;
    readonly messageId: string;
    readonly headers: Readonly<Record<string, string>>;
  }

  interface SmtpTransport {
    /** Rejects if no recipient was accepted; an error of the server has its `responseCode`. */
    sendMail(mail: SentMail): Promise<{ readonly rejected: readonly string[]; readonly response: string }>;
    close(): void;
  }

  export function createTransport(options: SmtpOptions): SmtpTransport;
}
