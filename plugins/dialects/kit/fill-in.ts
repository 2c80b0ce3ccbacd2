import type { ChatMessage } from '../../../contract/index.ts';

/** Instruction for a chat model to write the text between two texts. */
const FILL_IN =
  'You complete text. The user gives the text before a gap between <prefix> and </prefix> and the text after it between <suffix> and </suffix>. Reply with exactly the text that belongs in the gap, and nothing else: no explanation, no code fence, no repetition of what stands around it.';

/** Messages by which a chat model writes the text between two texts. */
export function fillIn(prompt: string, suffix: string): readonly ChatMessage[] {
  const content = `<prefix>${prompt}</prefix><suffix>${suffix}</suffix>`;
  return [
    { role: 'system', content: FILL_IN },
    { role: 'user', content },
  ];
}
