import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { clientAddress } from '../../../core/http/lifecycle.ts';

const request = (forwarded?: string) =>
  ({
    socket: { remoteAddress: '10.0.0.9' },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

describe('the caller’s address', () => {
  const CASES: readonly [name: string, hops: number, forwarded: string | undefined, address: string][] = [
    ['is the socket’s when no proxy is trusted', 0, '1.2.3.4', '10.0.0.9'],
    ['is what one trusted proxy wrote', 1, '1.2.3.4', '1.2.3.4'],
    ['is not what the caller wrote before a trusted proxy', 1, '6.6.6.6, 1.2.3.4', '1.2.3.4'],
    ['is what the outer of two trusted proxies wrote', 2, '6.6.6.6, 1.2.3.4, 10.0.0.8', '1.2.3.4'],
    ['is the socket’s when the trusted proxy wrote nothing', 1, undefined, '10.0.0.9'],
    ['is never text that is no address', 1, 'evil\nline', '10.0.0.9'],
  ];
  for (const [name, hops, forwarded, address] of CASES) {
    it(name, () => {
      expect(clientAddress(request(forwarded), hops)).to.equal(address);
    });
  }
});
