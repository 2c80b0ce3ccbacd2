/** All bytes of an answer; ends when the body does, however it ends. `whole` is false when it broke off. */
export async function readAll(response: Response): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const bytes of response.body ?? []) pieces.push(bytes as Uint8Array);
    return { bytes: Buffer.concat(pieces), whole: true };
  } catch {
    return { bytes: Buffer.concat(pieces), whole: false };
  }
}
