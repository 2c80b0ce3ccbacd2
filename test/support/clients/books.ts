import { expect } from 'chai';
import { eventually } from '../wait.ts';

/** Balance of an account as users see it over HTTP, in micro-dollars. */
export interface Books {
  readonly balance: number;
  readonly held: number;
  readonly spent: number;
  readonly credited: number;
}

/** Reads `GET /api/core/balance` with a key: exact amounts, as texts. */
export async function readBalance(url: string, key: string): Promise<Record<keyof Books, string>> {
  const response = await fetch(`${url}/api/core/balance`, { headers: { authorization: `Bearer ${key}` } });
  expect(response.status, await response.clone().text()).to.equal(200);
  return (await response.json()) as Record<keyof Books, string>;
}

/** Reads the balance in whole micro-dollars, for calls with such costs; see {@link readBalance}. */
export async function readBooks(url: string, key: string): Promise<Books> {
  const body = await readBalance(url, key);
  const micro = (text: string): number => Math.round(Number(text) * 1_000_000);
  return {
    balance: micro(body.balance),
    held: micro(body.held),
    spent: micro(body.spent),
    credited: micro(body.credited),
  };
}

/** Balance after all reservations were released. */
export function settledBooks(url: string, key: string): Promise<Books> {
  return eventually(async () => {
    const books = await readBooks(url, key);
    expect(books.held, 'held').to.equal(0);
    return books;
  });
}
