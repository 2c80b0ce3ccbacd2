/** Text of a response, and whether it is complete: false if the connection was closed before its end. */
export async function readText({ body }: Response): Promise<{ readonly text: string; readonly isComplete: boolean }> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true });
    return { text, isComplete: true };
  } catch {
    return { text, isComplete: false };
  }
}
