import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { type Certificate, createSelfSigned } from '../identity/self-signed.ts';

/** Mail that the server received. */
export interface GotMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly data: string;
  readonly isEncrypted: boolean;
  /** `user:password`, if the client signed in. */
  readonly credential: string | undefined;
}

/** Mail server on the loopback with the SMTP commands that a client needs (RFC 5321, 3207, 4954). */
export interface MailServer {
  readonly port: number;
  /** Certificate for `localhost`. */
  readonly ca: string;
  readonly mails: readonly GotMail[];
  /** Commands received without TLS. */
  readonly inTheClear: readonly string[];
  /** Sets the replies to the next `RCPT` commands. */
  refuse(...replies: readonly string[]): void;
  close(): Promise<void>;
}

interface MailServerOptions {
  readonly offersTls?: boolean;
}

export async function startMailServer({ offersTls = true }: MailServerOptions = {}): Promise<MailServer> {
  const certificate = createSelfSigned();
  const state = { mails: [] as GotMail[], inTheClear: [] as string[], refusals: [] as string[] };
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.write('220 localhost ESMTP\r\n');
    converse(socket, false, { ...state, certificate, offersTls });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as net.AddressInfo).port,
    ca: certificate.cert,
    ...{ mails: state.mails, inTheClear: state.inTheClear },
    refuse: (...replies) => void state.refusals.push(...replies),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Conversation {
  readonly mails: GotMail[];
  readonly inTheClear: string[];
  readonly refusals: string[];
  readonly certificate: Certificate;
  readonly offersTls: boolean;
}

function converse(socket: net.Socket, isEncrypted: boolean, of: Conversation): void {
  let [from, data, buffered] = ['', '', ''];
  let to: string[] = [];
  let credential: string | undefined;
  let isData = false;
  const reply = (...lines: readonly string[]): void => void socket.write(lines.map((line) => `${line}\r\n`).join(''));
  const commands: Readonly<Record<string, (rest: string) => void>> = {
    EHLO() {
      const tlsLine = of.offersTls && !isEncrypted ? ['250-STARTTLS'] : [];
      reply('250-localhost', ...tlsLine, '250 AUTH PLAIN');
    },
    STARTTLS() {
      if (!of.offersTls) {
        reply('502 not here');
        return;
      }
      reply('220 go ahead');
      socket.removeAllListeners('data');
      const { key, cert } = of.certificate;
      const secure = new tls.TLSSocket(socket, { isServer: true, key, cert });
      secure.on('error', () => undefined);
      converse(secure, true, of);
    },
    AUTH(rest) {
      const [, user, password] = Buffer.from(rest.replace(/^PLAIN /, ''), 'base64')
        .toString()
        .split('\0');
      credential = `${user}:${password}`;
      reply('235 welcome');
    },
    MAIL(rest) {
      from = /<(.*?)>/.exec(rest)?.[1] ?? '';
      to = [];
      reply('250 ok');
    },
    RCPT(rest) {
      const refusal = of.refusals.shift();
      if (refusal === undefined) to.push(/<(.*?)>/.exec(rest)?.[1] ?? '');
      reply(refusal ?? '250 ok');
    },
    DATA() {
      [isData, data] = [true, ''];
      reply('354 go on');
    },
    RSET: () => reply('250 ok'),
    QUIT() {
      reply('221 bye');
      socket.end();
    },
  };
  const read = (line: string): void => {
    if (isData && line !== '.') {
      data += `${line}\n`;
      return;
    }
    if (isData) {
      isData = false;
      of.mails.push({ from, to, data, isEncrypted, credential });
      reply('250 queued');
      return;
    }
    if (!isEncrypted) of.inTheClear.push(line);
    const [word = '', ...rest] = line.split(' ');
    const command = commands[word.toUpperCase()];
    if (command) command(rest.join(' '));
    else reply('502 unknown');
  };
  socket.on('data', (bytes) => {
    buffered += String(bytes);
    for (let end = buffered.indexOf('\r\n'); end >= 0; end = buffered.indexOf('\r\n')) {
      const line = buffered.slice(0, end);
      buffered = buffered.slice(end + 2);
      read(line);
    }
  });
}
