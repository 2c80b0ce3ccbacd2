/** What the policy uses of nodemailer. Its own types do not know `exactOptionalPropertyTypes`. */
declare module 'nodemailer' {
  interface SmtpOptions {
    readonly host: string;
    readonly port: number;
    /** TLS from the first byte on. */
    readonly secure: boolean;
    /** Nothing is sent to a server without STARTTLS. */
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
    /** Rejects when no recipient was taken; an error of the server has its `responseCode`. */
    sendMail(mail: SentMail): Promise<{ readonly rejected: readonly string[]; readonly response: string }>;
    close(): void;
  }

  export function createTransport(options: SmtpOptions): SmtpTransport;
}
